# SPDX-License-Identifier: Apache-2.0
"""Binds that the api refused, and locks of nodes: a node was found, and the pod is not on it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pumice.cluster.kube.events import FAILED, refused_bind
from pumice.core.devices.locks import EXPIRES_S, StandingLock
from pumice.core.life.task import TaskStatus
from pumice.core.messages.events import BindRefused, BindTimedOut, Bound, Outcome
from pumice.core.objects.metadata import format_time
from pumice.questions.adviser.reasons import WaitCode, WaitReason, waits_for
from pumice.questions.history.mentions import REFUSED
from pumice.questions.history.naming import open_naming
from pumice.storage.journal import OUTCOME
from pumice.storage.records import read_as
from pumice.storage.sqlite import SqliteJournal, open_history

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
    from pathlib import Path

    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session
    from pumice.core.state.view import View
    from pumice.storage.journal import Journal

# --- Locks of nodes
# A lock names no pod (it is an annotation with a moment): it is of the pod that was given devices of that kind there
# at that moment, by this session, a bind that is on its way, or what the pod's annotations say.

MOMENTS: Final = ("volcano.sh/vgpu-time", "volcano.sh/bind-time", "volcano.sh/predicate-time", "hami.io/bind-time")
"""Annotations with the time at which a pod was given devices: in seconds since the epoch, or in nanoseconds."""
NANOSECONDS: Final = 1e9
_LATER: Final = 1e12  # no moment in seconds is so large


def standing_locks(session: Session) -> dict[str, str]:
    """Return node -> a sentence on the lock that blocked a pod there."""
    locks = next((family.locks for family in session.devices if family.locks is not None), None)
    found = {} if locks is None else locks.in_the_way
    return {session.nodes.names[row]: _told(session, row, lock) for row, lock in sorted(found.items())}


def _told(session: Session, row: int, lock: StandingLock) -> str:
    if lock.uid and (taker := _unbound(session, lock.uid)):
        return (
            f"lock {lock.name} of {session.nodes.names[row]} was taken for {taker}, which was not bound, in this cycle "
            "only: it is not on the node, and is taken anew in every cycle that goes the same way"
        )
    holder = next(_holders(session, row, lock), "")
    whose = f"was set for {holder}" if holder else "was set for no pod that is known here"
    since, ends = format_time(lock.since), format_time(lock.since + EXPIRES_S)
    return f"lock {lock.name} of {session.nodes.names[row]} {whose} at {since} and counts until {ends} at most"


def _unbound(session: Session, uid: str) -> str:
    """Return the pod that took a lock in this session and is not bound, with which the lock would be written; "" if it
    is."""
    took = next(task for task in session.snapshot.tasks.handles if task is not None and task.uid == uid)
    return "" if session.jobs.status[took.row] == TaskStatus.BINDING else took.key


def _holders(session: Session, row: int, lock: StandingLock) -> Iterator[str]:
    here = session.nodes.names[row]
    tasks = (task for task in session.snapshot.tasks.handles if task is not None and lock.uid)
    yield from (task.key for task in tasks if task.uid == lock.uid)
    coming = ((pod, needs) for pod, (node, needs) in session.snapshot.promised.items() if node == here)
    yield from (pod for pod, needs in coming if lock.name in dict(needs.locks))
    yield from (task.key for task in session.nodes.tasks_on(row) if lock.since in _moments(session, task))


def _moments(session: Session, task: Task) -> list[float]:
    """Return whole seconds."""
    notes: Mapping[str, str] = session.snapshot.annotations_of(task)
    said = [int(notes[name]) for name in MOMENTS if notes.get(name, "").isdigit()]
    return [float(int(each / NANOSECONDS)) if each > _LATER else float(each) for each in said]


BATCH: Final = 5_000
NO_ANSWER: Final = "no answer came"
WAITING: Final = (TaskStatus.PENDING, TaskStatus.BINDING)


@dataclass(frozen=True, slots=True)
class RefusedBind:
    """A refused bind. `node`: the pod's target, "" for unknown; `times`: how often in a row it failed, 0 for unknown;
    `why`: the last refusal.
    """

    node: str
    times: int
    why: str

    def reason(self, pod: str = "") -> WaitReason:
        """Return the reason for which the pod waits; `pod`: it is named in the sentence."""
        subject = f"node {self.node}" if self.node else ""
        return waits_for(WaitCode.BIND_REFUSED, f"{pod}: {self.sentence}" if pod else self.sentence, subject)

    @property
    def sentence(self) -> str:
        """Return a sentence about it."""
        where = f" to {self.node}" if self.node else ""
        often = f" {self.times} times" if self.times > 1 else ""
        return f"bind{where} refused{often}: {self.why}"


def told_by(task: Task) -> RefusedBind | None:
    """Return the refused bind in the pod's own condition; None in another condition."""
    reason, message = task.condition or ("", "")
    return RefusedBind(*_place(message)) if reason == FAILED else None


def _place(message: str) -> tuple[str, int, str]:
    node, why = refused_bind(message)
    return node, 0, why


def refused_among(view: View, pods: Iterable[str], counted: Mapping[str, RefusedBind]) -> dict[str, RefusedBind]:
    """Return by pod ("namespace/name"), of those without a node, the refusals `counted` (by uid) in a journal, else
    those in the pod's condition.
    """
    found: dict[str, RefusedBind] = {}
    for pod in pods:
        task = view.tasks.by_key[pod]
        refused = counted.get(task.uid) or told_by(task)
        if refused is not None and view.tasks.status[task.row] in WAITING:
            found[pod] = refused
    return found


async def refused_in(file: Path, cycle: int | None) -> dict[str, RefusedBind]:
    """Return by uid the pods whose last bind failed, in a journal, which is only read. `cycle`: as far as its decisions
    and those before it go; None for all. A bind that failed in an earlier segment shows in the pod's status alone.
    """
    last: dict[str, RefusedBind] = {}
    async with open_naming(file) as naming, _part(file, cycle) as journal:
        after = naming.before_first(REFUSED, (await journal.head()).cut)
        while batch := await journal.read(after, (OUTCOME,), BATCH):
            for stored in batch:
                outcome = read_as(stored, Outcome)
                if isinstance(outcome, Bound | BindRefused | BindTimedOut) and _counts(outcome.cause, cycle):
                    _follow(last, outcome)
            after = batch[-1].sequence
    return last


@asynccontextmanager
async def _part(file: Path, cycle: int | None) -> AsyncGenerator[Journal]:
    """Yield the part with that cycle, or the journal's own file."""
    if cycle is None:
        async with await SqliteJournal.open(file, read_only=True) as newest:
            yield newest
    else:
        async with open_history(file, cycle=cycle) as part:
            yield part


def _counts(cause: str, cycle: int | None) -> bool:
    """Return whether the decision is of the cycle or of one before; the cause is "cycle/uid"."""
    return cycle is None or int(cause.partition("/")[0]) <= cycle


def _follow(last: dict[str, RefusedBind], outcome: Bound | BindRefused | BindTimedOut) -> None:
    before = last.pop(outcome.uid, None)
    if isinstance(outcome, Bound):
        return
    times = before.times + 1 if before is not None and before.node == outcome.node else 1
    why = NO_ANSWER if isinstance(outcome, BindTimedOut) else outcome.message or outcome.reason
    last[outcome.uid] = RefusedBind(outcome.node, times, why)
