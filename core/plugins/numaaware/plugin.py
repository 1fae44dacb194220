"""Plugin numa-aware: the filter, the scores, and who has which CPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from pumice.config.arguments import Arguments
from pumice.core.devices.numa.asking import asked_by, is_guaranteed
from pumice.core.devices.numa.hints import given_on, hints, judged
from pumice.core.devices.numa.topology import CPU, NONE
from pumice.core.plugins.numaaware.cells import Cells
from pumice.core.session.points.by_rows import RowCheck, RowScore
from pumice.core.session.points.nodes import Reads
from pumice.core.session.reasons import Code, Reason

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pumice.core.devices.numa.topology import Cpus, Topology
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.session.points.nodes import FloatArray
    from pumice.core.session.session import Session

NAME: Final = "numa-aware"
POLICY: Final = "volcano.sh/numa-topology-policy"
STATIC: Final = "static"
INDIFFERENT: Final = ("", "none")
FULL: Final = 100


class NumaOutcome(NamedTuple):
    """Of a pod on a node: why it is refused; else the CPUs it would get, None where NUMA plays no part."""

    refusal: Reason | None
    cpus: Cpus | None = None


UNCONCERNED: Final = NumaOutcome(None)


def policy_of(task: Task) -> str:
    """What the pod asks of the node's topology manager, "" for nothing."""
    policy = task.annotations.get(POLICY, "")
    return "" if policy in INDIFFERENT else policy


class Placements:
    """What pods would get, and have."""

    def __init__(self, session: Session, cells: Cells) -> None:
        self._session, self.cells = session, cells
        self._guaranteed: dict[int, bool] = {}
        self._given: dict[int, tuple[int, Cpus]] = {}  # task row -> node row and CPUs

    def concerns(self, template: PodTemplate) -> bool:
        """Whether NUMA plays a part for such pods."""
        found = self._guaranteed.get(template.number)
        if found is None:
            found = self._guaranteed[template.number] = is_guaranteed(template)
        return found

    def outcome(self, task: Task, row: int) -> NumaOutcome:
        """On one node as it is now."""
        topology, policy = self.cells.topologies.get(row), policy_of(task)
        problem = self._problem(topology, policy, row)
        if problem is not None or topology is None:
            return NumaOutcome(Reason(NAME, Code.ERROR, problem)) if policy and problem else UNCONCERNED
        return self._by_container(task, topology, self.cells.free[row].get(CPU))

    def _problem(self, topology: Topology | None, policy: str, row: int) -> str | None:
        """Why the node takes no part; for a pod that asks for a policy it is refused."""
        if topology is None:
            return "numa info is empty"
        if topology.cpu_policy != STATIC:
            return "cpu manager policy isn't static"
        if not policy:
            return "nobody asks" if topology.policy in INDIFFERENT else None
        if policy != topology.policy:
            return f"task topology policy[{policy}] is different with node[{topology.policy}]"
        return None if self.cells.free[row].get(CPU) else "cpu allocatable map is empty"

    def _by_container(self, task: Task, topology: Topology, left: Cpus | None) -> NumaOutcome:
        total = NONE
        for name, wanted in asked_by(task.template):
            hinted = hints(topology, left, wanted) if wanted and left is not None else None
            on, admitted = judged(topology, hinted)
            if not admitted:
                text = f"container {name} cannot be assigned by numa"
                return NumaOutcome(Reason(NAME, Code.UNRESOLVABLE, text))
            given = given_on(topology, on, left or NONE, wanted)
            total, left = total | given, (left or NONE) - given
        return NumaOutcome(None, total)

    def allocate(self, task: Task, node: int) -> str | None:
        """A pod was put on a node: its CPUs are taken. Nothing is ever refused here."""
        if task.row in self._session.pre_filtered and self.concerns(task.template):
            cpus = self.outcome(task, node).cpus
            if cpus is not None:
                self._given[task.row] = node, cpus
                self._shift(node, cpus, taken=True)
        return None

    def deallocate(self, task: Task, node: int) -> str | None:
        """A pod was taken off again."""
        given = self._given.pop(task.row, None)
        if given is not None:
            self._shift(node, given[1], taken=False)
        return None

    def _shift(self, node: int, cpus: Cpus, *, taken: bool) -> None:
        free = self.cells.free[node]
        if CPU in free:
            free[CPU] = free[CPU] - cpus if taken else free[CPU] | cpus

    def placed(self) -> dict[int, tuple[int, Cpus]]:
        """Return the CPUs of this session's pods: task row -> node row and CPUs."""
        return self._given


