# SPDX-License-Identifier: Apache-2.0
"""The journal in a SQLite file. Other packages need only `SqliteJournal`, `open_history` and `back_up`."""

from pumice.storage.sqlite.backup import back_up
from pumice.storage.sqlite.chained import open_history
from pumice.storage.sqlite.journal import SqliteJournal

__all__ = ["SqliteJournal", "back_up", "open_history"]
