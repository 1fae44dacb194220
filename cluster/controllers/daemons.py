# SPDX-License-Identifier: Apache-2.0
"""The controller of DaemonSets: one pod on every node that the template selects.

Source: Kubernetes' daemonset controller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pumice.cluster.controllers.family import Agenda, OwnerRule, OwnFamily
from pumice.cluster.controllers.pods_of import Belongs, available_at, by_selector, is_leaving, phase, pod_from
from pumice.cluster.controllers.revisions import KIND, POD_HASH, hash_of, outdated, revisions_of
from pumice.cluster.kube.budgets import scaled_value
from pumice.cluster.kube.events import event
from pumice.cluster.kube.merge_patch import diff_patch
from pumice.core.kube.node_selector import NODE_NAME, REQUIRED
from pumice.core.kube.selectors import SelectorError, requirement
from pumice.core.kube.taints import tolerated
from pumice.core.life.task import ENDED_PHASES
from pumice.core.messages.commands import Create, Delete, UpdateStatus
from pumice.core.objects.metadata import Object, section, text_map
from pumice.core.objects.parts import ORPHAN_POD, POD_OF_WORKLOAD
from pumice.storage.codec import pack

# --- The plan: pods made and taken away now
# Source: Kubernetes' daemon controller: `podsShouldBeOnNode`, `rollingUpdate`.


@dataclass(slots=True)
class DaemonPlan:
    """The pods of a DaemonSet. `new`: nodes that lack one; `ended`: those of `remove` that have ended."""

    new: list[str] = field(default_factory=list[str])
    remove: list[Object] = field(default_factory=list[Object])
    ended: list[Object] = field(default_factory=list[Object])


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node as the set sees it. `pods`: the oldest first."""

    name: str
    wanted: bool
    kept: bool
    pods: Sequence[Object]


class DaemonPlanner:
    """Plans one set at one time; `mark` identifies pods of its present template."""

    def __init__(self, owner: Object, mark: str, now: float) -> None:
        self._owner, self._mark, self._now = owner, mark, now
        strategy = section(owner["spec"], "updateStrategy")
        self._rolls = strategy.get("type") == "RollingUpdate"
        rolling = section(strategy, "rollingUpdate")
        self._unavailable, self._surge = rolling.get("maxUnavailable", 1), rolling.get("maxSurge", 0)

    def plan(self, nodes: Sequence[NodeView]) -> DaemonPlan:
        """Plan first a pod for every node, then the next ones of an update."""
        plan = DaemonPlan()
        desired = sum(node.wanted for node in nodes)
        surge = scaled_value(self._surge, desired) if self._rolls else 0
        for node in nodes:
            self._settle(plan, node, surge=surge > 0)
        if self._rolls:
            left = [_without(node, plan.remove) for node in nodes if node.wanted]
            if surge:
                self._surge_over(plan, left, surge)
            else:
                # never 0, or the update could not go on: Kubernetes falls back to 1, too (daemon/update.go)
                self._roll_over(plan, left, max(scaled_value(self._unavailable, desired), 1))
        return plan

    def is_available(self, pod: Object) -> bool:
        """Return whether the pod has been ready for long enough."""
        at = available_at(pod, self._owner["spec"].get("minReadySeconds") or 0)
        return at is not None and at <= self._now

    def is_new(self, pod: Object) -> bool:
        """Return whether the pod is of the present template."""
        return text_map(pod["metadata"].get("labels")).get(POD_HASH) == self._mark

    def _settle(self, plan: DaemonPlan, node: NodeView, *, surge: bool) -> None:
        if not node.kept:
            plan.remove += [pod for pod in node.pods if not is_leaving(pod)]
            return
        if not node.pods:
            plan.new += [node.name] if node.wanted else []
            return
        staying = [pod for pod in node.pods if not is_leaving(pod)]
        ended = [pod for pod in staying if phase(pod) in ENDED_PHASES]
        plan.ended += ended
        plan.remove += ended
        running = [pod for pod in staying if phase(pod) not in ENDED_PHASES]
        # with a surge an old and a new pod may share a node: the oldest of each sort stays
        groups = [[pod for pod in running if self.is_new(pod) is new] for new in (True, False)] if surge else [running]
        for group in groups:
            plan.remove += group[1:]

    def _on(self, node: NodeView) -> tuple[Object | None, Object | None]:
        """Return the node's pod of the present template, and the one of another."""
        staying = [pod for pod in node.pods if not is_leaving(pod)]
        new = next((pod for pod in staying if self.is_new(pod)), None)
        return new, next((pod for pod in staying if not self.is_new(pod)), None)

    def _roll_over(self, plan: DaemonPlan, nodes: Sequence[NodeView], most: int) -> None:
        """Replace old pods, so many at a time that at most `most` nodes have no working one."""
        missing, first, others = 0, list[Object](), list[Object]()
        for node in nodes:
            new, old = self._on(node)
            if old is None or new is not None:
                missing += new is None or not self.is_available(new) or old is not None
            elif not self.is_available(old):
                first.append(old)
                missing += 1
            else:
                others.append(old)
        # pods that do not work go in any case: their nodes are counted as missing already
        plan.remove += [*first, *others[: max(most - missing, 0)]]

    def _surge_over(self, plan: DaemonPlan, nodes: Sequence[NodeView], most: int) -> None:
        """Create new pods beside old ones, on so many nodes at a time; an old one goes when the new one works."""
        beside, first, others = 0, list[str](), list[str]()
        for node in nodes:
            new, old = self._on(node)
            if old is None:
                continue
            if new is None:
                (others if self.is_available(old) else first).append(node.name)
            elif self.is_available(new):
                plan.remove.append(old)
            else:
                beside += 1
        # where the old pod does not work, a new one costs nothing and may come immediately
        plan.new += [*first, *others[: max(most - beside, 0)]]


