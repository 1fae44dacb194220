"""Work that waits, for a caller that may stand in an event loop of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import anyio

T = TypeVar("T")


def aside(work: Callable[..., T], *arguments: object) -> T:
    """What `work(*arguments)` returns, called in a thread of its own: whatever event loop the caller is in, none runs
    there.
    """
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(work, *arguments).result()


def waited(work: Callable[..., Awaitable[T]], *arguments: object) -> T:
    """What it comes to."""

    def run() -> T:
        return anyio.run(work, *arguments)

    return aside(run)
