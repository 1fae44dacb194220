# SPDX-License-Identifier: Apache-2.0
"""One writer a journal: advisory locks that the system drops when their holder dies.

One is on the journal's file itself, whatever name or link it was found by. The other is on a file beside it, which says
who holds it and how far the journal has come (`pumice.storage.sqlite.lock`), and is gone after a clean stop.

SQLite's own locks are of the process, and closing any handle on the file drops them. So the handle that holds the first
lock is closed after SQLite's, and within one process a second writer is refused without opening the file.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from pumice.config.input_file import open_input

if TYPE_CHECKING:
    from pathlib import Path

    from pumice.storage.journal import Head

# --- The mark
# SQLite drops what comes after a broken page of that file without a word. So the last record of every append is noted
# in the lock file, which is there from the opening to a clean stop. It is written after the append and before any
# reader sees it, and not waited for on the disk: it survives a kill, and after a power cut it says too little,
# never too much.

_FORM: Final = struct.Struct("<16sQ16s8s")
OFFSET: Final = 64
"""In the file; before it stands the number of the process, for people."""


class Mark(NamedTuple):
    """The journal's identity, and its last record's number and hash."""

    identity: bytes
    sequence: int
    hash: bytes

    def packed(self) -> bytes:
        """Return the bytes in the file."""
        return _FORM.pack(*self, _sum(*self))

    def missing(self, identity: bytes, head: Head) -> str:
        """Return what a journal that ends at `head` lacks of the mark, "" for nothing. A mark of another journal does
        not count.
        """
        if self.identity != identity or self.sequence < head.sequence:
            return ""
        if self.sequence > head.sequence:
            return f"records {head.sequence + 1} to {self.sequence} are lost"
        return "" if self.hash == head.hash else f"record {self.sequence} is not the one that was written"


def read_mark(path: Path) -> Mark | None:
    """Return the mark in a lock file; None without a readable one."""
    try:
        with open_input(path, noted=False) as file:
            file.seek(OFFSET)
            found = file.read(_FORM.size)
    except OSError:
        return None
    if len(found) < _FORM.size:
        return None
    identity, sequence, hash_, checked = _FORM.unpack(found)
    return Mark(identity, sequence, hash_) if checked == _sum(identity, sequence, hash_) else None


def _sum(identity: bytes, sequence: int, hash_: bytes) -> bytes:
    return blake2b(b"%b %d %b" % (identity, sequence, hash_), digest_size=8).digest()


if sys.platform == "win32":
    import msvcrt

    FAR: Final = 1 << 62
    """A byte that is never read or written: locks are mandatory here."""

    def _seize(handle: int) -> None:
        os.lseek(handle, FAR, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _seize(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


PRIVATE: Final = 0o600
"""Journals hold Secrets."""
SUFFIX: Final = "-lock"
_OPEN: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)

_ours: set[tuple[int, int]] = set()
"""Device and inode of the journals that this process writes."""
_registering: Final = threading.Lock()


def beside(journal: Path) -> Path:
    """Return the lock file of a journal."""
    return journal.with_name(journal.name + SUFFIX)


class JournalLock:
    """A lock held from construction to `release`; a missing file is made, empty and private.

    `journal` is free of symbolic links. Raises BlockingIOError naming the holder, OSError otherwise.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._claimed: tuple[int, int] | None = None
        self._handle = -1
        self._beside = FileLock(beside(journal))
        try:
            self._handle = self._take()
        except BaseException:
            self.release(clean=False)
            raise

    def _take(self) -> int:
        # Held from the look to the entry: two threads that open one journal at the same time would both find it free.
        with _registering:
            if self._journal.exists():
                self._claim(self._journal.stat())
            handle = os.open(self._journal, _OPEN, PRIVATE)
            # The file is new: it has an inode only since it was opened.
            if self._claimed is None:
                self._claim(os.fstat(handle))
        try:
            _seize_or_say_who(handle)
        except BaseException:
            os.close(handle)
            raise
        return handle

    def _claim(self, found: os.stat_result) -> None:
        inode = (found.st_dev, found.st_ino)
        if inode in _ours:
            raise BlockingIOError(f"process {os.getpid()}")
        _ours.add(inode)
        self._claimed = inode

    def note(self, mark: Mark) -> None:
        """Note that the journal has come so far."""
        self._beside.write(mark.packed(), OFFSET)

    def release(self, *, clean: bool) -> None:
        """Release the lock. `clean`: all is in the journal's own file, so the mark is not needed any more. May be
        called again.
        """
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        if self._claimed is not None:
            # After our handle is closed: that would drop SQLite's locks of a thread that had opened the journal before.
            _ours.discard(self._claimed)
            self._claimed = None
        self._beside.release(keep=not clean and read_mark(self._beside.path) is not None)


class FileLock:
    """The lock on a file with no other purpose, and the number of the process that holds it.

    Held from construction to `release`. Raises BlockingIOError when someone else holds it, OSError otherwise.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = self._take()

    def _take(self) -> int:
        while True:
            handle = os.open(self.path, _OPEN, PRIVATE)
            try:
                _seize_or_say_who(handle)
                if self._is_still_there(handle):
                    # Padded up to the mark, so that no digit of a longer number before it is left.
                    _write(handle, f"{os.getpid()}\n".ljust(OFFSET).encode(), 0)
                    return handle
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)

    def _is_still_there(self, handle: int) -> bool:
        """Return whether the file still exists: the holder before us may have removed it between our opening and our
        locking.
        """
        try:
            return os.path.samestat(os.fstat(handle), self.path.stat())
        except FileNotFoundError:
            return False

    def write(self, data: bytes, offset: int) -> None:
        """Put something into the file."""
        _write(self._handle, data, offset)

    def release(self, *, keep: bool = False) -> None:
        """Remove the file, unless it is to be kept, then let go: in this order no other process can hold the lock of a
        file that is gone.
        """
        if self._handle >= 0:
            if not keep and self._is_still_there(self._handle):
                self.path.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = -1


def _seize_or_say_who(handle: int) -> None:
    try:
        _seize(handle)
    except (BlockingIOError, PermissionError) as problem:
        raise BlockingIOError(_holder(handle)) from problem


def _holder(handle: int) -> str:
    """Return the holder: a lock file begins with the number of the process."""
    os.lseek(handle, 0, os.SEEK_SET)
    number = os.read(handle, 20).partition(b"\n")[0]
    return f"process {number.decode()}" if number.isdigit() else "another process"


def _write(handle: int, data: bytes, offset: int) -> None:
    os.lseek(handle, offset, os.SEEK_SET)
    os.write(handle, data)
