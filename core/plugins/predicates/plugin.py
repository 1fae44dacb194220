# SPDX-License-Identifier: Apache-2.0
"""The plugin predicates: kube-scheduler's filters in Volcano's order.

Source: Volcano `plugins/predicates/predicates.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Protocol

import msgspec
import numpy as np

from pumice.config.arguments import ANYTHING, INTEGER, SWITCH, Argument, PluginArguments
from pumice.core.kube.node_selector import NODE_NAME, required_terms, rows_required
from pumice.core.kube.placed import placed_pods
from pumice.core.kube.taints import UNSCHEDULABLE_TAINT, rows_untolerated, tolerated
from pumice.core.life.task import TaskStatus
from pumice.core.messages.decisions import BindContext
from pumice.core.plugins.plugin import BuiltInPlugin
from pumice.core.plugins.predicates.dynamic_resources import DynamicResources
from pumice.core.plugins.predicates.pod_affinity import PodAffinityFilter, Trials
from pumice.core.plugins.predicates.ports import NodePorts
from pumice.core.plugins.predicates.reservations import Reservations
from pumice.core.plugins.predicates.topology_spread import TopologySpreadFilter
from pumice.core.plugins.predicates.volume_binding import NOTHING, VolumeBinding
from pumice.core.plugins.predicates.volume_limits import VolumeLimits
from pumice.core.plugins.predicates.volume_zone import VolumeZone
from pumice.core.session.points.columns import Clause, Clauses
from pumice.core.session.points.nodes import TEMPLATE_ONLY
from pumice.core.session.points.rules import Check, ColumnRule
from pumice.core.session.reasons import Code, FitFailure, Reason
from pumice.core.state.derived import Like, derived
from pumice.core.state.dimensions import CellColumn, cells_of
from pumice.core.state.sources import ALLOCATABLE, NODES

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from pumice.core.kube.placed import Placed
    from pumice.core.kube.rows import BoolArray, NodeRows
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.session.points.columns import At, RowReader, V
    from pumice.core.session.points.nodes import NodeFilter
    from pumice.core.session.session import Session
    from pumice.core.state.sources import Allocatable, NodeSpecs

# --- The number of pods
# Source: Volcano `plugins/predicates` (Predicate, MaxTaskNum).

EXCEEDED = Reason("predicates", Code.UNSCHEDULABLE, "node(s) pod number exceeded")


@derived(ALLOCATABLE)
def _limits(nodes: Allocatable) -> CellColumn:
    """Return how many pods each node may have."""
    return cells_of(np.minimum(nodes.max_pods, np.iinfo(np.int32).max).astype(np.int32))


class IsFull(NamedTuple):
    """Refuses a node whose pods, terminating and pipelined ones included, are as many as it may have."""

    pods: CellColumn
    most: CellColumn

    def __call__(self, read: RowReader[V], /) -> Callable[[At], bool | BoolArray]:
        """Return a function: (reader of columns) -> (rows) -> True where the filter passes."""
        pods, most = read.of(self.pods), read.of(self.most)
        return lambda at: pods[at] >= most[at]


class PodCount:
    """The filter. One check serves the whole session, since it is the same for every task."""

    name = "PodCount"
    reads = TEMPLATE_ONLY

    def __init__(self) -> None:
        self._check: Check | None = None

    def prepare(self, session: Session, task: Task) -> Check:
        """Return the session's check, whatever the task."""
        if self._check is None:
            rule = IsFull(cells_of(session.kube.pods), _limits(session.nodes))
            self._check = ColumnRule(Clauses(Clause(rule, session.reasons.intern(EXCEEDED))))
        return self._check


# --- Static filters: they follow from node specs and pod template alone
# They are worked out once and kept until a node changes.


class Question(Protocol):
    """A question of a static filter about a pod. The question itself is the key of answers that are kept from session
    to session, so each question exists once.
    """

    reason: ClassVar[Reason]
    """Why nodes are refused."""

    def content(self, template: PodTemplate) -> Hashable:
        """Return the part of the template that the answer depends on; None when it cannot be refused."""
        ...

    def refused(self, nodes: NodeRows, template: PodTemplate) -> BoolArray | None:
        """Return the mask [N] of refused nodes, None for none of them. May raise FitFailure."""
        ...


