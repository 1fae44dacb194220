"""Whether the files of an open journal are still where they were: what is written to others nobody will find."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path


class FilePresence:
    """Of a journal that this process writes; `path` is free of symbolic links."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = path.with_name(f"{path.name}-wal")
        self._files = {path: path.stat()}

    def gone(self) -> str:
        """What has happened to them, "" while nothing has. To be asked after something was written, when both exist."""
        for file, what in ((self._path, "its file"), (self._log, "its write-ahead file")):
            try:
                found = file.stat()
            except OSError:
                return f"{what} was removed while it was open"
            if not os.path.samestat(self._files.setdefault(file, found), found):
                return f"{what} was replaced while it was open"
        return ""


def leave_open(connection: sqlite3.Connection) -> None:
    """Never close it, not even when the process ends.

    The last connection to a database removes the write-ahead file by its name. Somebody else's may be there now; and
    where nobody could say that the journal was closed, that file is what shows that nothing is missing.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
