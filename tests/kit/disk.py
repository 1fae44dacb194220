"""A record of everything that is done to the files of a folder, and the disks that a crash could have left of it.

`recording(folder)` watches the real code at work: SQLite through a layer over its own file system (a VFS, set up with
ctypes in the very library that `sqlite3` uses), the rest through Python's `os`. What comes of it is a list of steps.
`Disk` plays steps back and says what a process that was killed (`killed`) or a power cut (`cut`) may have left behind.
"""

from __future__ import annotations

import ctypes
import os
import random
import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest.mock import patch

SECTOR: Final = 512
"""Bytes that a disk writes whole or not at all."""
MEMORY_PAGE: Final = 4096
"""Bytes between which a process that writes can be killed."""
PASSED_OVER: Final = "-shm"
"""The index of a write-ahead file lies in shared memory and is made anew by the first to open the database."""


class Write(NamedTuple):
    """Bytes at a place of a file."""

    file: str
    offset: int
    data: bytes


class Truncate(NamedTuple):
    """A file cut, or made longer."""

    file: str
    size: int


class Sync(NamedTuple):
    """All that was written to the file is on the disk when it returns."""

    file: str


class Create(NamedTuple):
    """A new, empty file."""

    file: str


class Remove(NamedTuple):
    """A name that is gone."""

    file: str


class Link(NamedTuple):
    """Another name of a file."""

    file: str
    name: str


class SyncFolder(NamedTuple):
    """All names of files are on the disk when it returns."""


class Said(NamedTuple):
    """Somebody was told something: from here on it must hold."""

    what: Any


Step = Write | Truncate | Sync | Create | Remove | Link | SyncFolder | Said
Files = Mapping[str, bytes]


# --- what could be left ---------------------------------------------------------------------------------------------


class _Inode:
    """A file, whatever it is called."""

    def __init__(self) -> None:
        self.content = bytearray()


class _Pending(NamedTuple):
    """A step that no sync has followed yet; `inode` is the file it is about."""

    step: Step
    inode: _Inode | None


class Disk:
    """A folder that lives through steps: what the system sees of it, what is on the platter, and what is on its way."""

    def __init__(self, files: Files = {}) -> None:  # noqa: B006 - it is only read
        self._seen: dict[str, _Inode] = {}
        self._names: dict[str, _Inode] = {}
        self._durable: dict[_Inode, bytearray] = {}
        self._pending: list[_Pending] = []
        for name, content in files.items():
            inode = self._seen[name] = self._names[name] = _Inode()
            inode.content = bytearray(content)
            self._durable[inode] = bytearray(content)

    def live(self, step: Step) -> None:
        """Take in the next step."""
        inode = None if isinstance(step, SyncFolder | Said) else self._seen.get(step.file)
        if isinstance(step, Said):
            return
        if isinstance(step, Sync):
            self._settle(lambda pending: pending.inode is inode and isinstance(pending.step, Write | Truncate))
        elif isinstance(step, SyncFolder):
            self._settle(lambda pending: not isinstance(pending.step, Write | Truncate))
        else:
            if isinstance(step, Create):
                inode = _Inode()
                self._durable[inode] = bytearray()
            if isinstance(step, Truncate) and inode is not None and step.size == len(inode.content):
                return
            assert inode is not None, f"{step} of a file that is not there"
            _apply(step, inode, inode.content, self._seen)
            self._pending.append(_Pending(step, inode))
            self._write_back(step)

    def _write_back(self, step: Step) -> None:
        """Of writes to one place that nobody ever syncs, the last two are enough to be on their way."""
        if isinstance(step, Write):
            place = (step.file, step.offset, len(step.data))
            same = [
                pending
                for pending in self._pending
                if isinstance(pending.step, Write)
                and (pending.step.file, pending.step.offset, len(pending.step.data)) == place
            ]
            if len(same) > 2:
                self._settle(lambda pending: pending is same[0])

    def _settle(self, is_due: Callable[[_Pending], bool]) -> None:
        for pending in self._pending:
            if is_due(pending):
                assert pending.inode is not None
                _apply(pending.step, pending.inode, self._durable[pending.inode], self._names)
        self._pending = [pending for pending in self._pending if not is_due(pending)]

    def files(self) -> dict[str, bytes]:
        """What the system sees: all that was written, be it on the disk or not."""
        return {name: bytes(inode.content) for name, inode in self._seen.items()}

    def killed(self, during: Step) -> Iterator[dict[str, bytes]]:
        """What may be left when the process is killed at this step: nothing of it happened, or the part of a write that
        lies in the first of the system's pages did.
        """
        yield self.files()
        if isinstance(during, Write):
            first = MEMORY_PAGE - during.offset % MEMORY_PAGE
            if first < len(during.data):
                part = Disk(self.files())
                part.live(Write(during.file, during.offset, during.data[:first]))
                yield part.files()

    def cut(self, chance: random.Random, *, most: int) -> Iterator[dict[str, bytes]]:
        """What may be left after a power cut: any of the steps on their way got there, and of a write any sectors.

        All subsets while these are at most `most`; else none, all, all but each one, each one alone, and as many more
        by chance.
        """
        count = len(self._pending)
        if 1 << count <= most:
            yield from (self._left(mask, None) for mask in range(1 << count))
        else:
            everything = (1 << count) - 1
            masks = [0, everything, *(everything ^ 1 << place for place in range(count))]
            masks += [1 << place for place in range(count)]
            chosen = masks if len(masks) <= most else chance.sample(masks, most)
            yield from (self._left(mask, None) for mask in [*chosen, *(chance.getrandbits(count) for _ in range(most))])
        if any(isinstance(pending.step, Write) for pending in self._pending):
            yield from (self._left((1 << count) - 1, chance) for _ in range(2))

    def _left(self, mask: int, torn: random.Random | None) -> dict[str, bytes]:
        contents = {inode: bytearray(content) for inode, content in self._durable.items()}
        names = dict(self._names)
        for place, (step, inode) in enumerate(self._pending):
            if not mask >> place & 1:
                continue
            assert inode is not None
            for piece in [step] if torn is None or not isinstance(step, Write) else _torn(step, torn):
                _apply(piece, inode, contents[inode], names)
        return {name: bytes(contents[inode]) for name, inode in names.items()}