class StaticFilter:
    """A filter around a Question."""

    reads = TEMPLATE_ONLY

    def __init__(self, question: Question) -> None:
        self.name = question.reason.plugin
        self._question = question

    def prepare(self, session: Session, task: Task) -> Check | None:
        """Return the ready answer for the task's template; None when no node is refused.

        Raises FitFailure when the question does.
        """
        mask = _refused(session.nodes, self._question, task.template)
        if mask is None:
            return None
        # The mask is kept for many sessions, the number of its reason belongs to this one.
        return ColumnRule(mask * np.int32(session.reasons.intern(self._question.reason)))


@derived(NODES)
def _refused(nodes: NodeSpecs, question: Question, template: PodTemplate) -> BoolArray | None:
    """Return the refused nodes, None for none; templates of one content share the answer."""
    content = question.content(template)
    return None if content is None else _refused_by_content(nodes, question, Like(content, template))


@derived(NODES)
def _refused_by_content(nodes: NodeSpecs, question: Question, template: Like[PodTemplate]) -> BoolArray | None:
    mask = question.refused(nodes, template.subject)
    # None spares a check that would pass every node, at every choice.
    return mask if mask is not None and mask.any() else None


# --- NodeAffinity: nodeSelector and required node affinity
# Source: kube-scheduler `nodeaffinity`.

NAME = "NodeAffinity"
CONFLICT = Reason(NAME, Code.ERROR, f"plugin {NAME} pre-predicates failed pod affinity terms conflict")


def _pinned_names(term: Mapping[str, Any]) -> set[str] | None:
    """Return the node names that a term's matchFields leave; None for a term without names."""
    names: set[str] | None = None
    for field in term.get("matchFields") or ():
        if field.get("key") == NODE_NAME and field.get("operator") == "In":
            values: set[str] = set(field.get("values") or [])
            names = values if names is None else names & values
    return names


