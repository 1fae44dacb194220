# SPDX-License-Identifier: Apache-2.0
"""`pumice top`: a run on the terminal, live or from a journal."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import anyio
import msgspec
import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from pumice.actors.gateway.advice import AdviserQuestion
from pumice.cli.exits import Exit
from pumice.cli.options import PluginsDir
from pumice.cli.sources import Certificate, Db, ServerUrl, Token, TokenFile, one_source, server_of
from pumice.cli.tables.frame import Frame, ScreenPart
from pumice.cli.terminal import Terminal, speaking
from pumice.config.errors import ConfigError, WorldError
from pumice.core.objects.metadata import Object
from pumice.questions.adviser.answers import answer
from pumice.questions.explain.server import Server, ask, mean_cycle_ms
from pumice.questions.history.rewind import newest_cycle

if TYPE_CHECKING:
    from collections.abc import Generator


# --- Keys

LONGEST: Final = 16
"""Bytes of one key."""


@contextmanager
def pressing() -> Generator[Callable[[float], str]]:
    """Yield a function that waits so many seconds or for a key, and returns the terminal's code for it, "" for none.
    Without an input terminal it only waits. Ctrl-C stays an interrupt; a closed terminal counts as q.
    """
    if not sys.stdin.isatty():
        yield _wait
        return
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    tty.setcbreak(number)
    try:
        yield lambda seconds: _pressed(number, seconds)
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)


def _wait(seconds: float) -> str:
    time.sleep(seconds)
    return ""


def _pressed(number: int, seconds: float) -> str:
    if not select.select([number], [], [], max(0.0, seconds))[0]:
        return ""
    return os.read(number, LONGEST).decode("ascii", "replace") or "q"


Asking = Callable[[str], Object]
"""Of a resource, or a resource/name, the adviser's answer."""
OK: Final = 200
LINES: Final = {"\x1b[A": -1, "\x1bOA": -1, "k": -1, "\x1b[B": 1, "\x1bOB": 1, "j": 1}
PAGES: Final = {"\x1b[5~": -1, "b": -1, "\x1b[6~": 1, " ": 1, "f": 1, "\x1b[H": -10_000, "g": -10_000, "G": 10_000}
"""Keys as terminals send them: arrows, PgUp, PgDn and Home; the letters are those of less."""


@speaking
def top(
    db: Db = None,
    server: ServerUrl = None,
    token: Token = None,
    token_file: TokenFile = None,
    certificate: Certificate = None,
    every: Annotated[float, typer.Option("--every", metavar="SECONDS", min=0.2, help="Time between two frames.")] = 2.0,
    once: Annotated[
        bool, typer.Option("--once", help="Show one frame and end. Without a terminal this is always so.")
    ] = False,
    plugins_dir: PluginsDir = None,
    *,
    terminal: Terminal,
) -> int:
    """Look again every few seconds until q or Ctrl-C; both end with 0."""
    asked = server_of(server, token, token_file, certificate, terminal)
    one_source(db, asked, None)
    look = _of_server(asked) if asked is not None else _of_journal(db or Path("pumice.db"), plugins_dir)
    if once or not (terminal.tables and terminal.out.is_terminal):
        frame = look()
        terminal.emit(frame.result(), lambda console: console.print(frame))
        return Exit.DONE
    try:
        screen = ScreenPart()
        _follow(lambda: replace(look(), screen=screen), every, screen, terminal)
    except KeyboardInterrupt:
        terminal.say("")
    return Exit.DONE


def _follow(look: Callable[[], Frame], every: float, screen: ScreenPart, terminal: Terminal) -> None:
    """Follow until q. A source that does not answer is asked again; the last frame stays, with the reason below it."""
    frame = look()
    with pressing() as pressed, Live(frame, console=terminal.out, screen=True, auto_refresh=False) as live:
        live.refresh()
        rest = every
        while not _ends(pressed, rest, live.refresh, screen, terminal.out.height):
            began = time.monotonic()
            try:
                frame, why = look(), ""
            except WorldError as error:
                why = str(error)
            live.update(Group(frame, Text(why)) if why else frame, refresh=True)
            rest = max(every, time.monotonic() - began)


def _ends(
    pressed: Callable[[float], str], seconds: float, redraw: Callable[[], None], screen: ScreenPart, height: int
) -> bool:
    """Scroll for so long, and return whether q was pressed."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        key = pressed(left)
        if key[:1] in ("q", "Q"):
            return True
        pages, lines = PAGES.get(key, 0), LINES.get(key, 0)
        if pages or lines:
            screen.move(pages * (height - 2) + lines)
            redraw()
    return False


def _of_server(server: Server) -> Callable[[], Frame]:
    return lambda: _frame(lambda what: ask(server, what), mean_cycle_ms(server))


def _of_journal(db: Path, plugins_dir: Path | None) -> Callable[[], Frame]:
    """Return a source over a journal. Raises ConfigError without one, or for one without a cycle."""
    anyio.run(newest_cycle, db)

    def asking(what: str) -> Object:
        resource, _, name = what.partition("/")
        found = answer(str(db), None if plugins_dir is None else str(plugins_dir), AdviserQuestion(resource, name=name))
        if found.code != OK:
            raise ConfigError(found.message, source=str(db))
        told: Object = msgspec.json.decode(found.body)
        return told

    return lambda: _frame(asking, None)


def _frame(asking: Asking, cycle_ms: float | None) -> Frame:
    return Frame(asking("standings"), asking("boards/newest"), asking("courses"), cycle_ms)
