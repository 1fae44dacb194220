# SPDX-License-Identifier: Apache-2.0
"""Columns that outlive a session: the next one works in the same memory, and only rows that changed are copied anew.

A cycle that places one pod changes a handful of rows. To copy every column for it cost a third of that cycle on 10,000
nodes, and to give the memory back another sixth. So a view keeps the columns that a session was lent. A row in them may
differ from the view's for two reasons: the view has changed it since (each table lists its `changed` rows), or the
session has (it says so when it gives the columns back). These rows are *stale*, and copied before the next session
begins. This takes the place of an undo log: the view has the values that an undo would restore.

Two sets take turns. Readers of the newest session's queue tables come after its close, while the next session may be
open already: they read columns that nothing has touched since.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from pumice.core.errors import KeptColumnsError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

Arrays = dict[str, npt.NDArray[Any]]
At = int | npt.NDArray[np.intp]
"""Rows: the last axis of every column."""

FEW: Final = 8
"""To index so many rows one by one costs less than numpy's fancy indexing."""
SMALL: Final = 256
"""Of so short a table everything is copied: that costs no more than to look for what has changed."""


class KeepableTable(Protocol):
    """A table of the view: `changed` are the rows that were written since a snapshot last asked."""

    changed: set[int]

    def shape(self) -> tuple[int, int]:
        """Return how many dimensions and rows the columns have now."""
        ...

    def current(self) -> tuple[Arrays, list[Any]]:
        """Return the columns, not copied, and the objects beside them."""
        ...

    def derive(self, arrays: Arrays, at: slice | npt.NDArray[np.intp]) -> None:
        """Fill in what a session has beside copies, such as the room to come, for these rows."""
        ...

    def derived_like(self, arrays: Arrays) -> Arrays:
        """Return empty arrays for that."""
        ...


@dataclass(slots=True)
class Copies:
    """One table's columns as a session works on them."""

    arrays: Arrays
    handles: list[Any]
    shape: tuple[int, int]
    stale: set[int] = field(default_factory=set[int])
    source: Arrays = field(default_factory=dict[str, npt.NDArray[Any]])
    pairs: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]] = field(
        default_factory=list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]
    )

    def follow(self, now: Arrays) -> None:
        """Pair each array with the table's, which stay the same as long as the table does not grow."""
        if self.source is not now:
            self.source = now
            self.pairs = [(self.arrays[name], array) for name, array in now.items()]

    def copy(self, at: At) -> None:
        """Copy these rows of all columns."""
        for mine, theirs in self.pairs:
            if mine.ndim == 1:
                mine[at] = theirs[at]
            else:
                mine[:, at] = theirs[:, at]

    def copy_all(self) -> None:
        """Copy all rows of all columns."""
        for mine, theirs in self.pairs:
            mine[:] = theirs


def is_whole_cheaper(stale: int, count: int) -> bool:
    """Return whether to copy all of a table with `count` rows costs less than to copy the stale ones."""
    return count <= SMALL or stale * 4 > count


def copied(table: KeepableTable) -> Copies:
    """Return copies of all columns of a table."""
    now, handles = table.current()
    arrays = {name: array.copy() for name, array in now.items()}
    arrays |= table.derived_like(arrays)
    table.derive(arrays, slice(None))
    shape = table.shape()
    # Rows that are not used yet have no object.
    return Copies(arrays, [*handles, *[None] * (shape[1] - len(handles))], shape)


def brought_up(copies: Copies, table: KeepableTable) -> Copies:
    """Return the copies as the table is now: in the same memory, unless rows or dimensions have come."""
    if copies.shape != table.shape():
        return copied(table)
    stale = copies.stale
    if not stale:
        return copies
    now, handles = table.current()
    count = len(handles)
    copies.follow(now)
    if is_whole_cheaper(len(stale), count):
        copies.copy_all()
        copies.handles[:count] = handles
        table.derive(copies.arrays, slice(None))
    else:
        rows = np.fromiter(stale, dtype=np.intp, count=len(stale))
        places: Iterable[At] = stale if len(stale) <= FEW else [rows]
        for at in places:
            copies.copy(at)
        table.derive(copies.arrays, rows)
        for row in stale:
            copies.handles[row] = handles[row]
    stale.clear()
    return copies


KINDS: Final = 12
"""Sessions that are kept on one set of columns: one for each thing that may wait, and those of readers."""
LONGEST: Final = 1 << 16
"""Rows in the log of changes. A longer log is emptied, and its sessions are dropped."""


class KeptSession(Protocol):
    """A closed session."""

    def forget(self) -> None:
        """Release everything: the parts of a session refer to each other, so they would stay until the collector comes,
        and with them the objects of their snapshot.
        """
        ...


