"""Binds that the api refused: a node was found, and the pod is not on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pumice.cluster.kube.scheduler_words import FAILED, refused_bind
from pumice.core.life.task import TaskStatus
from pumice.core.messages.events import BindRefused, BindTimedOut, Bound, Outcome
from pumice.storage import codec
from pumice.storage.journal import OUTCOME
from pumice.storage.sqlite import SqliteJournal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pumice.core.objects.pod import Task
    from pumice.core.state.view import View

BATCH: Final = 5_000
NO_ANSWER: Final = "no answer came"
WAITING: Final = (TaskStatus.PENDING, TaskStatus.BINDING)


@dataclass(frozen=True, slots=True)
class RefusedBind:
    """`node`: where the pod was to go, "" where that is not known; `times`: how often in a row that failed, 0 where
    nobody counted; `why`: what was said the last time.
    """

    node: str
    times: int
    why: str

    @property
    def sentence(self) -> str:
        """Return a sentence about it."""
        where = f" to {self.node}" if self.node else ""
        often = f" {self.times} times" if self.times > 1 else ""
        return f"bind{where} refused{often}: {self.why}"


def told_by(task: Task) -> RefusedBind | None:
    """Return what the pod's own condition says of a refused bind; None where it says something else."""
    reason, message = task.condition or ("", "")
    return RefusedBind(*_place(message)) if reason == FAILED else None


def _place(message: str) -> tuple[str, int, str]:
    node, why = refused_bind(message)
    return node, 0, why


def refused_among(view: View, pods: Iterable[str], counted: Mapping[str, RefusedBind]) -> dict[str, RefusedBind]:
    """By pod ("namespace/name"), of those without a node: what was `counted` (by uid) in a journal, else what the pod
    says.
    """
    found: dict[str, RefusedBind] = {}
    for pod in pods:
        task = view.tasks.by_key[pod]
        refused = counted.get(task.uid) or told_by(task)
        if refused is not None and view.tasks.status[task.row] in WAITING:
            found[pod] = refused
    return found


async def refused_in(file: Path, cycle: int | None) -> dict[str, RefusedBind]:
    """By uid: the pods of which the last bind did not come true, in a journal, which is only read. `cycle`: as far as
    its decisions and those before it go; None: all.
    """
    last: dict[str, RefusedBind] = {}
    after = 0
    async with await SqliteJournal.open(file, read_only=True) as journal:
        while batch := await journal.read(after, (OUTCOME,), BATCH):
            for stored in batch:
                outcome = codec.decode(stored.payload, Outcome)
                if isinstance(outcome, Bound | BindRefused | BindTimedOut) and _counts(outcome.cause, cycle):
                    _follow(last, outcome)
            after = batch[-1].sequence
    return last


def _counts(cause: str, cycle: int | None) -> bool:
    """A cause is "cycle/uid"."""
    return cycle is None or int(cause.partition("/")[0]) <= cycle


def _follow(last: dict[str, RefusedBind], outcome: Bound | BindRefused | BindTimedOut) -> None:
    before = last.pop(outcome.uid, None)
    if isinstance(outcome, Bound):
        return
    times = before.times + 1 if before is not None and before.node == outcome.node else 1
    why = NO_ANSWER if isinstance(outcome, BindTimedOut) else outcome.message or outcome.reason
    last[outcome.uid] = RefusedBind(outcome.node, times, why)
