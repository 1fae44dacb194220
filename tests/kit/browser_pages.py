"""Pages in a browser that a test steers."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from playwright.sync_api import ConsoleMessage, Error, Page, expect, sync_playwright

from tests.kit.browser import CHROMIUM

PATIENCE_MS = 20_000.0


@contextmanager
def opened(*, width: int = 1280, height: int = 800, dark: bool = False) -> Generator[tuple[Page, list[str]]]:
    """A page, and what goes wrong on it: errors of its scripts and of the console. That a question was turned away
    (429, which the browser says by itself) is none: the page asks again.
    """
    wrong: list[str] = []

    def said(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and "status of 429" not in message.text:
            wrong.append(message.text)

    def raised(error: Error) -> None:
        wrong.append(str(error))

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light")
        page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        page.on("console", said)
        page.on("pageerror", raised)
        yield page, wrong
        browser.close()
