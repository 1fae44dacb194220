# SPDX-License-Identifier: Apache-2.0
"""A cycle of Kubernetes' own scheduler: the inputs of a Volcano cycle go in; decisions and conditions of pods come out.
It ignores PodGroups, queues and the carry.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from pumice.core.cached import cached
from pumice.core.default_scheduler.profile import NAME, STAY, is_served, profile
from pumice.core.default_scheduler.room import RoomFilter
from pumice.core.digest import digest
from pumice.core.life.task import PREEMPTABLE_STATUSES, TaskStatus
from pumice.core.messages.decisions import CycleReport, CycleResult, PendingReason, PodCondition
from pumice.core.objects.metadata import Object
from pumice.core.plugins.nodeorder import NodeOrder
from pumice.core.plugins.pdb import KIND, budgets_of
from pumice.core.plugins.predicates.plugin import AFFINITY, CORDONED, TAINTS, Predicates
from pumice.core.plugins.predicates.pod_affinity import PodAffinityFilter
from pumice.core.plugins.predicates.ports import NodePorts
from pumice.core.plugins.predicates.topology_spread import TopologySpreadFilter
from pumice.core.plugins.predicates.volume_limits import VolumeLimits
from pumice.core.plugins.predicates.volume_zone import VolumeZone
from pumice.core.session.carry import SessionOptions
from pumice.core.session.closing.close import let_go
from pumice.core.session.reasons import Code, FitFailure
from pumice.core.session.search.node_search import ErrorCache
from pumice.core.session.session import Session
from pumice.core.session.trail.trail import NULL_TRAIL
from pumice.core.state.sources import total as total_allocatable
from pumice.core.state.tasks import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from pumice.config.schema import SchedulerConfig
    from pumice.core.kube.placed import Placed
    from pumice.core.objects.pod import Task
    from pumice.core.plugins.predicates.dynamic_resources import DynamicResources
    from pumice.core.plugins.predicates.volume_binding import VolumeBinding
    from pumice.core.session.carry import Carry, CycleClock
    from pumice.core.session.points.nodes import NodeFilter
    from pumice.core.session.reasons import IntArray, Reason, ReasonTable
    from pumice.core.session.search.node_search import NodeSearch
    from pumice.core.session.trail.trail import NullTrail
    from pumice.core.state.snapshot import Snapshot

# --- Pods that wait, in order

PENDING: Final = TaskStatus.PENDING.value


def waiting(snapshot: Snapshot) -> list[Task]:
    """Return the waiting pods by priority, then by age and name (PrioritySort)."""
    columns = snapshot.tasks
    alone = (columns.status == PENDING) & (columns.job == NOWHERE)
    handles = columns.handles
    rows: list[int] = alone.nonzero()[0].tolist()
    found = [task for row in rows if (task := handles[row]) is not None]
    return sorted([task for task in found if is_served(task) and not task.gated and not task.deleting], key=_turn)


def _turn(task: Task) -> tuple[int, float, str]:
    return -importance(task), task.created, task.key


def importance(task: Task) -> int:
    """Return spec.priority alone: Volcano's annotations do not count here."""
    return task.pod_priority or 0


# --- Refusals in kube-scheduler's words
# Source: kube-scheduler `framework/types.go` (FitError).

NO_NODES: Final = "no nodes available to schedule pods"


def first_filter(table: ReasonTable, number: int) -> tuple[Reason, ...]:
    """Return the reason of the first filter that refused a node."""
    reasons = table.reasons(number)
    return tuple([reason for reason in reasons if reason.plugin == reasons[0].plugin])


def curable(table: ReasonTable, codes: IntArray) -> npt.NDArray[np.bool_]:
    """Return [N]: the nodes whose refusal evictions might cure."""
    plain = [
        bool(number) and all(reason.code is Code.UNSCHEDULABLE for reason in first_filter(table, number))
        for number in range(int(codes.max(initial=0)) + 1)
    ]
    return np.array(plain, dtype=np.bool_)[codes]


def refusals(table: ReasonTable, codes: IntArray) -> Counter[str]:
    """Return reason -> how many nodes gave it; a node may give several."""
    counts: Counter[str] = Counter()
    for number, nodes in enumerate(np.bincount(codes).tolist() if len(codes) else ()):
        for reason in first_filter(table, number) if nodes else ():
            counts[reason.text] += nodes
    return counts