def _without(node: NodeView, gone: Sequence[Object]) -> NodeView:
    uids = {pod["metadata"]["uid"] for pod in gone}
    return NodeView(node.name, node.wanted, node.kept, [pod for pod in node.pods if pod["metadata"]["uid"] not in uids])


def daemon_status(owner: Object, nodes: Sequence[NodeView], planner: DaemonPlanner) -> Object:
    """Return the new status from the counted nodes."""
    counts: Mapping[str, int] = _counts(nodes, planner)
    status: Object = {"observedGeneration": owner["metadata"].get("generation", 1), **counts}
    status["collisionCount"] = 0
    for name in ("updatedNumberScheduled", "numberAvailable", "numberUnavailable"):
        # zeros of these three are left out, as Go's `omitempty` leaves them out
        if not status[name]:
            del status[name]
    return status


def _counts(nodes: Sequence[NodeView], planner: DaemonPlanner) -> dict[str, int]:
    wanted = [node for node in nodes if node.wanted]
    # the oldest pod stands for its node, as in Kubernetes' `updateDaemonSetStatus`
    oldest = [node.pods[0] for node in wanted if node.pods]
    ready = [pod for pod in oldest if available_at(pod, 0) is not None]
    available = sum(map(planner.is_available, ready))
    return {
        "currentNumberScheduled": len(oldest),
        "numberMisscheduled": sum(not node.wanted and bool(node.pods) for node in nodes),
        "desiredNumberScheduled": len(wanted),
        "numberReady": len(ready),
        "updatedNumberScheduled": sum(any(planner.is_new(pod) for pod in node.pods) for node in wanted),
        "numberAvailable": available,
        "numberUnavailable": len(wanted) - available,
    }


# --- Nodes and pods of a DaemonSet
# Source: Kubernetes' daemon controller, `NodeShouldRunDaemonPod` and `daemon/util`.

_CONDITIONS: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


