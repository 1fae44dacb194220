# SPDX-License-Identifier: Apache-2.0
"""The PodGroup controller as a pure machine: PodGroups for pods without one (source: Volcano's).

Pods with one controlling owner share a PodGroup, named after the owner's uid; a pod without gets one of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

from pumice.cluster.controllers import job_keys as keys
from pumice.cluster.kube.min_resources import pod_min_resources
from pumice.cluster.kube.statuses import timestamp
from pumice.cluster.machine import Machine
from pumice.core.go_numbers import parse_int
from pumice.core.messages.commands import ApiRequest, Create, Delete, Patch, UpdateStatus
from pumice.core.messages.replies import Accepted, ApiReply, Refused
from pumice.core.objects.metadata import Object, annotations_of, controlling_owner, owners_of, section, text_map
from pumice.core.objects.parts import GROUP_MADE, POD_UNGROUPED, QUEUE_STATES
from pumice.core.objects.pod import QUEUE_NAME
from pumice.storage.codec import repack

PodKey = tuple[str, str]

USER: Final = "pod-group-controller"
SCHEDULER: Final = "volcano"
MIN_MEMBER: Final = "scheduling.volcano.sh/group-min-member"
TOPOLOGY_MODE: Final = "volcano.sh/network-topology-mode"
TOPOLOGY_TIER: Final = "volcano.sh/network-topology-highest-tier"
INHERITED: Final = "volcano.sh/"
_FROM_POD_ANNOTATIONS: Final = (keys.PREEMPTABLE, keys.COOLDOWN_TIME, keys.REVOCABLE_ZONE)
_FROM_POD_LABELS: Final = (keys.PREEMPTABLE, keys.COOLDOWN_TIME)
OWNERS: Final = ("ReplicaSet", "StatefulSet", "DaemonSet")
"""Kinds that a PodGroup is made for as a whole, beside Jobs."""
BATCH_JOB: Final = "Job.batch"
"""Kubernetes' Jobs, as they are called where other Jobs are, too."""


class PodGroupMachine(Machine):
    """Makes PodGroups for pods without one."""

    kinds = (QUEUE_STATES, *OWNERS, BATCH_JOB, GROUP_MADE, POD_UNGROUPED)

    def __init__(self) -> None:
        self._owners: dict[tuple[str, str, str], Object] = {}
        self._groups: set[PodKey] = set()
        self._ungrouped: dict[PodKey, Object] = {}
        self._todo: dict[PodKey, None] = {}
        self._unwanted: dict[PodKey, None] = {}
        self._refused: dict[PodKey, str] = {}
        self._unsaid: dict[PodKey, None] = {}
        self._joining: dict[PodKey, float] = {}  # the revision at which the pod got its group's name, inf until then

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        key = (obj["metadata"].get("namespace") or "", obj["metadata"]["name"])
        match kind:
            case "Pod":
                self._pod(key, obj, revision, deleted=deleted)
            case "PodGroup":
                (self._groups.discard if deleted else self._groups.add)(key)
            case "Queue":
                # it may be the one that was missing, or that has opened
                self._todo.update(dict.fromkeys(self._refused))
            case _:
                self._owner(kind, key, obj, deleted=deleted)

    def _pod(self, key: PodKey, pod: Object, revision: int, *, deleted: bool) -> None:
        if deleted or not needs_group(pod):
            if self._ungrouped.pop(key, None) is not None:
                self._joining.pop(key, None)
                self._todo.pop(key, None)
                self._refused.pop(key, None)
            return
        old = self._ungrouped.get(key)
        self._ungrouped[key] = pod
        if revision <= self._joining.get(key, -1):  # a report of its node came before the name of its group
            return
        # a refused pod is tried again only when its annotations may have named another queue
        if old is None or key not in self._refused or old["metadata"].get("annotations") != _annotations(pod):
            self._todo[key] = None

    def _owner(self, kind: str, key: PodKey, owner: Object, *, deleted: bool) -> None:
        # References say `Job` alone, and Volcano's Jobs make groups themselves.
        kind = kind.partition(".")[0]
        if deleted:
            self._owners.pop((kind, *key), None)
            return
        self._owners[(kind, *key)] = owner
        # an owner that is scaled to zero needs no group any more
        if section(owner, "spec").get("replicas") == 0:
            group = (key[0], f"podgroup-{owner['metadata']['uid']}")
            if group in self._groups:
                self._unwanted[group] = None

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        requests: list[ApiRequest] = [Delete("PodGroup", *group, user=USER) for group in self._unwanted]
        self._unwanted.clear()
        requests += [self._reason(key, now) for key in self._unsaid if key in self._ungrouped]
        self._unsaid.clear()
        todo, self._todo = self._todo, {}
        asked: set[PodKey] = set()
        for key in todo:
            pod = self._ungrouped.get(key)
            if pod is not None:
                requests += self._join(key, pod, asked)
        return requests

    def _join(self, key: PodKey, pod: Object, asked: set[PodKey]) -> list[ApiRequest]:
        """Ask for the group first. Its pods get its name after the answer: a refused group must not stand on a pod."""
        name = group_name(pod)
        # asked for in this very step: the pod joins after the answer
        if (key[0], name) in asked:
            self._todo[key] = None
            return []
        if (key[0], name) in self._groups:
            annotation = {"metadata": {"annotations": {keys.GROUP_NAME: name}}}
            self._joining[key] = inf
            return [Patch("Pod", *key, repack(annotation), user=USER)]
        # noted before the answer: pods of the same owner must not ask for it again
        self._groups.add((key[0], name))
        asked.add((key[0], name))
        self._todo[key] = None
        return [Create(repack(pod_group_for(pod, self._owner_annotations(pod))), user=f"{USER} {key[0]}/{key[1]}")]

    def _owner_annotations(self, pod: Object) -> dict[str, str]:
        found: dict[str, str] = {}
        for reference in owners_of(pod):
            owner = self._owners.get((reference["kind"], pod["metadata"]["namespace"], reference["name"]))
            if owner is not None:
                # of several owners the first one's annotations win
                found = {**_annotations(owner), **found}
        return found

    def answered(self, request: ApiRequest, reply: ApiReply, now: float) -> None:
        """Take the answer to one request of the last step; answers come in order, before the next step. A refused group
        is a reason on its pods, until a queue changes.
        """
        if isinstance(request, Patch) and (key := (request.namespace, request.name)) in self._joining:
            self._joining[key] = reply.revision if isinstance(reply, Accepted) else -1
        if not isinstance(request, Create) or not isinstance(reply, Refused) or reply.reason == "AlreadyExists":
            return
        namespace, _, name = request.user.removeprefix(f"{USER} ").partition("/")
        pod = self._ungrouped.get((namespace, name))
        if pod is None:
            return
        group = group_name(pod)
        self._groups.discard((namespace, group))
        for key, other in self._ungrouped.items():
            if key[0] == namespace and group_name(other) == group:
                if self._refused.get(key) != reply.message:
                    self._unsaid[key] = None
                self._refused[key] = reply.message
                self._todo.pop(key, None)

    def _reason(self, key: PodKey, now: float) -> UpdateStatus:
        """Return PodScheduled=False for a pod without a group: the scheduler does not know the pod, so no other actor
        writes a reason.
        """
        written = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": f"no PodGroup could be made for it: {self._refused[key]}",
            "lastTransitionTime": timestamp(now),
        }
        conditions: list[Object] = section(self._ungrouped[key], "status").get("conditions") or []
        kept = [each for each in conditions if each.get("type") != "PodScheduled"]
        return UpdateStatus("Pod", *key, repack({"conditions": [*kept, written]}), user=USER)