def _torn(step: Write, chance: random.Random) -> list[Step]:
    """Some of its sectors."""
    pieces = range(0, len(step.data), SECTOR)
    return [Write(step.file, step.offset + at, step.data[at : at + SECTOR]) for at in pieces if chance.random() < 0.5]


def _apply(step: Step, inode: _Inode, content: bytearray, names: dict[str, _Inode]) -> None:
    match step:
        case Write(_, offset, data):
            content.extend(bytes(max(0, offset - len(content))))
            content[offset : offset + len(data)] = data
        case Truncate(_, size):
            del content[size:]
            content.extend(bytes(size - len(content)))
        case Create(file):
            names[file] = inode
        case Remove(file):
            names.pop(file, None)
        case Link(_, name):
            names[name] = inode
        case _:
            pass


# --- watching the real code -----------------------------------------------------------------------------------------


@contextmanager
def recording(folder: Path) -> Generator[list[Step]]:
    """The steps that this process takes in the folder meanwhile, as they come."""
    steps: list[Step] = []
    watch = _Watch(folder.resolve(), steps)
    with watch.through_python(), _through_sqlite(watch):
        yield steps


class _Watch:
    """Where both ways of writing are told of."""

    def __init__(self, folder: Path, steps: list[Step]) -> None:
        self._folder = folder
        self._steps = steps
        self._handles: dict[int, str] = {}

    def name(self, path: Any) -> str | None:
        """What a file of the folder is called there; None: it is none, or the index that nobody writes."""
        try:
            found = Path(os.fsdecode(path)).absolute()
        except TypeError:
            return None
        return None if found.parent != self._folder or found.name.endswith(PASSED_OVER) else found.name

    def note(self, step: Step) -> None:
        """One step more."""
        self._steps.append(step)

    @contextmanager
    def through_python(self) -> Generator[None]:
        """What is written by way of `os`."""
        real = {name: getattr(os, name) for name in ("open", "write", "unlink", "link", "fsync", "close")}

        def opened(path: Any, flags: int, *rest: Any, **named: Any) -> int:
            name, new = self.name(path), not os.path.lexists(path)
            handle: int = real["open"](path, flags, *rest, **named)
            if name is not None:
                self._handles[handle] = name
                if new:
                    self.note(Create(name))
            elif Path(os.fsdecode(path)).absolute() == self._folder:
                self._handles[handle] = ""
            return handle

        def write(handle: int, data: bytes) -> int:
            if handle in self._handles:
                self.note(Write(self._handles[handle], os.lseek(handle, 0, os.SEEK_CUR), bytes(data)))
            return int(real["write"](handle, data))

        def unlink(path: Any, **named: Any) -> None:
            real["unlink"](path, **named)
            if (name := self.name(path)) is not None:
                self.note(Remove(name))

        def link(source: Any, target: Any, **named: Any) -> None:
            real["link"](source, target, **named)
            if (old := self.name(source)) is not None and (new := self.name(target)) is not None:
                self.note(Link(old, new))

        def fsync(handle: int) -> None:
            real["fsync"](handle)
            if handle in self._handles:
                self.note(Sync(self._handles[handle]) if self._handles[handle] else SyncFolder())

        def close(handle: int) -> None:
            self._handles.pop(handle, None)
            real["close"](handle)

        with patch.multiple(os, open=opened, write=write, unlink=unlink, link=link, fsync=fsync, close=close):
            yield