def unavailable(nodes: int, counts: Mapping[str, int]) -> str:
    """Return a message like ``0/4 nodes are available: 1 node(s) were unschedulable, 3 Insufficient cpu.``"""
    told = ", ".join(sorted([f"{number} {text}" for text, number in counts.items()]))
    return f"0/{nodes} nodes are available:" + (f" {told}." if told else "")


def nowhere(nodes: int, reason: str) -> str:
    """Return one reason for all nodes."""
    return f"0/{nodes} nodes are available: {reason}."


# --- Preemption
# Source: kube-scheduler `plugins/defaultpreemption`, `framework/preemption`. Kubernetes begins to look for nodes at a
# random one; here it is the first by name.

FEWEST: Final = 100
SHARE: Final = 10  # per cent of the nodes
"""Number of candidates that is enough (minCandidateNodesAbsolute, minCandidateNodesPercentage)."""
NEVER: Final = "not eligible due to preemptionPolicy=Never."
LEAVING: Final = "not eligible due to a terminating pod on the nominated node."
NO_VICTIMS: Final = "No preemption victims found for incoming pod"
NO_HELP: Final = "Preemption is not helpful for scheduling"
LIFT: Final = 2**31  # makes every priority positive, so that fewer victims of negative priority are less loss


class Sacrifice(NamedTuple):
    """The cost of preempting on one node: the victims, the most important first, and how many of them a budget
    protects.
    """

    node: int
    victims: tuple[Task, ...]
    violations: int