def tolerations_of(spec: Object) -> list[Object]:
    """Return the tolerations of a pod spec, and those of every such pod: the state of a node does not evict it."""
    names = [*_CONDITIONS, *([("network-unavailable", "NoSchedule")] if spec.get("hostNetwork") else [])]
    added: list[Object] = [
        {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect} for name, effect in names
    ]
    given: list[Object] = spec.get("tolerations") or []
    return [*given, *(each for each in added if each not in given)]


def runs_on(owner: Object, node: Object) -> tuple[bool, bool]:
    """Return whether a pod should run on the node, and whether a pod that runs there may stay."""
    spec = section(owner["spec"]["template"], "spec")
    meta = node["metadata"]
    if spec.get("nodeName") not in (None, "", meta["name"]) or not _selects(spec, node):
        return False, False
    taints: list[Object] = section(node, "spec").get("taints") or []
    tolerations = tolerations_of(spec)
    untolerated = {taint.get("effect") for taint in taints if not tolerated(tolerations, taint)}
    # NoSchedule keeps new pods away; only NoExecute drives running ones away
    return untolerated.isdisjoint(("NoSchedule", "NoExecute")), "NoExecute" not in untolerated


def _selects(spec: Object, node: Object) -> bool:
    labels = text_map(node["metadata"].get("labels"))
    if any(labels.get(key) != value for key, value in text_map(spec.get("nodeSelector")).items()):
        return False
    required: Object | None = section(section(spec, "affinity"), "nodeAffinity").get(REQUIRED)
    if required is None:
        return True
    return any(
        _term_selects(term, node["metadata"]["name"], labels) for term in required.get("nodeSelectorTerms") or ()
    )


def _term_selects(term: Object, name: str, labels: dict[str, str]) -> bool:
    expressions: list[Object] = term.get("matchExpressions") or []
    fields: list[Object] = term.get("matchFields") or []
    try:
        wanted = [requirement(each) for each in expressions]
    except SelectorError:
        return False
    # an empty term selects no node, as in Kubernetes' nodeaffinity.go
    if not (expressions or fields) or not all(each.accepts(labels.get(each.key)) for each in wanted):
        return False
    return all(
        each.get("key") == NODE_NAME and (name in (each.get("values") or ())) == (each.get("operator") == "In")
        for each in fields
    )


def node_of(pod: Object) -> str:
    """Return the node of a pod: its own, or the one that it requests."""
    spec = section(pod, "spec")
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    required = section(section(section(spec, "affinity"), "nodeAffinity"), REQUIRED)
    for term in required.get("nodeSelectorTerms") or ():
        for each in term.get("matchFields") or ():
            if each.get("key") == NODE_NAME and len(each.get("values") or ()) == 1:
                return str(each["values"][0])
    return ""


def pod_for(owner: Object, revision: Object, node: str) -> Object:
    """Return the pod of a node: the scheduler may bind it to this node only."""
    pod = pod_from(owner["spec"]["template"], owner)
    spec = pod["spec"]
    pod["metadata"]["labels"] |= {
        POD_HASH: hash_of(revision),
        "pod-template-generation": str(owner["metadata"].get("generation", 1)),
    }
    affinity = section(spec, "affinity")
    here = {"matchFields": [{"key": NODE_NAME, "operator": "In", "values": [node]}]}
    # in the place of the template's own terms, which `runs_on` has asked (`ReplaceDaemonSetPodNodeNameNodeAffinity`)
    to_nodes = {**section(affinity, "nodeAffinity"), REQUIRED: {"nodeSelectorTerms": [here]}}
    spec["affinity"] = {**affinity, "nodeAffinity": to_nodes}
    spec["tolerations"] = tolerations_of(spec)
    return pod


