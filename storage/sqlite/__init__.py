"""The journal in a SQLite file. Nobody outside needs more of it than `SqliteJournal` and `back_up`."""

from pumice.storage.sqlite.backup import back_up
from pumice.storage.sqlite.journal import SqliteJournal

__all__ = ["SqliteJournal", "back_up"]
