"""What the controller of DaemonSets wants: one pod on every node that the template selects.

Source: Kubernetes' daemonset controller.
"""

from __future__ import annotations

from collections.abc import Sequence

from pumice.cluster.controllers.adoption import Belongs, by_selector
from pumice.cluster.controllers.daemons.nodes import node_of, pod_for, runs_on
from pumice.cluster.controllers.daemons.plan import DaemonPlan, DaemonPlanner, NodeView, daemon_status
from pumice.cluster.controllers.pods_of import available_at, phase
from pumice.cluster.controllers.revisions import KIND, POD_HASH, hash_of, outdated, revisions_of
from pumice.cluster.controllers.rule import Agenda, OwnerRule, OwnFamily
from pumice.cluster.kube.events import event
from pumice.cluster.kube.merge_patch import diff_patch
from pumice.core.messages.commands import Create, Delete, UpdateStatus
from pumice.core.objects.metadata import Object, section, text_map
from pumice.core.objects.parts import POD_OF_NOBODY, POD_OF_WORKLOAD
from pumice.storage.codec import pack


class DaemonSetRule(OwnerRule):
    """What DaemonSets want."""

    owner = "DaemonSet"
    owner_type = ("apps/v1", "DaemonSet")
    children = (POD_OF_WORKLOAD, POD_OF_NOBODY, KIND)
    others = ("Node",)
    reporter = "daemonset-controller"
    user = "workload-controller"

    def belongs(self, owner: Object) -> Belongs | None:
        """Which of those that it `adopts` are the owner's, by what they are like; None: those that it has made."""
        return by_selector(owner["spec"].get("selector"))

    def work(self, family: OwnFamily, now: float) -> Agenda:
        """What to ask of the api for an owner that is not being deleted."""
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
    """The nodes there are, by name, and those that are gone and still have pods."""
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
    """When the next pod will have been ready for long enough."""
    least = owner["spec"].get("minReadySeconds") or 0
    times = [at for pod in pods if (at := available_at(pod, least)) is not None and at > now]
    return min(times, default=None)