def terms_conflict(terms: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether every term requires node names that exclude each other, so that no node can match (PreFilter)."""
    pinned = [_pinned_names(term) for term in terms]
    return bool(pinned) and all(names is not None and not names for names in pinned)


class RequiredAffinity:
    """Asks for the labels and names that a pod requires."""

    reason: ClassVar[Reason] = Reason(NAME, Code.UNRESOLVABLE, "node(s) didn't match Pod's node affinity/selector")

    def content(self, template: PodTemplate) -> bytes | None:
        """Return nodeSelector and the required terms."""
        terms = required_terms(template)
        if terms is None and not template.node_selector:
            return None
        return msgspec.json.encode((template.node_selector, terms), order="deterministic")

    def refused(self, nodes: NodeRows, template: PodTemplate) -> BoolArray | None:
        """Return mask [N] of the nodes that do not match.

        Raises FitFailure when the terms contradict each other by node name.
        """
        if terms_conflict(required_terms(template) or ()):
            raise FitFailure(CONFLICT)
        matching = rows_required(nodes, template)
        return None if matching is None else ~matching


# --- Evictions that were taken back
# Volcano reserves volumes again when an eviction is undone, which fails for every pod that was running when the
# session opened (no PreFilter has left a state to read), and leaves out the rest of the handler: the pod stays
# missing from kube-scheduler's NodeInfo until the session ends. Scores and filters that read NodeInfo see its room as
# free. Source: Volcano `plugins/predicates` (AllocateFunc, runReservePlugins).

FIX = "unevict-restores-pods"


class TakenBack:
    """Evicted pods of undone evictions. The event handlers ask it before they move a pod."""

    def __init__(self, session: Session) -> None:
        self._status = session.jobs.status
        self._mends = FIX in session.config.pumice.fix
        self._lost: set[int] = set()

    def forget(self) -> None:
        """Forget all pods: another session begins."""
        self._lost.clear()

    def loses(self, task: Task) -> bool:
        """Note a placement; after an undone eviction NodeInfo does not get the pod back."""
        if self._mends or self._status[task.row] not in (TaskStatus.RUNNING, TaskStatus.BOUND):
            return False
        self._lost.add(task.row)
        return True

    def has_lost(self, task: Task) -> bool:
        """Return whether NodeInfo has lost the removed pod."""
        return task.row in self._lost


# --- NodeUnschedulable: a cordoned node takes only pods that tolerate its taint
# Source: kube-scheduler `nodeunschedulable`.


class Unschedulable:
    """Asks for spec.unschedulable."""

    reason: ClassVar[Reason] = Reason("NodeUnschedulable", Code.UNRESOLVABLE, "node(s) were unschedulable")

    def content(self, template: PodTemplate) -> str | None:
        """Return whether the pod tolerates the taint, which alone matters."""
        return None if tolerated(template.tolerations, UNSCHEDULABLE_TAINT) else "cordoned"

    def refused(self, nodes: NodeRows, template: PodTemplate) -> BoolArray:
        """Return mask [N] of the cordoned nodes."""
        return np.array([spec.unschedulable for spec in nodes.specs], dtype=np.bool_)


# --- TaintToleration: NoSchedule and NoExecute taints
# Source: kube-scheduler `tainttoleration`.


class UntoleratedTaints:
    """Asks for taints that keep a pod away."""

    reason: ClassVar[Reason] = Reason("TaintToleration", Code.UNRESOLVABLE, "node(s) had untolerated taint(s)")

    def content(self, template: PodTemplate) -> bytes:
        """Return the tolerations."""
        return msgspec.json.encode(template.tolerations, order="deterministic") if template.tolerations else b""

    def refused(self, nodes: NodeRows, template: PodTemplate) -> BoolArray | None:
        """Return mask [N] of the nodes with such a taint."""
        return rows_untolerated(nodes, template.tolerations)


_SWITCHED: Final = {
    "NodeAffinityEnable": "node selectors and affinity are looked at",
    "NodePortsEnable": "ports of the host are looked at",
    "TaintTolerationEnable": "taints are looked at",
    "PodAffinityEnable": "affinity to other pods is looked at",
    "NodeVolumeLimitsEnable": "the number of volumes that a node takes is looked at",
    "VolumeZoneEnable": "zones of volumes are looked at",
    "PodTopologySpreadEnable": "topology spread constraints are looked at",
    "VolumeBindingEnable": "volumes are bound",
    "DynamicResourceAllocationEnable": "resource claims are looked at; read only with the fix dra-switch, for Volcano "
    "goes by Kubernetes' feature gate, which is on",
    "CacheEnable": "answers are kept; here those that follow from a node's spec always are",
}
SWITCHES: Final = {
    name: Argument(f"predicate.{name}", SWITCH, True, f"Whether {what}.") for name, what in _SWITCHED.items()
}
BIND_TIMEOUT: Final = Argument(
    "volumebinding.bindTimeoutSeconds", INTEGER, 600, "How long a placed pod may wait for its volumes."
)
_NO_EFFECT: Final = tuple(
    Argument(name, ANYTHING, None, "Known, as in Volcano, and without effect.", "none")
    for name in ("volumebinding.shape", "volumebinding.weight", "dynamicresources.filterTimeoutSeconds")
)

RESERVABLE: Final = ("PersistentVolumeClaim", "PersistentVolume", "ResourceClaim")

AFFINITY: Final = StaticFilter(RequiredAffinity())
TAINTS: Final = StaticFilter(UntoleratedTaints())
CORDONED: Final = StaticFilter(Unschedulable())


class Predicates(BuiltInPlugin):
    """Registers the filters that are switched on, keeps kube-scheduler's NodeInfo up to date and reserves volumes."""

    name = "predicates"
    says = "filters nodes as kube-scheduler does: taints, selectors, affinity, ports, volumes, devices"
    listens = ("Predicate",)
    only_answers = True
    only_places = True
    arguments = (*SWITCHES.values(), BIND_TIMEOUT, *_NO_EFFECT)

    def __init__(self, arguments: PluginArguments) -> None:
        self._arguments = arguments
        self._bind_timeout_s = float(BIND_TIMEOUT.of(arguments))

    def _enabled(self, switch: str) -> bool:
        return SWITCHES[switch].of(self._arguments)

    def filters(self, placed: Placed, reserving: list[VolumeBinding | DynamicResources]) -> list[NodeFilter]:
        """Return the filters in Volcano's order: the count of pods, then those of the node's spec, then the others."""
        listed: list[tuple[str, NodeFilter]] = [
            ("NodeAffinityEnable", AFFINITY),
            ("TaintTolerationEnable", TAINTS),
            ("NodePortsEnable", NodePorts(placed)),
            ("PodAffinityEnable", PodAffinityFilter(placed)),
            ("NodeVolumeLimitsEnable", VolumeLimits(placed)),
            ("VolumeZoneEnable", VolumeZone()),
            ("PodTopologySpreadEnable", TopologySpreadFilter(placed)),
        ]
        chosen = [node_filter for switch, node_filter in listed if self._enabled(switch)]
        # The order decides which reason a node shows: the first Unresolvable ends its list.
        return [PodCount(), CORDONED, *chosen, *reserving]

    def on_session_open(self, session: Session) -> None:
        """Register filters and event handlers. Only this plugin moves NodeInfo.

        Without it the scorers see the opening.
        """
        placed, kube = placed_pods(session), session.kube
        reserving: list[VolumeBinding | DynamicResources] = []
        if self._enabled("VolumeBindingEnable"):
            reserving.append(VolumeBinding(session))
        resources = DynamicResources(session)
        if "dra-switch" not in session.config.pumice.fix or self._enabled("DynamicResourceAllocationEnable"):
            reserving.append(resources)
        session.points.predicate.add(self.name, self.filters(placed, reserving))

        taken_back, reservations = TakenBack(session), Reservations(session, reserving, self.name)
        self._of_session: list[TakenBack | Reservations | Trials] = [taken_back, reservations]

        def allocate(task: Task, node: int) -> str | None:
            if taken_back.loses(task):
                return None
            template = task.template
            # Most pods have nothing to reserve: this runs for every placement.
            if reservations.refuses or template.volumes or template.resource_claims:
                refused = reservations.make(task, node)
                if refused is not None:
                    return refused
            # After the reservation: kube-scheduler's NodeInfo gets no pod whose reservation was refused.
            kube.add(task, node)
            placed.add(task, node)
            return None

        def deallocate(task: Task, node: int) -> str | None:
            # A pod that NodeInfo never got, or has lost, is not to be taken out of it.
            if not reservations.drop(task) and not taken_back.has_lost(task):
                kube.remove(task, node)
                placed.remove(task, node)
            return None

        def bind_context(task: Task) -> BindContext | None:
            if not (task.template.volumes or task.template.resource_claims):
                return None
            node = session.nodes.names[session.jobs.node[task.row]]
            first = reserving[0] if reserving else None
            promise = first.promised(task) if isinstance(first, VolumeBinding) else NOTHING
            devices = resources.pre_bind(task, node)
            return BindContext(*promise, devices, self._bind_timeout_s) if devices or any(promise) else None

        # a pod that NodeInfo loses is seen there: its node counts as touched
        session.points.handle(allocate, deallocate, takes_back=True)
        session.points.bind_context.add(self.name, bind_context)
        if self._enabled("PodAffinityEnable"):
            trials = Trials(session, placed)
            self._of_session.append(trials)
            session.points.simulate_add_task.add(self.name, trials.add)
            session.points.simulate_remove_task.add(self.name, trials.remove)
            session.points.simulate_predicate.add(self.name, trials.predicate)
            session.points.simulates_nothing.add(self.name, trials.is_quiet)

    def can_go_on(self, session: Session) -> bool:
        """Return whether no volumes and devices can have been reserved or promised, in this session or the last one."""
        return not session.snapshot.promised and not any(session.objects.get(kind) for kind in RESERVABLE)

    def on_session_renew(self, session: Session) -> None:
        """Forget what pods did in the session before."""
        for each in self._of_session:
            each.forget()