class KeptSessions:
    """The sessions that were closed on one set of columns, by what they were opened for: a later one of the same kind
    goes on with all that was made for these columns. `nodes`, `jobs`: rows that changed, oldest first; a session
    remembers how far it has read.
    """

    __slots__ = ("by_kind", "jobs", "nodes")

    def __init__(self) -> None:
        self.by_kind: dict[Hashable, KeptSession] = {}
        self.nodes: list[int] = []
        self.jobs: list[int] = []

    @property
    def heard(self) -> tuple[int, int]:
        """Return how far a session has read by now: of nodes, of jobs."""
        return len(self.nodes), len(self.jobs)

    def keep(self, kind: Hashable, session: KeptSession) -> None:
        """Keep a closed session; of too many kinds the one that was kept longest ago goes."""
        self.drop(kind)
        self.by_kind[kind] = session
        # Configurations that were loaded once may never come again.
        if len(self.by_kind) > KINDS:
            self.drop(next(iter(self.by_kind)))

    def drop(self, kind: Hashable) -> None:
        """Drop the session of this kind, if there is one."""
        if (session := self.by_kind.pop(kind, None)) is not None:
            session.forget()

    def drop_all(self) -> None:
        """Drop all sessions."""
        for kind in list(self.by_kind):
            self.drop(kind)

    def note(self, nodes: Iterable[int], jobs: Iterable[int]) -> None:
        """Note that these rows have changed."""
        self.nodes += nodes
        self.jobs += jobs
        if len(self.nodes) + len(self.jobs) > LONGEST:
            self.drop_all()
            self.nodes.clear()
            self.jobs.clear()


class Lease:
    """The columns that one session was lent, and the sessions that have worked on them before."""

    def __init__(self, tasks: Copies, nodes: Copies, jobs: Copies, sessions: KeptSessions | None = None) -> None:
        self.tasks, self.nodes, self.jobs = tasks, nodes, jobs
        self.sessions = sessions or KeptSessions()
        self.is_out = True
        self.is_checked = False  # whether what sessions keep is compared with what is made anew

    def renewed(self, tables: Sequence[KeepableTable]) -> Lease:
        """Return a lease of the same columns, brought up to date."""
        changed = self.nodes.stale.copy(), self.jobs.stale.copy()
        tasks, nodes, jobs = [
            brought_up(copies, table) for copies, table in zip((self.tasks, self.nodes, self.jobs), tables, strict=True)
        ]
        # In other memory nothing that was made for the old one may be read.
        same = tasks is self.tasks and nodes is self.nodes and jobs is self.jobs
        if not same:
            self.sessions.drop_all()
        lease = Lease(tasks, nodes, jobs, self.sessions if same else None)
        lease.sessions.note(*changed)
        return lease

    def give_back(self, tasks: Iterable[int], nodes: Iterable[int], jobs: Iterable[int]) -> None:
        """Take the columns back from a session that has written in these rows."""
        self.tasks.stale.update(tasks)
        self.nodes.stale.update(nodes)
        self.jobs.stale.update(jobs)
        self.is_out = False


class KeptColumns:
    """Lends the columns of one view to one session after another, and copies only stale rows between two of them.

    No log says what to undo: a session names the rows that it wrote, the view knows which it changed, and the view has
    the right values of both.
    """

    def __init__(self, tasks: KeepableTable, nodes: KeepableTable, jobs: KeepableTable) -> None:
        self._tables = tasks, nodes, jobs
        self._leases: list[Lease | None] = [None, None]

    def note(self, *, moved: bool) -> None:
        """Note that a snapshot is taken: rows that change from here on it does not see. `moved`: of nodes."""
        if moved:
            for lease in self._leases:
                if lease is not None:
                    lease.sessions.drop_all()
            self._leases = [None, None]
        for place, table in enumerate(self._tables):
            for lease in self._leases:
                if lease is not None:
                    (lease.tasks, lease.nodes, lease.jobs)[place].stale.update(table.changed)
            table.changed.clear()

    def lend(self, *, checks: bool = False) -> Lease:
        """Lend columns to one session; a lease that never came back is replaced. `checks`: compare them with copies;
        raises KeptColumnsError.
        """
        older, newer = self._leases
        if older is not None and older.is_out:
            older.sessions.drop_all()
        if older is None or older.is_out:
            tasks, nodes, jobs = [copied(table) for table in self._tables]
            lease = Lease(tasks, nodes, jobs)
        else:
            lease = older.renewed(self._tables)
        self._leases = [newer, lease]
        lease.is_checked = checks
        if checks:
            self._demand_equal(lease)
        return lease

    def _demand_equal(self, lease: Lease) -> None:
        """Raise KeptColumnsError where the kept columns differ from copies: a row was written and not named."""
        for copies, table in zip((lease.tasks, lease.nodes, lease.jobs), self._tables, strict=True):
            fresh = copied(table)
            wrong = [name for name, array in fresh.arrays.items() if not np.array_equal(array, copies.arrays[name])]
            same = all(one is other for one, other in zip(fresh.handles, copies.handles, strict=True))
            if wrong or not same:
                names = ", ".join(wrong or ["handles"])
                raise KeptColumnsError(f"{type(table).__name__}: kept columns differ from the view's in {names}")