class DaemonSetRule(OwnerRule):
    """Rule of DaemonSets."""

    summary = "one pod a node that selector, affinity and taints allow; maxUnavailable, maxSurge, OnDelete, revisions"
    owner = "DaemonSet"
    owner_type = ("apps/v1", "DaemonSet")
    children = (POD_OF_WORKLOAD, ORPHAN_POD, KIND)
    others = ("Node",)
    reporter = "daemonset-controller"
    user = "workload-controller"

    def belongs(self, owner: Object) -> Belongs | None:
        """Return a test that picks the owner's children among those that it `adopts`; None: those that the owner
        made.
        """
        return by_selector(owner["spec"].get("selector"))

    def work(self, family: OwnFamily, now: float) -> Agenda:
        """Return the requests for an owner that is not being deleted."""
        owner, known, agenda = family.owner, family.of(KIND), Agenda()
        found = revisions_of(owner, known, self.user)
        agenda.requests += found.requests
        if found.new is not None:
            agenda.new.append(found.new)
            return agenda  # the pods follow when it is there
        planner = DaemonPlanner(owner, hash_of(found.update), now)
        nodes = node_views(family)
        plan = planner.plan(nodes)
        agenda.new += [pod_for(owner, found.update, node) for node in plan.new]
        self._take_away(agenda, owner, plan, now)
        agenda.due = _ready_soon(owner, family.of("Pod"), now)
        meta = owner["metadata"]
        if patch := diff_patch(section(owner, "status"), daemon_status(owner, nodes, planner)):
            agenda.requests.append(
                UpdateStatus("DaemonSet", meta["namespace"], meta["name"], pack(patch), user=self.user)
            )
        marks = {text_map(pod["metadata"].get("labels")).get(POD_HASH) for pod in family.of("Pod")}
        used = {each["metadata"]["name"] for each in known if hash_of(each) in marks}
        agenda.requests += outdated(owner, known, used | {found.update["metadata"]["name"]}, self.user)
        return agenda

    def _take_away(self, agenda: Agenda, owner: Object, plan: DaemonPlan, now: float) -> None:
        for pod in plan.ended:
            failed = phase(pod) == "Failed"
            word = "failed" if failed else "succeeded"
            where = f"{pod['metadata']['namespace']}/{pod['metadata']['name']} on node {node_of(pod)}"
            text = f"Found {word} daemon pod {where}, will try to {'kill' if failed else 'delete'} it"
            reason = "FailedDaemonPod" if failed else "SucceededDaemonPod"
            said = event(owner, reason, text, now, source=self.reporter, warning=failed)
            agenda.requests.append(Create(pack(said), user=self.user))
        for pod in plan.remove:
            meta = pod["metadata"]
            agenda.requests.append(Delete("Pod", meta["namespace"], meta["name"], uid=meta["uid"], user=self.user))


def node_views(family: OwnFamily) -> list[NodeView]:
    """Return the existing nodes by name, and those that have gone and still have pods."""
    by_node: dict[str, list[Object]] = {}
    oldest_first = sorted(
        family.of("Pod"), key=lambda pod: (pod["metadata"].get("creationTimestamp") or "", pod["metadata"]["name"])
    )
    for pod in oldest_first:
        by_node.setdefault(node_of(pod), []).append(pod)
    views: list[NodeView] = []
    for (_, name), node in sorted(family.world["Node"].items()):
        wanted, kept = runs_on(family.owner, node)
        views.append(NodeView(name, wanted, kept, by_node.pop(name, ())))
    for name, pods in sorted(by_node.items()):  # one that was placed goes with its node
        waiting = [pod for pod in pods if not section(pod, "spec").get("nodeName")]
        views.append(NodeView(name, wanted=False, kept=False, pods=waiting))
    return views


def _ready_soon(owner: Object, pods: Sequence[Object], now: float) -> float | None:
    """Return the time when the next pod will have been ready for long enough."""
    least = owner["spec"].get("minReadySeconds") or 0
    times = [at for pod in pods if (at := available_at(pod, least)) is not None and at > now]
    return min(times, default=None)
