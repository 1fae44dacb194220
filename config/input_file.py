# SPDX-License-Identifier: Apache-2.0
"""Opening of the files that a user names: a file, or a pipe that the process got; nothing else, without waiting.

Opening a named pipe waits for a writer, and a device may never end: a server that did so would hang. So
they are opened without waiting, looked at, and refused as OSErrors like those of files that cannot be read.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from pumice.config.errors import ConfigError

_HANDED: Final = re.compile(r"/dev/stdin|/dev/fd/\d+|/proc/self/fd/\d+")
"""Paths that shells write for `<(command)`, and those that stand for stdin."""
# NOCTTY: a terminal that is named as a file must not become the controlling one of a server.
_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_KINDS: Final = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_OF_JOURNALS: Final = ("-wal", "-shm", "-lock", "-journal")
_commands: Final[list[set[Path]]] = []
"""What each command that runs has read, from any thread. A program that calls the library may write where it read."""
_read: Final[dict[tuple[str, int, int], bytes]] = {}


def open_input(path: Path, *, noted: bool = True) -> BinaryIO:
    """Open the file to be read. Raises OSError, also when it is not a file. `noted`: no command may write there any
    more.
    """
    if noted:
        note_inputs(path)
    try:
        handle = os.open(path, _FLAGS)
    except OSError as error:
        raise _refusal(path, error) from error
    try:
        _demand_readable(path, handle)
        # Once it is known to be a file or a pipe that was handed over, whose writer may be slow.
        os.set_blocking(handle, True)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def unreadable(error: OSError) -> str:
    """Return the message about a file that could not be read."""
    return "does not exist" if error.errno == errno.ENOENT else f"cannot be read: {error.strerror}"


def read_bytes(path: Path) -> bytes:
    """Return all bytes. Raises OSError, also for a path that is not a file.

    A pipe can be read once: a second read, as of a followed configuration, gets the same text.
    """
    with open_input(path) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISFIFO(found.st_mode):
            return file.read()
        # With the inode: another pipe may get the same number of descriptor later.
        pipe = (str(path), found.st_dev, found.st_ino)
        if pipe not in _read:
            _read[pipe] = file.read()
        return _read[pipe]


def read_text(path: Path, errors: str = "strict") -> str:
    """Return all of it as UTF-8 text, with Python's line ends. Raises OSError, UnicodeDecodeError."""
    return io.TextIOWrapper(io.BytesIO(read_bytes(path)), encoding="utf-8", errors=errors).read()


@contextmanager
def noting_inputs() -> Generator[None]:
    """Remember the inputs of one command."""
    _commands.append(set())
    try:
        yield
    finally:
        _commands.pop()


def note_inputs(*paths: Path) -> None:
    """Note files that the command reads: `demand_output` refuses to write there."""
    for inputs in _commands:
        # Resolved now: a link may point elsewhere when the command comes to write.
        inputs.update(path.resolve() for path in paths)


def demand_output(path: Path) -> None:
    """Raise ConfigError for an output that the command reads under any name, or that belongs to a journal it reads, and
    OSError where its folder does not exist."""
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"the folder {path.parent} does not exist", str(path))
    inputs = set[Path]().union(*_commands)
    beside = {read.with_name(read.name + suffix) for read in inputs for suffix in _OF_JOURNALS}
    if path.resolve() in inputs | beside or any(_is_same(path, read) for read in inputs):
        raise ConfigError("this file is read by the command: name another one to write to", source=str(path))


def _is_same(one: Path, other: Path) -> bool:
    """Return whether two paths are one file: a hard link is another name of it."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def demand_file(path: Path) -> None:
    """Check a path that a library opens by its name. Raises OSError for one that exists and is not a file."""
    if path.exists() and not path.is_file():
        raise _wrong(path, path.stat().st_mode)


def _is_handed(path: Path) -> bool:
    return _HANDED.fullmatch(str(path)) is not None


def _demand_readable(path: Path, handle: int) -> None:
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return
    # A terminal is a device too, but as stdin a person types into it.
    if not (_is_handed(path) and (stat.S_ISFIFO(mode) or os.isatty(handle))):
        raise _wrong(path, mode)


def _refusal(path: Path, error: OSError) -> OSError:
    """Return the message about a socket: it cannot be opened at all, and the system's message for that does not
    help.
    """
    if error.errno == errno.ENXIO:
        return _wrong(path, stat.S_IFSOCK)
    return error


def _wrong(path: Path, mode: int) -> OSError:
    if stat.S_ISDIR(mode):
        return IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return OSError(errno.EINVAL, f"{_KINDS.get(stat.S_IFMT(mode), 'something else')}, not a file", str(path))