class Preemption:
    """Preemption in one session. `room` is the filter that knows which pods are leaving."""

    def __init__(self, session: Session, room: RoomFilter) -> None:
        self._session, self._room = session, room
        self._budgets = budgets_of(session.objects.get(KIND, {}))
        self._in_vain: dict[tuple[NodeSearch, int], str] = {}
        self._as_of = 0, 0  # binds and evictions

    @cached
    def _lowest(self) -> int:
        """Return the lowest priority of any pod on a node: pods that are not above it find no victims."""
        tasks = self._session.snapshot.tasks
        rows = np.flatnonzero(np.isin(tasks.status, PREEMPTABLE_STATUSES)).tolist()
        return min((importance(task) for row in rows if (task := tasks.handles[row]) is not None), default=LIFT)

    def not_eligible(self, task: Task, node: int) -> str:
        """Return why the pod may not preempt now, "" if it may (PodEligibleToPreemptOthers). `node`: the node on which
        room is being made for it, -1 for none.
        """
        if task.template.preemption_policy == "Never":
            return NEVER
        leaving = node >= 0 and any(
            self._session.jobs.status[each.row] == TaskStatus.RELEASING and importance(each) < importance(task)
            for each in self._session.nodes.tasks_on(node)
        )
        return LEAVING if leaving else ""

    def best(self, task: Task, search: NodeSearch, codes: IntArray) -> tuple[Sacrifice | None, str]:
        """Return the node on which preemption loses the least, or why there is none. Equal pods of equal importance
        share the reason until something is decided.
        """
        as_of = len(self._session.binds), len(self._session.evicts)
        if as_of != self._as_of:
            self._in_vain.clear()
            self._as_of = as_of
        alike = search, importance(task)
        if alike in self._in_vain:
            return None, self._in_vain[alike]
        found = self._candidates(task, search, codes)
        if found:
            return min(found, key=self._loss), ""
        helpless = len(codes) - int(np.count_nonzero(curable(self._session.reasons, codes)))
        counts = {text: n for text, n in ((NO_VICTIMS, len(codes) - helpless), (NO_HELP, helpless)) if n}
        self._in_vain[alike] = unavailable(len(codes), counts)
        return None, self._in_vain[alike]

    def _candidates(self, task: Task, search: NodeSearch, codes: IntArray) -> list[Sacrifice]:
        """Return nodes with the victims that would make room, in the nodes' order, as many as are enough."""
        nodes: list[int] = np.flatnonzero(curable(self._session.reasons, codes)).tolist()
        wanted = max(len(codes) * SHARE // 100, FEWEST)
        found: list[Sacrifice] = []
        for node in nodes if importance(task) > self._lowest else ():
            room = self.on_node(task, search, node)
            if room is not None:
                found.append(room)
            if len(found) == wanted:
                break
        return found

    def fits_after_leaving(self, search: NodeSearch, node: int) -> bool:
        """Return whether the node will do when all pods that are leaving have left."""
        self._room.after_evictions = True
        try:
            return not search.filter_code(node)
        finally:
            self._room.after_evictions = False

    # --- one node

    def on_node(self, task: Task, search: NodeSearch, node: int) -> Sacrifice | None:
        """Return the victims on a node (SelectVictimsOnNode): all lower pods leave; then each one that still leaves
        room comes back, protected ones first.
        """
        session, status = self._session, self._session.jobs.status
        lower = [
            each
            for each in session.nodes.tasks_on(node)
            if importance(each) < importance(task) and status[each.row] in PREEMPTABLE_STATUSES
        ]
        if not lower:
            return None
        bound = {each.row: status[each.row] == TaskStatus.BOUND for each in lower}
        for each in lower:
            session.release(each)
        gone = lower
        try:
            if not self.fits_after_leaving(search, node):
                return None
            protected, others = self._by_budget(sorted(lower, key=self._rank))
            victims: list[Task] = []
            for each in (*protected, *others):
                session.unrelease(each, bound=bound[each.row])
                if not self.fits_after_leaving(search, node):
                    session.release(each)
                    victims.append(each)
            gone = victims
        finally:
            for each in gone:
                session.unrelease(each, bound=bound[each.row])
        violations = sum(each in protected for each in victims)
        return Sacrifice(node, tuple(sorted(victims, key=self._rank)), violations)

    def _by_budget(self, tasks: Sequence[Task]) -> tuple[list[Task], list[Task]]:
        """Return the pods whose eviction would violate a budget, and the others (filterPodsWithPDBViolation)."""
        left = {each.number: each.allowed for budgets in self._budgets.values() for each in budgets}
        protected: list[Task] = []
        others: list[Task] = []
        for task in tasks:
            drawn = [each for each in self._budgets.get(task.namespace, ()) if task.labels and each.is_drawn_on(task)]
            for budget in drawn:
                left[budget.number] -= 1
            (protected if any(left[budget.number] < 0 for budget in drawn) else others).append(task)
        return protected, others

    def _rank(self, task: Task) -> tuple[int, float, str]:
        """Return the sort key by importance: priority, then run time (MoreImportantPod)."""
        return -importance(task), self._began(task), task.key

    def _began(self, task: Task) -> float:
        return task.started or self._session.clock.now

    def _loss(self, room: Sacrifice) -> tuple[int, int, int, int, float, int]:
        """Return the key of pickOneNodeForPreemption: fewest violations, lowest highest priority, smallest sum of
        priorities, fewest victims, latest start of the highest victim, lowest node name.
        """
        priorities = [importance(each) for each in room.victims]
        highest = max(priorities, default=-LIFT)
        began = min((self._began(each) for each in room.victims if importance(each) == highest), default=0.0)
        total = sum(priority + LIFT for priority in priorities)
        return room.violations, highest, total, len(priorities), -began, room.node


# --- Filters, in the order of the default profile
# Source: kube-scheduler `default_plugins.go` (MultiPoint). Kubernetes asks no further filter about a node that one
# has refused. Here later ones may add their reasons behind the first; `pumice.core.default_scheduler.cycle` reads the
# first alone.


class KubeFilters(Predicates):
    """The plugin predicates in Kubernetes' order, with room as one of the filters."""

    def __init__(self, arguments: Object) -> None:
        super().__init__(arguments)
        self.room = RoomFilter()

    def filters(self, placed: Placed, reserving: list[VolumeBinding | DynamicResources]) -> list[NodeFilter]:
        """Return the filters NodeUnschedulable, TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit,
        NodeVolumeLimits, VolumeBinding, VolumeZone, PodTopologySpread, InterPodAffinity and DynamicResources.
        """
        binding, resources = reserving
        return [
            CORDONED,
            TAINTS,
            AFFINITY,
            NodePorts(placed),
            self.room,
            VolumeLimits(placed),
            binding,
            VolumeZone(),
            TopologySpreadFilter(placed),
            PodAffinityFilter(placed),
            resources,
        ]


# --- The cycle: one pod after another
# Source: kube-scheduler `schedule_one.go`.

# --- Nominations
# A nomination that is not visible yet would be made twice. kube-scheduler keeps them in memory (its nominator); here
# they are in the carry, and so in the journal.


class KubeNominations:
    """Nominated nodes of waiting pods. The carry holds those that the pods themselves do not show yet: uid -> node."""

    def __init__(self, carry: Carry, pods: Sequence[Task]) -> None:
        self._carry = carry
        known = carry.plugins.get(NAME, {})
        self._unseen: dict[str, str] = {
            task.uid: known[task.uid] for task in pods if task.uid in known and known[task.uid] != task.nominated
        }
        self._write()

    def of(self, task: Task) -> str:
        """Return the newest nomination of a pod, "" for none."""
        return self._unseen.get(task.uid, task.nominated)

    def note(self, task: Task, node: str) -> None:
        """Note that room is being made for the pod on a node; "" for none any more."""
        if node != task.nominated:
            self._unseen[task.uid] = node
            self._write()

    def _write(self) -> None:
        self._carry.plugins.pop(NAME, None)
        if self._unseen:
            self._carry.plugins[NAME] = dict(self._unseen)


MOST_A_CYCLE: Final = 20
"""For so many pods room is made in one cycle: each may take as long as placing a thousand, and others wait."""
UNSCHEDULABLE: Final = "Unschedulable"
PREEMPTED: Final = "preempted by a pod of higher priority"
NO_HELP_ANYWHERE: Final = "0/{0} nodes are available: {0} Preemption is not helpful for scheduling."


class OneByOne:
    """Places pods in an open session. `conditions`: to be written on pods that found no node; `pending`: the reason for
    each such pod, written already or not, by "namespace/name".
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
        """Put pods first, among equals, that room is being made for."""
        return -importance(task), not self._nominations.of(task)

    def take_all(self) -> None:
        """Place pods one after the other until much room has been made: the decisions cause the next cycle."""
        for task in self._pods:
            if self._rooms_made == MOST_A_CYCLE:
                break
            self._take(task)

    def _take(self, task: Task) -> None:
        """Place the next pod."""
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
        """Run PostFilter for a pod without a node."""
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
        """Reserve the room that is being made for the pod against pods of lower priority, which come after it."""
        if not self.session.place(task, node, TaskStatus.PIPELINED):
            self.session.unplace(task)

    def _fail(self, task: Task, message: str, nominated: str | None) -> None:
        """Record a failure. `nominated`: the node on which room is being made for the pod, None to clear it, "" to
        leave it.
        """
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


def decide(
    snapshot: Snapshot, in_force: SchedulerConfig, clock: CycleClock, carry: Carry, trail: NullTrail = NULL_TRAIL
) -> CycleResult:
    """Place every pod that waits for this scheduler, one after the other, on the snapshot, which is taken over.
    `in_force`: Volcano's configuration, which says how the view counts volumes. `trail`: as in `opened`.
    """
    turn = opened(snapshot, in_force, clock, carry, trail)
    turn.take_all()
    return closed(turn)


def opened(
    snapshot: Snapshot, in_force: SchedulerConfig, clock: CycleClock, carry: Carry, trail: NullTrail = NULL_TRAIL
) -> OneByOne:
    """Return a session of this scheduler; `trail` records every look at the nodes."""
    pods, total = waiting(snapshot), total_allocatable(snapshot.derived).clone()
    session = Session(snapshot, profile(in_force), clock, carry.copy(), SessionOptions(), total, trail)
    session.action = NAME
    filters = KubeFilters({})
    for plugin in (filters, NodeOrder({})):
        plugin.on_session_open(session)
    return OneByOne(session, filters, pods)


def closed(turn: OneByOne) -> CycleResult:
    """Return the decisions and writes. The session cannot be used afterwards."""
    session = turn.session
    session.trail.end()
    binds, evicts, conditions = tuple(session.binds), tuple(session.evicts), tuple(turn.conditions)
    result = CycleResult(
        cycle=session.clock.cycle,
        digest=digest(binds, evicts, conditions, (), ()),
        binds=binds,
        evicts=evicts,
        pod_conditions=conditions,
        carry=session.carry.to_dict(),
        report=CycleReport(created=tuple([task.created for task in session.bound]), pending=turn.pending),
    )
    let_go(session)
    return result