# SQLite's interface to file systems, as in its sqlite3.h, whose names these are.
_OK: Final = 0
_File = ctypes.c_void_p
_Call = ctypes.CFUNCTYPE


class _Methods(ctypes.Structure):
    _fields_ = [
        ("iVersion", ctypes.c_int),
        ("xClose", ctypes.c_void_p),
        ("xRead", ctypes.c_void_p),
        ("xWrite", ctypes.c_void_p),
        ("xTruncate", ctypes.c_void_p),
        ("xSync", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in (
            "xFileSize", "xLock", "xUnlock", "xCheckReservedLock", "xFileControl", "xSectorSize",
            "xDeviceCharacteristics", "xShmMap", "xShmLock", "xShmBarrier", "xShmUnmap", "xFetch", "xUnfetch")),
    ]  # fmt: skip


class _Opened(ctypes.Structure):
    _fields_ = [("pMethods", ctypes.POINTER(_Methods))]


class _Vfs(ctypes.Structure):
    _fields_ = [
        ("iVersion", ctypes.c_int),
        ("szOsFile", ctypes.c_int),
        ("mxPathname", ctypes.c_int),
        ("pNext", ctypes.c_void_p),
        ("zName", ctypes.c_char_p),
        ("pAppData", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in (
            "xOpen", "xDelete", "xAccess", "xFullPathname", "xDlOpen", "xDlError", "xDlSym", "xDlClose", "xRandomness",
            "xSleep", "xCurrentTime", "xGetLastError", "xCurrentTimeInt64", "xSetSystemCall", "xGetSystemCall",
            "xNextSystemCall")),
    ]  # fmt: skip


