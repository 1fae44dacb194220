"""A session followed from elsewhere: opened on columns put together from deltas, changed as the other one was changed,
and asked about the same rows.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from core.actions.dry_run import DryRun
from core.cycle import open_session
from core.errors import ReplicaError
from core.replica.delta import Delta, applied
from core.session.recorded import Opening, RecordedSession, own_columns, repeat
from core.session.residents import Residents
from core.state.dimensions import Dimensions
from core.state.snapshot import JobColumns, NodeColumns, Snapshot, TaskColumns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from config.schema import SchedulerConfig
    from core.actions.candidates import RowArray
    from core.actions.findings import Finding
    from core.session.carry import Carry, Clock, SessionOptions
    from core.session.recorded import Change
    from core.session.session import Session

PARTS: dict[str, Any] = {"tasks": TaskColumns, "nodes": NodeColumns, "jobs": JobColumns}


class Begin(NamedTuple):
    """A session is to be opened: what its columns are, against the ones before, and the rest of what it began with.

    `specs_changed`: what was worked out of the nodes' specifications does not hold any more.
    """

    changes: Delta
    dimensions: tuple[str, ...]
    specs_changed: bool
    config: SchedulerConfig
    clock: Clock
    carry: Carry
    options: SessionOptions


class Follow(NamedTuple):
    """What was done to the session since: `changes` in order, and phases of jobs, by row, that are not as they were."""

    changes: list[Change]
    phases: dict[int, int]


class Question(NamedTuple):
    """A dry run: the preemptor's row, the candidate nodes' rows in order, how many are enough, whom to take from."""

    preemptor: int
    nodes: RowArray
    want: int
    own_job: bool


def question_of(dry_run: DryRun) -> Question:
    """The same dry run, to be asked elsewhere."""
    return Question(dry_run.preemptor.row, dry_run.nodes, dry_run.want, dry_run.own_job)


def follow(session: RecordedSession, seen: int) -> Follow:
    """What was done since the first `seen` changes."""
    now, then = session.snapshot.jobs.phase, session.began.snapshot.jobs.phase
    rows = np.flatnonzero(now != then)
    return Follow(session.changes[seen:], dict(zip(rows.tolist(), now[rows].tolist(), strict=True)))


class Replica:
    """One of them. Everything it is told comes from one session after the other of one scheduler."""

    def __init__(self) -> None:
        self.columns: dict[str, Any] = {}
        self._dimensions = Dimensions()
        self._memo: dict[Any, Any] = {}
        self._kept: dict[str, Any] = {}
        self._session: Session | None = None
        self._facts: Residents | None = None
        self._dry_run: DryRun | None = None

    def begin(self, told: Begin) -> None:
        """Open the next session."""
        self.columns = applied(self.columns, told.changes)
        for place, name in enumerate(told.dimensions):
            if self._dimensions.index(name) != place:
                raise ReplicaError(
                    f"the resource {name!r} is number {self._dimensions.index(name)} here, {place} there"
                )
        if told.specs_changed:
            self._memo = {}
        snapshot = self._snapshot()
        session = open_session(own_columns(snapshot), told.config, told.clock, told.carry, told.options)
        self._session, self._facts, self._dry_run = session, Residents(session), None

    def follow(self, told: Follow) -> None:
        """Do what was done."""
        session = self._opened()
        for change in told.changes:
            repeat(session, change)
        for row, phase in told.phases.items():
            session.jobs.phase[row] = phase

    def ask(self, question: Question) -> None:
        """The dry run that the next rows are about."""
        session, facts = self._opened(), self._facts
        preemptor = session.snapshot.tasks.handles[question.preemptor]
        if preemptor is None or facts is None:
            raise ReplicaError(f"there is no task in row {question.preemptor}")
        nodes = np.asarray(question.nodes, dtype=np.intp)
        self._dry_run = DryRun(session, facts, preemptor, nodes, question.want, own_job=question.own_job)

    def try_rows(self, first: int, last: int) -> Sequence[Finding]:
        """The findings of rows first..last-1 of the dry run."""
        if self._dry_run is None:
            raise ReplicaError("rows of no dry run")
        return self._dry_run.try_rows(first, last)

    def _opened(self) -> Session:
        if self._session is None:
            raise ReplicaError("no session has been opened")
        return self._session

    def _snapshot(self) -> Snapshot:
        own: dict[str, Any] = {"dimensions": self._dimensions, "nodes.memo": self._memo, "kept": self._kept}
        columns = {**self.columns, **own}
        parts: dict[str, Any] = {
            name: part(**{field.name: columns[f"{name}.{field.name}"] for field in fields(part)})
            for name, part in PARTS.items()
        }
        rest: dict[str, Any] = {
            field.name: columns[field.name] for field in fields(Snapshot) if field.name not in PARTS
        }
        return Snapshot(**parts, **rest)


def begin(opening: Opening, changes: Delta, *, specs_changed: bool) -> Begin:
    """Tell of an opening."""
    rest = opening.dimensions, specs_changed, opening.config, opening.clock, opening.carry, opening.options
    return Begin(changes, *rest)
