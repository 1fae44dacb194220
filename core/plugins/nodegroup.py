# SPDX-License-Identifier: Apache-2.0
"""nodegroup: let a queue's jobs use and prefer groups of nodes. Source: Volcano `plugins/nodegroup`."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.config.arguments import SWITCH, Argument, PluginArguments
from pumice.core.objects.metadata import Object, section
from pumice.core.plugins.plugin import BuiltInPlugin
from pumice.core.session.points.nodes import Reads
from pumice.core.session.points.rules import Check, ColumnRule, Score
from pumice.core.session.reasons import Code, Reason
from pumice.core.state.derived import derived
from pumice.core.state.sources import NODES

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.session.session import Session
    from pumice.core.state.sources import NodeSpecs

NAME: Final = "nodegroup"
STRICT: Final = Argument(
    "strict",
    SWITCH,
    True,
    "Whether nodes without a group take no pods, not even of queues without affinity.",
)
ORDERED: Final = Argument(
    "enablePreferredOrder", SWITCH, False, "Whether preferred groups count by their place in the list."
)
LABEL: Final = "volcano.sh/nodegroup-name"
ROOT: Final = "root"
FULL, HALF, UNLIKED = 100.0, 50.0, -1.0
NO_GROUP = Reason(NAME, Code.UNRESOLVABLE, "node group label not found")
NO_AFFINITY = Reason(NAME, Code.UNRESOLVABLE, "node group affinity not specified")
UNSATISFIED = Reason(NAME, Code.UNRESOLVABLE, "node does not satisfy the node group affinity")

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class QueueAffinity:
    """A queue's spec.affinity: groups required, preferred in order, refused, and unliked."""

    def __init__(self, spec: Object, *, refusal_counts: bool = False) -> None:
        towards, against = section(spec, "nodeGroupAffinity"), section(spec, "nodeGroupAntiAffinity")
        self.required: frozenset[str] = frozenset(towards.get(REQUIRED) or ())
        self.preferred: dict[str, int] = {group: i for i, group in enumerate(towards.get(PREFERRED) or ())}
        self.refused: frozenset[str] = frozenset(against.get(REQUIRED) or ())
        self.unliked: frozenset[str] = frozenset(against.get(PREFERRED) or ())
        self._refusal_counts = refusal_counts
        self.says_nothing = not (self.required or self.preferred or self.refused or self.unliked)

    def admits(self, group: str) -> bool:
        """Return whether the queue admits a group: unliked groups pass, refused ones do not, and others pass when
        named; a group that is both passes (fix nodegroup-refusal-counts: it does not).
        """
        if self._refusal_counts and group in self.refused:
            return False
        named = group in self.required or group in self.preferred
        # nodegroup.go tolerates an unliked group even when it is refused as well.
        return group in self.unliked or (named and group not in self.refused)

    def score(self, group: str, *, ordered: bool) -> float:
        """Return 100 for required, up to 50 for preferred (`ordered`: less towards the end of the list), -1 for
        unliked.
        """
        if group in self.unliked:
            return UNLIKED
        score = FULL if group in self.required else 0.0
        if group in self.preferred:
            count = len(self.preferred)
            score += HALF * (count - self.preferred[group]) / count if ordered else HALF
        return score


class QueueAffinities:
    """The affinity of each queue; `inherit`: a queue without one has that of its nearest ancestor with one."""

    def __init__(self, queues: dict[str, Queue], *, inherit: bool, refusal_counts: bool = False) -> None:
        self._queues = queues
        self._refusal_counts = refusal_counts
        self._inherit = inherit
        self._own: dict[str, tuple[Object | None, QueueAffinity | None]] = {}

    def still_hold(self, queues: dict[str, Queue]) -> bool:
        """Return whether all affinities that were read are the same in a later session with queues of the same names,
        which are read from then on.
        """
        self._queues = queues
        return all(_affinity(queues[name]) == spec for name, (spec, _) in self._own.items())

    def of(self, name: str) -> QueueAffinity | None:
        """Return the affinity that counts for a queue."""
        seen: set[str] = set()
        while name in self._queues and name not in seen:
            found = self._read(name)
            if found is not None or not self._inherit or name == ROOT:
                return found
            seen.add(name)
            name = self._queues[name].parent or ROOT
        return None

    def _read(self, name: str) -> QueueAffinity | None:
        if name not in self._own:
            spec = _affinity(self._queues[name])
            own = None if spec is None else QueueAffinity(spec, refusal_counts=self._refusal_counts)
            self._own[name] = spec, own
        return self._own[name][1]


def _affinity(queue: Queue) -> Object | None:
    found: Object | None = section(queue.queue, "spec").get("affinity")
    return found


@derived(NODES)
def groups_of(nodes: NodeSpecs) -> tuple[list[str | None], npt.NDArray[np.intp]]:
    """Return the groups, and the group of each node. [N]."""
    of_node = [spec.labels.get(LABEL) for spec in nodes.specs]
    groups = {group: number for number, group in enumerate(dict.fromkeys(of_node))}
    return list(groups), np.array([groups[group] for group in of_node], dtype=np.intp)