def needs_group(pod: Object) -> bool:
    """Return whether Volcano schedules the pod and the pod has no group yet."""
    if section(pod, "spec").get("schedulerName") != SCHEDULER:
        return False
    annotations = pod["metadata"].get("annotations")
    return not annotations or not annotations.get(keys.GROUP_NAME)


def group_name(pod: Object) -> str:
    """Return `podgroup-` and the uid of the controlling owner, or of the pod."""
    return f"podgroup-{(controlling_owner(pod) or pod['metadata'])['uid']}"


def pod_group_for(pod: Object, inherited: dict[str, str]) -> Object:
    """Return the PodGroup of a pod; `inherited` are the annotations of its owner."""
    meta, annotations, labels = pod["metadata"], _annotations(pod), text_map(pod["metadata"].get("labels"))
    least = _min_member(inherited)
    spec: Object = {"minMember": least, "minResources": pod_min_resources(pod["spec"], least)}
    if pod["spec"].get("priorityClassName"):
        spec["priorityClassName"] = pod["spec"]["priorityClassName"]
    if QUEUE_NAME in annotations:
        spec["queue"] = annotations[QUEUE_NAME]
    if topology := _topology(annotations):
        spec["networkTopology"] = topology
    kept = {name: value for name, value in inherited.items() if name.startswith(INHERITED)}
    kept.update({name: annotations[name] for name in _FROM_POD_ANNOTATIONS if name in annotations})
    budget = keys.BUDGET_MIN if keys.BUDGET_MIN in annotations else keys.BUDGET_MAX
    if budget in annotations:
        kept[budget] = annotations[budget]
    return {
        "apiVersion": keys.POD_GROUP_API_VERSION,
        "kind": "PodGroup",
        "metadata": {
            "name": group_name(pod),
            "namespace": meta["namespace"],
            "annotations": kept,
            "labels": {name: labels[name] for name in _FROM_POD_LABELS if name in labels},
            "ownerReferences": _owners_of_group(pod),
        },
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def _owners_of_group(pod: Object) -> list[Object]:
    references: list[Object] = pod["metadata"].get("ownerReferences") or []
    if any(reference.get("controller") for reference in references):
        return references
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    own = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
    return [{**own, "controller": True, "blockOwnerDeletion": True}]


def _min_member(inherited: dict[str, str]) -> int:
    number = parse_int(inherited.get(MIN_MEMBER, ""), 32)
    # 1 where no int32 can be read, and for a negative one: getMinMemberFromUpperRes (pg_controller_handler.go).
    return 1 if number is None or number < 0 else number


def _topology(annotations: dict[str, str]) -> Object | None:
    mode, tier = annotations.get(TOPOLOGY_MODE), annotations.get(TOPOLOGY_TIER)
    if mode is None and tier is None:
        return None
    topology: Object = {"mode": mode.lower() if mode and mode.lower() in ("hard", "soft") else "hard"}
    if tier is not None and (highest := parse_int(tier)) is not None:
        topology["highestTierAllowed"] = highest
    return topology


def _annotations(obj: Object) -> dict[str, str]:
    return annotations_of(obj)
