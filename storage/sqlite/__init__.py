"""The journal in a SQLite file. Nobody outside needs more of it than `SqliteJournal`."""

from storage.sqlite.journal import SqliteJournal

__all__ = ["SqliteJournal"]
