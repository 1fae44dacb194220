"""What happens when the process runs out of file descriptors: connections are refused, and that is said once a second.

asyncio shows a traceback for each one that it cannot accept, as many at a time as there wait; trio one every tenth of a
second. Some descriptors are left to the others of the process, the journal above all: on asyncio by the listener, on
trio, which takes no socket but a plain one, by a look at the last ones ten times a second.
"""

from __future__ import annotations

import errno
import logging
import socket
from importlib import import_module
from time import monotonic
from typing import Any, Final

import anyio

RESERVE: Final = 16
"""Descriptors that connections leave to others."""
EVERY_S: Final = 1.0
"""Between two warnings."""
_NONE_LEFT: Final = (errno.EMFILE, errno.ENFILE)

log = logging.getLogger(__name__)


class Complaints:
    """One warning a second, with how many connections it is about."""

    def __init__(self) -> None:
        self._last = -1.0
        self._waiting = 0

    def refused(self) -> None:
        """One more."""
        self._waiting += 1
        if monotonic() - self._last >= EVERY_S:
            self.say()

    def say(self) -> None:
        """What has not been said yet, if there is anything."""
        if self._waiting:
            log.warning("connections refused: %d (the process may have no more open files)", self._waiting)
            self._last, self._waiting = monotonic(), 0

    async def keep_saying(self) -> None:
        """Until cancelled: those of a burst are said when it is over, too."""
        try:
            while True:
                await anyio.sleep(EVERY_S)
                self.say()
        finally:
            self.say()


class BoundedListener(socket.socket):
    """Closes at once what it accepts beyond `most` descriptors; whoever accepts is told that nobody was there."""

    most: int
    complaints: Complaints

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection and its address, as of any socket; running out of descriptors is told once a while."""
        try:
            connection, address = super().accept()
        except OSError as error:
            if error.errno in _NONE_LEFT:
                self.complaints.refused()
            raise
        if connection.fileno() >= self.most:
            connection.close()
            self.complaints.refused()
            raise ConnectionAbortedError(errno.ECONNABORTED, "no descriptor to spare")
        return connection, address


class OneLine(logging.Filter):
    """Makes a complaint of what trio says about a connection that it cannot accept."""

    def __init__(self, complaints: Complaints) -> None:
        super().__init__()
        self._complaints = complaints

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is to be logged: not where it is about descriptors, which is said in one line."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, OSError) and error.errno in _NONE_LEFT:
            self._complaints.refused()
            return False
        return True


def bounded(descriptor: int, complaints: Complaints) -> BoundedListener:
    """The listening socket of this number, which is its own from now on."""
    listener = BoundedListener(fileno=descriptor)
    listener.setblocking(False)
    listener.most = most_descriptors()
    listener.complaints = complaints
    return listener


def most_descriptors() -> int:
    """The first descriptor that a connection may not have."""
    try:
        resource: Any = import_module("resource")
    except ImportError:  # no such limit on this system
        return 1 << 30
    soft: int = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(soft - RESERVE, RESERVE) if soft > 0 else 1 << 30