class NumaCheck(RowCheck):
    """The filter for one task."""

    def __init__(self, session: Session, placements: Placements, task: Task) -> None:
        super().__init__(session.nodes.count)
        self._session, self._placements, self._task = session, placements, task

    def reject_one(self, row: int, /) -> int:
        """Reason number of one row, 0 where it passes: what `reject` says of it."""
        refusal = self._placements.outcome(self._task, row).refusal
        return 0 if refusal is None else self._session.reasons.intern(refusal)


class NumaScore(RowScore):
    """The scores for one task: the fewer cells its CPUs are spread over, the better, among the candidates."""

    normalised = True

    def __init__(self, session: Session, placements: Placements, task: Task, weight: int) -> None:
        super().__init__(session.nodes.count)
        self._placements, self._task, self._weight = placements, task, weight

    def score_one(self, row: int, /) -> float:
        """How many cells."""
        cpus, topology = self._placements.outcome(self._task, row).cpus, self._placements.cells.topologies.get(row)
        return float(len({topology.places[cpu].cell for cpu in cpus})) if cpus and topology is not None else 0.0

    def finish(self, raw: FloatArray, /) -> FloatArray:
        """NormalizeScore over the candidates' raw scores, times the weight."""
        most = float(raw.max()) if len(raw) else 0.0
        if most == 0.0:
            return np.full(len(raw), float(FULL * self._weight))
        return (FULL - np.floor(FULL * raw / most)) * self._weight


class NumaAware:
    """`weight` (1): of the scores. Only pods of quality Guaranteed take part."""

    name = NAME

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._weight = Arguments(self.name, arguments).get_int("weight", 1)
        self._placements: Placements | None = None
        self.reads = Reads(kind=self._kind)

    def _kind(self, task: Task) -> Hashable:
        return policy_of(task)

    def on_session_open(self, session: Session) -> None:
        """Register filter, scorer and event handlers."""
        carry: dict[str, Any] = session.carry.plugins.setdefault(self.name, {})
        placements = self._placements = Placements(session, Cells(session, carry))
        session.points.predicate.add(self.name, [NumaFilter(placements, self.reads)])
        session.points.batch_node_order.add(self.name, [NumaScorer(placements, self.reads, self._weight)])
        session.points.handle(placements.allocate, placements.deallocate)
        session.tellers.numa.append(placements.cells.told)

    def on_session_close(self, session: Session) -> None:
        """What was placed is not free in the next session."""
        if self._placements is not None:
            self._placements.cells.keep(self._placements.placed())


class NumaFilter(NamedTuple):
    """Passes the nodes whose cells have the CPUs that a pod asks for."""

    placements: Placements
    reads: Reads
    name: str = NAME

    def prepare(self, session: Session, task: Task) -> NumaCheck | None:
        """None: NUMA plays no part for the pod."""
        return NumaCheck(session, self.placements, task) if self.placements.concerns(task.template) else None


class NumaScorer(NamedTuple):
    """Scores nodes by how few cells a pod's CPUs would come from."""

    placements: Placements
    reads: Reads
    weight: int
    name: str = NAME

    def prepare(self, session: Session, task: Task) -> NumaScore | None:
        """None: the pod asks for no policy."""
        if not (policy_of(task) and self.placements.concerns(task.template)):
            return None
        return NumaScore(session, self.placements, task, self.weight)
