"""The session's cards in thousandths, and what pods ask of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pumice.core.devices.milli.shares import FULL, CardAsk, NodeStates
from pumice.core.devices.milli.typical import MODELS, CardClass
from pumice.core.devices.vgpu import Vgpu
from pumice.core.devices.vgpu.asking import UNSAID, USE
from pumice.core.life.task import TaskStatus
from pumice.core.state.dimensions import CPU

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from pumice.core.devices.milli.shares import BoolArray, IntArray
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session

ENDED = (TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.UNKNOWN)


class CardWish(NamedTuple):
    """What a pod asks for: milli-cores of CPU, cards, MiB of each or, where more than 0, per cent of each."""

    cpu: int
    cards: int
    memory: int
    percent: int
    models: str

    def of(self, size: int) -> CardAsk:
        """Of cards with so many MiB: a share of one counts up to its whole thousandths."""
        milli = FULL * self.percent // 100 if self.percent else -(-FULL * self.memory // size) if size else 0
        return CardAsk(self.cpu, self.cards, min(milli, FULL) if self.cards else 0)


class CardColumns:
    """Over node rows. `sizes`: the distinct MiB that a node's cards have, `size`: which of them each node's have;
    `models`: the distinct types of cards; `most`: milli-cores and thousandths of cards that the largest nodes have.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.family = next((each for each in session.devices if isinstance(each, Vgpu)), None)
        count = session.nodes.count
        kinds = [] if self.family is None else self.family.cards.types
        self.models = [*kinds, ""]
        first = np.full(count, -1) if self.family is None else self.family.cards.kind[:, :1].max(axis=1, initial=-1)
        self.model: IntArray = np.where(first >= 0, first, len(kinds))
        memory = np.zeros((count, 1), dtype=np.int64) if self.family is None else self.family.cards.memory
        self._memory: IntArray = memory
        self.there: BoolArray = memory > 0
        self.sizes, self.size = np.unique(memory.max(axis=1, initial=0), return_inverse=True)
        cards = FULL * np.count_nonzero(self.there, axis=1).max(initial=1)
        self.most = int(session.nodes.allocatable[CPU].max(initial=1.0)), int(cards)
        self._wishes: dict[tuple[int, str], CardWish] = {}

    def states(self, rows: slice | npt.NDArray[np.intp]) -> NodeStates:
        """Some nodes as they stand."""
        memory, there = self._memory[rows], self.there[rows]
        if self.family is None:
            left = np.zeros(memory.shape, dtype=np.int64)
        else:
            left = FULL * (memory - self.family.memory[rows]) // np.maximum(memory, 1)
        return NodeStates(left, there, self._session.nodes.idle[CPU][rows].astype(np.int64), self.model[rows])

    def wish_of(self, task: Task) -> CardWish:
        """What the pod asks for: of several containers all cards together, each as large as the largest."""
        models = task.annotations.get(USE, "").replace(",", MODELS)
        key = task.template.number, models
        found = self._wishes.get(key)
        if found is None:
            asked = () if self.family is None else self.family.asked_of(task.template)
            percents = [each.percent for each in asked if each.percent != UNSAID]
            found = self._wishes[key] = CardWish(
                cpu=int(task.template.request.milli_cpu),
                cards=sum(each.cards for each in asked),
                memory=max((each.memory for each in asked), default=0),
                percent=max(percents, default=0),
                models=models,
            )
        return found

    def classes(self) -> Iterable[CardClass]:
        """Of all pods that have not ended, as if all cards were as large as the largest."""
        size = int(self.sizes.max(initial=0))
        status = self._session.jobs.status
        for task in self._session.snapshot.tasks.handles:
            if task is not None and status[task.row] not in ENDED:
                wish = self.wish_of(task)
                ask = wish.of(size)
                yield CardClass(ask.cpu, ask.milli, ask.cards, wish.models)
