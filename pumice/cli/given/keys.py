"""Single keys from a terminal, while something else is shown on it."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


@contextmanager
def quitting() -> Generator[Callable[[float], bool]]:
    """Gives a function that waits so many seconds, or until q is pressed, and says whether it was. Without a terminal
    to read from it only waits. Ctrl-C stays an interrupt.
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


def _wait(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _pressed(number: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if select.select([number], [], [], left)[0]:
            keys = os.read(number, 1)
            if keys in (b"q", b"Q", b""):  # nothing: the terminal is gone
                return True
    return False
