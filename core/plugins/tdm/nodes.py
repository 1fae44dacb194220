"""Which revocable nodes a task may use, and that it should rather use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.core.session.points.nodes import Reads
from pumice.core.session.points.ready import ReadyCheck, ReadyScore
from pumice.core.session.reasons import Code, Reason

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.plugins.tdm.zones import Zones
    from pumice.core.session.session import Session

NAME: Final = "tdm"
NOT_ALLOWED: Final = "not allow to dispatch to revocable node"
FULL_SCORE: Final = 100.0


def is_revocable(task: Task) -> bool:
    """Whether the task may go to nodes that are taken back."""
    return bool(task.revocable_zone)


class RevocableNodes:
    """Filter and scorer in one: both ask whether the node's zone is open, and whether the task may be revoked."""

    name = NAME
    reads = Reads(kind=is_revocable)

    def __init__(self, session: Session, zones: Zones) -> None:
        self._zones = [spec.revocable_zone for spec in session.nodes.specs]
        self._problems = [zones.problem(zone) if zone else "" for zone in self._zones]
        self._session = session
        self._codes: dict[bool, ReadyCheck] = {}

    @property
    def any(self) -> bool:
        """Whether there are revocable nodes at all."""
        return any(self._zones)


class RevocableFilter(RevocableNodes):
    """A closed zone takes nobody; an open one only tasks that may be revoked."""

    def prepare(self, session: Session, task: Task) -> ReadyCheck | None:
        """The answer for tasks of this kind."""
        if not self.any:
            return None
        allowed = bool(task.revocable_zone)
        if allowed not in self._codes:
            codes = [
                self._code(zone, problem, allowed) for zone, problem in zip(self._zones, self._problems, strict=True)
            ]
            self._codes[allowed] = ReadyCheck(np.array(codes, dtype=np.int32))
        return self._codes[allowed]

    def _code(self, zone: str, problem: str, allowed: bool) -> int:
        if not zone or (allowed and not problem):
            return 0
        return self._session.reasons.intern(Reason(NAME, Code.UNRESOLVABLE, problem or NOT_ALLOWED))


class RevocableScorer(RevocableNodes):
    """100 for open revocable nodes, for tasks that may be revoked."""

    def prepare(self, session: Session, task: Task) -> ReadyScore | None:
        """The scores for tasks of this kind."""
        if not self.any or not task.revocable_zone:
            return None
        lines = zip(self._zones, self._problems, strict=True)
        return ReadyScore(np.array([FULL_SCORE if zone and not problem else 0.0 for zone, problem in lines]))