# Paths stay pointers: SQLite keeps the one that it opens by, and what follows it in memory.
_OpenCall = _Call(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, _File, ctypes.c_int, ctypes.c_void_p)
_DeleteCall = _Call(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
_WriteCall = _Call(ctypes.c_int, _File, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64)
_TruncateCall = _Call(ctypes.c_int, _File, ctypes.c_int64)
_SyncCall = _Call(ctypes.c_int, _File, ctypes.c_int)
_CloseCall = _Call(ctypes.c_int, _File)
_GetSystemCall = _Call(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
_SetSystemCall = _Call(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_OpenDirectoryCall = _Call(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

_kept: Final[list[Any]] = []
"""What SQLite may still call when a file is closed late: never freed."""


def library() -> ctypes.CDLL | None:
    """The SQLite that `sqlite3` uses; None where it is built into Python in a way that shows nothing of it."""
    sqlite3.connect(":memory:").close()
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    found = [line.split()[-1] for line in lines if "sqlite3" in line]
    for path in sorted(dict.fromkeys(found), key=lambda path: "libsqlite3" not in path):
        handle = ctypes.CDLL(path)
        if hasattr(handle, "sqlite3_vfs_find"):
            return handle
    return None


@contextmanager
def _through_sqlite(watch: _Watch) -> Generator[None]:
    """What SQLite writes by way of its own file system, which does the work."""
    sqlite = library()
    assert sqlite is not None, "this Python's SQLite cannot be watched"
    sqlite.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    real = sqlite.sqlite3_vfs_find(None)
    layer = _Vfs.from_buffer_copy(real.contents)
    layer.zName = b"recording"
    layered = _LayeredFiles(watch, real)
    layer.xOpen = ctypes.cast(layered.open, ctypes.c_void_p)
    layer.xDelete = ctypes.cast(layered.delete, ctypes.c_void_p)
    _kept.append((layer, layered))
    assert sqlite.sqlite3_vfs_register(ctypes.byref(layer), 1) == _OK
    try:
        with _folder_syncs(watch, real):
            yield
    finally:
        sqlite.sqlite3_vfs_register(real, 1)
        sqlite.sqlite3_vfs_unregister(ctypes.byref(layer))


class _LayeredFiles:
    """Files of SQLite whose writes are told of before they are passed on to its own file system."""

    def __init__(self, watch: _Watch, real: Any) -> None:
        self._watch = watch
        self._real = real
        self._open = _OpenCall(real.contents.xOpen)
        self._delete = _DeleteCall(real.contents.xDelete)
        self._names: dict[int, str] = {}
        self._methods: dict[int, _Methods] = {}
        self._calls: list[Any] = []
        self.open = _OpenCall(self._opened)
        self.delete = _DeleteCall(self._deleted)

    def _opened(self, _: Any, path: int | None, file: int, flags: int, out: Any) -> int:
        called = ctypes.string_at(path) if path else b""
        name = self._watch.name(called)
        new = name is not None and not os.path.lexists(called)
        found: int = self._open(self._real, path, file, flags, out)
        if found == _OK and name is not None:
            self._names[file] = name
            opened = _Opened.from_address(file)
            opened.pMethods = ctypes.pointer(self._watched(opened.pMethods))
            if new:
                self._watch.note(Create(name))
        return found

    def _deleted(self, _: Any, path: int, durably: int) -> int:
        called = ctypes.string_at(path)
        if os.path.lexists(called) and (name := self._watch.name(called)) is not None:
            self._watch.note(Remove(name))
        found: int = self._delete(self._real, path, durably)
        return found

    def _watched(self, methods: Any) -> _Methods:
        """A table of methods as this one, with ours in between where something is written."""
        address = ctypes.addressof(methods.contents)
        if address not in self._methods:
            copy = self._methods[address] = _Methods.from_buffer_copy(methods.contents)
            write, truncate = _WriteCall(copy.xWrite), _TruncateCall(copy.xTruncate)
            sync, close = _SyncCall(copy.xSync), _CloseCall(copy.xClose)

            def written(file: int, data: int, size: int, offset: int) -> int:
                self._watch.note(Write(self._names[file], offset, ctypes.string_at(data, size)))
                return int(write(file, data, size, offset))

            def truncated(file: int, size: int) -> int:
                self._watch.note(Truncate(self._names[file], size))
                return int(truncate(file, size))

            def synced(file: int, flags: int) -> int:
                found = int(sync(file, flags))
                self._watch.note(Sync(self._names[file]))
                return found

            def closed(file: int) -> int:
                self._names.pop(file, None)
                return int(close(file))

            ours = (_WriteCall(written), _TruncateCall(truncated), _SyncCall(synced), _CloseCall(closed))
            self._calls.append((write, truncate, sync, close, *ours))
            copy.xWrite, copy.xTruncate, copy.xSync, copy.xClose = (ctypes.cast(one, ctypes.c_void_p) for one in ours)
        return self._methods[address]


@contextmanager
def _folder_syncs(watch: _Watch, real: Any) -> Generator[None]:
    """SQLite syncs a folder after it has opened it for nothing else (os_unix.c: unixSync, unixDelete)."""
    get = _GetSystemCall(real.contents.xGetSystemCall)
    change = _SetSystemCall(real.contents.xSetSystemCall)
    before = get(real, b"openDirectory")
    call = _OpenDirectoryCall(before)

    def opened(path: int, handle: int) -> int:
        found = int(call(path, handle))
        if found == _OK and watch.name(ctypes.string_at(path)) is not None:
            watch.note(SyncFolder())
        return found

    ours = _OpenDirectoryCall(opened)
    _kept.append(ours)
    assert change(real, b"openDirectory", ctypes.cast(ours, ctypes.c_void_p)) == _OK
    try:
        yield
    finally:
        change(real, b"openDirectory", None)


def lay_out(files: Files, folder: Path) -> None:
    """Make the folder hold these files and nothing else."""
    for old in folder.iterdir():
        old.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
