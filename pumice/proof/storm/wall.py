"""An end to what goes in circles: virtual time does not pass there, the processor's does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

AGAIN_S: Final = 0.5
"""Others may go in circles too, and are met one after the other."""


class TooLongError(BaseException):
    """Time is up. Not an Exception: nobody may take it for the crash of an actor."""


class WallAlarm:
    """`rang`: time was up, whatever has become of the error since."""

    def __init__(self) -> None:
        self.rang = False

    def ring(self, *_: object) -> None:
        """What the signal does."""
        self.rang = True
        raise TooLongError


@contextmanager
def at_most(seconds: float) -> Generator[WallAlarm]:
    """Raise TooLongError in the block after so many seconds of the processor.

    Only where a timer can be set: in the main thread, where nobody has set one.
    """
    alarm = WallAlarm()
    if threading.current_thread() is not threading.main_thread() or signal.getitimer(signal.ITIMER_VIRTUAL)[0]:
        yield alarm
        return
    before = signal.signal(signal.SIGVTALRM, alarm.ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, AGAIN_S)
    try:
        yield alarm
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
