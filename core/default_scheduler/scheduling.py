"""One pod at a time: a node by filters and scores, else room made by preemption, else the reason.

Source: kube-scheduler `schedule_one.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.core.default_scheduler.filters import KubeFilters
from pumice.core.default_scheduler.nominations import KubeNominations
from pumice.core.default_scheduler.preemption import Preemption
from pumice.core.default_scheduler.profile import STAY
from pumice.core.default_scheduler.waiting import importance
from pumice.core.default_scheduler.words import NO_NODES, nowhere, refusals, unavailable
from pumice.core.life.task import TaskStatus
from pumice.core.messages.decisions import PendingReason, PodCondition
from pumice.core.session.reasons import FitFailure
from pumice.core.session.search.node_search import ErrorCache

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.session.reasons import IntArray
    from pumice.core.session.search.node_search import NodeSearch
    from pumice.core.session.session import Session

AT_ONCE: Final = 20
"""For so many pods room is made in one cycle: each may take as long as placing a thousand, and others wait."""
UNSCHEDULABLE: Final = "Unschedulable"
PREEMPTED: Final = "preempted by a pod of higher priority"
NO_HELP_ANYWHERE: Final = "0/{0} nodes are available: {0} Preemption is not helpful for scheduling."


class OneByOne:
    """Places pods in a session that is open. `conditions`: what is to be written on those that found no node;
    `pending`: why each of them did not, by "namespace/name", written already or not.
    """

    def __init__(self, session: Session, filters: KubeFilters, pods: Sequence[Task]) -> None:
        self.session = session
        self._nominations = KubeNominations(session.carry, pods)
        self._pods = sorted(pods, key=self._turn)
        self._room = filters.room
        self._preemption = Preemption(session, filters.room)
        self.conditions: list[PodCondition] = []
        self.pending: dict[str, PendingReason] = {}
        self._rooms_made = 0

    def _turn(self, task: Task) -> tuple[int, bool]:
        """Of equals those first for whom room is being made."""
        return -importance(task), not self._nominations.of(task)

    def take_all(self) -> None:
        """One after the other, until much room has been made: what was decided brings the next cycle about."""
        for task in self._pods:
            if self._rooms_made == AT_ONCE:
                break
            self._take(task)

    def _take(self, task: Task) -> None:
        """The next pod."""
        session, count = self.session, self.session.nodes.count
        if not count:
            self._fail(task, NO_NODES, None)
            return
        try:
            search = session.search_for(task, room=False)
        except FitFailure as failure:
            self._fail(
                task, f"{nowhere(count, failure.reason.text)} preemption: {NO_HELP_ANYWHERE.format(count)}", None
            )
            return
        search.refresh(ErrorCache(enabled=False))
        node, codes = search.choose()
        if node < 0:
            self._without_node(task, search, codes.copy())
        elif session.place(task, node, TaskStatus.ALLOCATED):
            session.emit_bind(task)
        else:
            session.unplace(task)
            self._fail(task, session.objection, None)

    def _without_node(self, task: Task, search: NodeSearch, codes: IntArray) -> None:
        """PostFilter."""
        why = unavailable(len(codes), refusals(self.session.reasons, codes))
        node = self.session.nodes.row.get(self._nominations.of(task), -1)
        refused = self._preemption.not_eligible(task, node)
        nominated: str | None = ""
        if not refused:
            nominated = None
            room, refused = self._preemption.best(task, search, codes)
            if room is not None and self._make_room(task, room.node, room.victims):
                self._fail(task, why, self.session.nodes.names[room.node])
                return
        self._fail(task, f"{why} preemption: {refused}", nominated)
        if node >= 0 and self._preemption.fits_after_leaving(search, node):
            self._promise(task, node)

    def _make_room(self, task: Task, node: int, victims: tuple[Task, ...]) -> bool:
        statement = self.session.statement()
        for victim in victims:
            statement.evict(victim, PREEMPTED, task.key)
        if not statement.pipeline(task, node, evicted=True):
            statement.discard()
            return False
        statement.commit()
        self._room.evicted.add(node)
        self._rooms_made += 1
        return True

    def _promise(self, task: Task, node: int) -> None:
        """Room that is being made for it is nobody's of lower priority: those come after it."""
        if not self.session.place(task, node, TaskStatus.PIPELINED):
            self.session.unplace(task)

    def _fail(self, task: Task, message: str, nominated: str | None) -> None:
        """`nominated`: the node on which room is being made for it, None: there is none any more, "": as it was."""
        said, known = (UNSCHEDULABLE, message), self._nominations.of(task)
        self.pending[task.key] = PendingReason(*said)
        news = said if said != task.condition else ("", "")
        if nominated is None and (not known or STAY in self.session.config.pumice.fix):
            nominated = ""
        nomination = nominated if nominated != task.nominated else ""
        if nominated != "":
            self._nominations.note(task, nominated or "")
        if any(news) or nomination != "":
            self.conditions.append(PodCondition(task.namespace, task.name, task.uid, *news, nomination))