class GroupFilter:
    """Filter and scorer over the nodes' groups; the answer depends on the task's queue alone."""

    name = NAME

    def __init__(self, session: Session, affinities: QueueAffinities) -> None:
        self._session = session
        self._affinities = affinities
        self._groups, self._index = groups_of(session.nodes)

    @property
    def reads(self) -> Reads:
        """Return the inputs of the answers. Not an attribute: it would refer to itself, and so wait for the garbage
        collector.
        """
        return Reads(kind=self.kind)

    def kind(self, task: Task) -> str | None:
        """Return the task's queue, None for a task without a job."""
        job = self._session.job_of(task)
        return None if job is None else job.pod_group.queue

    def per_group(self, answer: Callable[[str | None], float]) -> npt.NDArray[np.float64]:
        """Return the answer for each node's group, computed once a group. [N]."""
        # Nodes share few groups: the answer is asked once for each, and spread by index.
        of_groups = np.array([answer(group) for group in self._groups], dtype=np.float64)
        found: npt.NDArray[np.float64] = of_groups[self._index]
        return found


class NodeGroups(GroupFilter):
    """The filter; `strict`: a node without a group takes no task."""

    def __init__(self, session: Session, affinities: QueueAffinities, *, strict: bool) -> None:
        super().__init__(session, affinities)
        self._strict = strict
        self._checks: dict[str | None, Check] = {}

    def prepare(self, session: Session, task: Task) -> Check:
        """Return the answer for the task's queue."""
        queue = self.kind(task)
        if queue is None:
            reason = Reason(NAME, Code.ERROR, f"job {task.job} not found in session")
            return ColumnRule(np.full(session.nodes.count, session.reasons.intern(reason), dtype=np.int32))
        if queue not in self._checks:
            affinity = self._affinities.of(queue)
            codes = self.per_group(lambda group: float(self._code(affinity, group)))
            self._checks[queue] = ColumnRule(codes.astype(np.int32))
        return self._checks[queue]

    def _code(self, affinity: QueueAffinity | None, group: str | None) -> int:
        # An affinity that names no group counts as none.
        reason = self._refusal(None if affinity is None or affinity.says_nothing else affinity, group)
        return 0 if reason is None else self._session.reasons.intern(reason)

    def _refusal(self, affinity: QueueAffinity | None, group: str | None) -> Reason | None:
        if group is None:
            return NO_GROUP if self._strict or affinity is not None else None
        if affinity is None:
            return NO_AFFINITY
        return None if affinity.admits(group) else UNSATISFIED


class GroupScores(GroupFilter):
    """The scorer; `ordered`: a preferred group counts less the later it is listed."""

    def __init__(self, session: Session, affinities: QueueAffinities, *, ordered: bool) -> None:
        super().__init__(session, affinities)
        self._ordered = ordered
        self._scores: dict[str, Score | None] = {}

    def prepare(self, session: Session, task: Task) -> Score | None:
        """Return the scores for the task's queue, None for a queue without an affinity."""
        queue = self.kind(task)
        if queue is None:
            return None
        if queue not in self._scores:
            affinity = self._affinities.of(queue)
            self._scores[queue] = None if affinity is None else self._score(affinity)
        return self._scores[queue]

    def _score(self, affinity: QueueAffinity) -> Score:
        ordered = self._ordered
        raw = self.per_group(lambda group: 0.0 if group is None else affinity.score(group, ordered=ordered))
        return ColumnRule(raw)


class NodeGroup(BuiltInPlugin):
    """Applies the affinity of queues; with enableHierarchy queues inherit from their ancestors."""

    name = NAME
    says = "keeps queues to the groups of nodes that they may use"
    listens = ("Predicate", "NodeOrder", "Hierarchy")
    says_at = MappingProxyType(
        {"Hierarchy": "gives a queue without affinity that of the nearest queue above it, by spec.parent"}
    )
    arguments = (STRICT, ORDERED)

    def __init__(self, arguments: PluginArguments) -> None:
        self._strict, self._ordered = STRICT.of(arguments), ORDERED.of(arguments)

    def on_session_open(self, session: Session) -> None:
        """Register filter and scorer."""
        options = (option for tier in session.config.tiers for option in tier.plugins if option.name == NAME)
        first = next(options, None)
        self._affinities = affinities = QueueAffinities(
            session.queues,
            inherit=first is not None and bool(first.is_enabled("Hierarchy")),
            refusal_counts="nodegroup-refusal-counts" in session.config.pumice.fix,
        )
        session.points.predicate.add(NAME, [NodeGroups(session, affinities, strict=self._strict)])
        session.points.node_order.add(NAME, [GroupScores(session, affinities, ordered=self._ordered)])

    def can_go_on(self, session: Session) -> bool:
        """Return whether the affinities are the same: they are no limits, so a change of one does not end a session."""
        return self._affinities.still_hold(session.queues)
