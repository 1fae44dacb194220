"""Which nodes have the devices that a pod asks for, and how well they would be used."""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.core.session.points.by_rows import RowsCheck, RowsScore
from pumice.core.session.points.nodes import Reads
from pumice.core.session.reasons import Code, Reason

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from pumice.core.devices.family import Family
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import FloatArray, Rows
    from pumice.core.session.reasons import IntArray
    from pumice.core.session.session import Session

NAME: Final = "deviceshare"


class DeviceCheck(RowsCheck):
    """The filter for one task: of several kinds of devices the first that does not suffice is named."""

    def __init__(self, session: Session, families: Sequence[Family], task: Task) -> None:
        self._session, self._families, self._task = session, families, task
        self._rows = np.arange(session.nodes.count)

    def reject(self, rows: Rows, /) -> IntArray:
        """Reason number per row (`Session.reasons`), 0 where the node passes."""
        asked = self._rows[rows]
        if self._session.points.unforeseeable:
            self._note(rows)
        codes = np.zeros(len(asked), dtype=np.int32)
        for family in self._families:
            lacks = family.present[rows] & ~family.fitting(self._task, rows)
            places = (lacks & (codes == 0)).nonzero()[0]
            if family.uniform and len(places):
                codes[places] = self._code(family, int(asked[places[0]]))
            else:
                codes[places] = [self._code(family, row) for row in asked[places].tolist()]
        return codes

    def reject_one(self, row: int, /) -> int:
        """Reason number of one row: what each family says of the node, as in `reject`. It is asked for every node that
        something is placed on; without this and `score_one`, through columns of one, an allocation of cards takes 1.2
        times as long (`bench cards`).
        """
        if self._session.points.unforeseeable:
            self._note(slice(row, row + 1))
        for family in self._families:
            if family.present[row] and not family.fits(self._task, row):
                return self._code(family, row)
        return 0

    def _note(self, rows: Rows) -> None:
        """A process outside may be told of the scores."""
        for family in self._families:
            family.note_scores(self._task, rows)

    def _code(self, family: Family, row: int) -> int:
        text, is_error = family.refusal(self._task, row)
        return self._session.reasons.intern(Reason(NAME, Code.ERROR if is_error else Code.UNSCHEDULABLE, text))


class DeviceScore(RowsScore):
    """The scores for one task: the nodes' own, rounded, times the weight."""

    def __init__(self, families: Sequence[Family], task: Task, weight: int) -> None:
        self._families, self._task, self._weight = families, task, weight

    def score(self, rows: Rows, /) -> FloatArray:
        """Raw score per row, shape [len(rows)]."""
        total = self._families[0].scores(self._task, rows)
        for family in self._families[1:]:
            total = total + family.scores(self._task, rows)
        scores: FloatArray = np.floor(total + 0.5) * self._weight
        return scores

    def score_one(self, row: int, /) -> float:
        """Score of one row, found in the same way as by `DeviceCheck.reject_one`."""
        total = sum([family.score(self._task, row) for family in self._families])
        return floor(total + 0.5) * float(self._weight)


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
        return [family for family in self._families if family.concerns(task)]


class DeviceFilter(Looking):
    """Passes the nodes that have the devices a pod asks for."""

    def prepare(self, session: Session, task: Task) -> DeviceCheck | None:
        """None: the pod asks for no devices."""
        families = self.concerned(task)
        return DeviceCheck(session, families, task) if families else None


class DeviceScorer(Looking):
    """Scores how well nodes' devices would be used."""

    def prepare(self, session: Session, task: Task) -> DeviceScore | None:
        """None: the pod asks for no devices."""
        del session
        families = self.concerned(task)
        return DeviceScore(families, task, self._weight) if families else None
