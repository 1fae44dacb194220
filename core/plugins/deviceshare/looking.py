"""Which nodes have the devices that a pod asks for, and how well they would be used."""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING, Final

import numpy as np

from core.session.points.nodes import Reads, Volatility
from core.session.reasons import Code, Reason

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from core.devices.family import Family
    from core.objects.pod import Task
    from core.session.points.nodes import FloatArray, Rows
    from core.session.reasons import IntArray
    from core.session.session import Session

NAME: Final = "deviceshare"


class DeviceCheck:
    """The filter for one task: of several kinds of devices the first that does not suffice is named."""

    volatility = Volatility.ROW

    def __init__(self, session: Session, families: Sequence[Family], task: Task) -> None:
        self._session, self._families, self._task = session, families, task

    def reject(self, rows: Rows) -> IntArray:
        """See `NodeCheck`."""
        if not isinstance(rows, slice):
            return np.array([self.reject_one(row) for row in rows.tolist()], dtype=np.int32)
        codes = np.zeros(self._session.nodes.count, dtype=np.int32)
        for family in self._families:
            for row in np.flatnonzero(family.present & ~family.fitting(self._task) & (codes == 0)).tolist():
                codes[row] = self._code(family, row)
        return codes[rows]

    def reject_one(self, row: int) -> int:
        """See `NodeCheck`."""
        for family in self._families:
            if family.present[row] and not family.fits(self._task, row):
                return self._code(family, row)
        return 0

    def _code(self, family: Family, row: int) -> int:
        return self._session.reasons.intern(Reason(NAME, Code.UNSCHEDULABLE, family.refusal(row)))


class DeviceScore:
    """The scores for one task: the nodes' own, rounded, times the weight."""

    volatility = Volatility.ROW
    normalised = False
    constant: float | None = None

    def __init__(self, families: Sequence[Family], task: Task, weight: int) -> None:
        self._families, self._task, self._weight = families, task, weight

    def score(self, rows: Rows) -> FloatArray:
        """See `NodeScore`."""
        if not isinstance(rows, slice):
            return np.array([self.score_one(row) for row in rows.tolist()], dtype=np.float64)
        total = np.zeros(len(self._families[0].present))
        for family in self._families:
            total += family.scores(self._task)
        found: FloatArray = np.floor(total + 0.5) * self._weight
        return found[rows]

    def score_one(self, row: int) -> float:
        """See `NodeScore`."""
        score = sum(family.score(self._task, row) for family in self._families if family.present[row])
        return float(floor(score + 0.5)) * self._weight

    def finish(self, raw: FloatArray) -> FloatArray:
        """Not normalised."""
        return raw


class Looking:
    """What filter and scorer have in common; `weight`: of the scores."""

    name = NAME

    def __init__(self, families: Sequence[Family], weight: int = 0) -> None:
        self._families, self._weight = families, weight
        self.reads = Reads(kind=self._kind)

    def _kind(self, task: Task) -> Hashable:
        return tuple([family.kind(task) for family in self.concerned(task)])

    def concerned(self, task: Task) -> list[Family]:
        """The kinds of devices that a pod asks for."""
        return [family for family in self._families if family.concerns(task.template)]


class DeviceFilter(Looking):
    """See `NodeFilter`."""

    def prepare(self, session: Session, task: Task) -> DeviceCheck | None:
        """None: the pod asks for no devices."""
        families = self.concerned(task)
        return DeviceCheck(session, families, task) if families else None


class DeviceScorer(Looking):
    """See `NodeScorer`."""

    def prepare(self, session: Session, task: Task) -> DeviceScore | None:
        """None: the pod asks for no devices."""
        del session
        families = self.concerned(task)
        return DeviceScore(families, task, self._weight) if families else None
