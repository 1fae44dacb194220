"""Single keys from a terminal, while something else is shown on it."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

LONGEST: Final = 16
"""Bytes of one key."""

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


@contextmanager
def pressing() -> Generator[Callable[[float], str]]:
    """Gives a function that waits so many seconds or for a key, and returns what a terminal sends for it, "" for none.
    Without a terminal to read from it only waits. Ctrl-C stays an interrupt; a terminal that is gone has pressed q.
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
