"""One writer a journal: an advisory lock on a file beside it, which the system drops when its holder dies.

Not on the journal itself: SQLite's own locks there are of the process and vanish when any handle on the file is closed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _seize(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _seize(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


class FileLock:
    """Held from construction to `release`. Raises BlockingIOError when someone else holds it, OSError otherwise."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = self._take()

    def _take(self) -> int:
        while True:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                self._seize_or_say_who(handle)
                if self._is_still_there(handle):
                    os.ftruncate(handle, 0)
                    os.write(handle, f"{os.getpid()}\n".encode())
                    return handle
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)

    def _seize_or_say_who(self, handle: int) -> None:
        try:
            _seize(handle)
        except (BlockingIOError, PermissionError) as problem:
            holder = os.pread(handle, 20, 0).decode("ascii", "replace").strip() if hasattr(os, "pread") else ""
            raise BlockingIOError(f"process {holder}" if holder else "another process") from problem

    def _is_still_there(self, handle: int) -> bool:
        """Whether the file was not removed by the holder before us between our opening and our locking it."""
        try:
            return os.path.samestat(os.fstat(handle), self.path.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Remove the file, then let go: in this order nobody can hold the lock of a file that is gone."""
        if self._handle >= 0:
            self.path.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = -1
