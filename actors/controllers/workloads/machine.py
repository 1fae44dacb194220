"""Deployments and ReplicaSets as a pure machine: as many pods as are wanted, no more.

A plain stand-in for Kubernetes' two controllers: a changed template makes a new ReplicaSet, to which the Deployment
goes over at once (no surge, no pause).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final

from msgspec import Struct

from actors.controllers.workloads.deployment_status import deployment_status
from actors.kube.merge_patch import diff_patch
from core.messages.commands import ApiRequest, Create, Delete, Patch, UpdateStatus
from core.messages.replies import Accepted, ApiReply, Refused
from core.objects.metadata import section, text_map
from core.objects.parts import POD_OF_WORKLOAD
from storage.codec import pack, unpack

Object = dict[str, Any]
Key = tuple[str, str]

USER: Final = "workload-controller"
TEMPLATE_HASH: Final = "pod-template-hash"
_ENDED: Final = ("Succeeded", "Failed")


class OwnedPod(Struct):
    """A pod of a ReplicaSet."""

    key: Key
    uid: str
    owner: str
    active: bool
    ready: bool
    placed: bool
    revision: int


class WorkloadMachine:
    """See `actors.runtime.reconciler.Machine`."""

    kinds = ("Deployment", "ReplicaSet", POD_OF_WORKLOAD)

    def __init__(self) -> None:
        self._deployments: dict[Key, Object] = {}
        self._sets: dict[Key, Object] = {}
        self._pods: dict[Key, OwnedPod] = {}
        self._by_owner: dict[str, dict[Key, OwnedPod]] = {}
        self._set_of_uid: dict[str, Key] = {}
        self._dirty_deployments: dict[Key, None] = {}
        self._dirty_sets: dict[Key, None] = {}
        self._refused: set[str] = set()

    # --- what changed

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """See `Machine`."""
        key = (obj["metadata"].get("namespace") or "", obj["metadata"]["name"])
        match kind:
            case "Deployment":
                self._deployment(key, obj, deleted=deleted)
            case "ReplicaSet":
                self._replica_set(key, obj, deleted=deleted)
            case "Pod":
                self._pod_gone(key, revision) if deleted else self._pod(key, obj, revision)
            case _:
                pass

    def _deployment(self, key: Key, deployment: Object, *, deleted: bool) -> None:
        if deleted:
            self._deployments.pop(key, None)
        elif _newer(deployment, self._deployments.get(key)):
            self._deployments[key] = deployment
            self._dirty_deployments[key] = None

    def _replica_set(self, key: Key, replica_set: Object, *, deleted: bool) -> None:
        old = self._sets.get(key)
        if deleted:
            if old is not None:
                del self._sets[key]
                self._set_of_uid.pop(old["metadata"]["uid"], None)
                self._refused.discard(old["metadata"]["uid"])
            return
        if not _newer(replica_set, old):
            return
        self._sets[key] = replica_set
        self._set_of_uid[replica_set["metadata"]["uid"]] = key
        if old is None or old["spec"] != replica_set["spec"]:
            self._refused.discard(replica_set["metadata"]["uid"])
        self._dirty_sets[key] = None
        owner = _controller(replica_set, "Deployment")
        if owner is not None:
            self._dirty_deployments[(key[0], owner["name"])] = None

    def _pod(self, key: Key, pod: Object, revision: int) -> None:
        owner = _controller(pod, "ReplicaSet")
        known = self._pods.get(key)
        if owner is None or (known is not None and revision <= known.revision):
            return
        status = section(pod, "status")
        active = status.get("phase") not in _ENDED and "deletionTimestamp" not in pod["metadata"]
        ready = active and status.get("phase") == "Running"
        placed = bool(section(pod, "spec").get("nodeName"))
        new = OwnedPod(key, pod["metadata"]["uid"], owner["uid"], active, ready, placed, revision)
        self._pods[key] = self._by_owner.setdefault(owner["uid"], {})[key] = new
        if known is None or (known.active, known.ready) != (active, ready):
            self._owner_is_dirty(owner["uid"])

    def _pod_gone(self, key: Key, revision: int) -> None:
        known = self._pods.get(key)
        if known is None or revision <= known.revision:
            return
        del self._pods[key]
        del self._by_owner[known.owner][key]
        self._owner_is_dirty(known.owner)
        if not self._by_owner[known.owner]:
            del self._by_owner[known.owner]

    def _owner_is_dirty(self, uid: str) -> None:
        if (key := self._set_of_uid.get(uid)) is not None:
            self._dirty_sets[key] = None

    # --- what to do

    def step(self, now: float) -> Sequence[ApiRequest]:
        """See `Machine`."""
        requests: list[ApiRequest] = []
        deployments, self._dirty_deployments = self._dirty_deployments, {}
        for key in deployments:
            deployment = self._deployments.get(key)
            if deployment is not None and "deletionTimestamp" not in deployment["metadata"]:
                requests += self._roll_out(key, deployment, now)
        sets, self._dirty_sets = self._dirty_sets, {}
        for key in sets:
            replica_set = self._sets.get(key)
            if replica_set is not None and "deletionTimestamp" not in replica_set["metadata"]:
                requests += self._scale(key, replica_set)
        return requests

    def _roll_out(self, key: Key, deployment: Object, now: float) -> list[ApiRequest]:
        uid, wanted = deployment["metadata"]["uid"], deployment["spec"]["replicas"]
        own = {name: each for name, each in self._sets.items() if _owned_by(each, uid)}
        newest = replica_set_of(deployment)
        made = (name for name, each in own.items() if _template_of(each) == deployment["spec"]["template"])
        name = next(made, (key[0], newest["metadata"]["name"]))
        requests: list[ApiRequest] = []
        if name not in own and name not in self._sets:
            requests.append(Create(pack(newest), user=USER))
        for each, replica_set in own.items():
            replicas = wanted if each == name else 0
            if replica_set["spec"].get("replicas") != replicas:
                requests.append(Patch("ReplicaSet", *each, pack({"spec": {"replicas": replicas}}), user=USER))
        status = deployment_status(deployment, own.get(name), now)
        if patch := diff_patch(section(deployment, "status"), status):
            requests.append(UpdateStatus("Deployment", *key, pack(patch), user=USER))
        return requests

    def _scale(self, key: Key, replica_set: Object) -> list[ApiRequest]:
        uid, wanted = replica_set["metadata"]["uid"], replica_set["spec"].get("replicas", 1)
        pods = self._by_owner.get(uid, {}).values()
        active = [pod for pod in pods if pod.active]
        requests: list[ApiRequest] = []
        if uid not in self._refused:
            requests += [Create(pack(pod_of(replica_set)), user=USER) for _ in range(wanted - len(active))]
        surplus = sorted(active, key=_least_missed)[: max(len(active) - wanted, 0)]
        requests += [Delete("Pod", *pod.key, uid=pod.uid, user=USER) for pod in surplus]
        for pod in surplus:
            pod.active = pod.ready = False
        left = [pod for pod in pods if pod.active]
        status = _set_status(replica_set, len(left), sum(pod.ready for pod in left))
        if patch := diff_patch(section(replica_set, "status"), status):
            requests.append(UpdateStatus("ReplicaSet", *key, pack(patch), user=USER))
        return requests

    def answered(self, request: ApiRequest, reply: ApiReply, now: float) -> None:
        """See `Machine`. A ReplicaSet whose pods the api refuses waits until it is changed."""
        del now
        if not isinstance(request, Create):
            return
        if isinstance(reply, Accepted):
            obj = unpack(reply.blob)
            self.observe(obj["kind"], obj, int(obj["metadata"]["resourceVersion"]))
        elif isinstance(reply, Refused):
            owner = _controller(unpack(request.blob), "ReplicaSet")
            if owner is not None:
                self._refused.add(owner["uid"])

    def next_due(self) -> float | None:
        """See `Machine`."""
        return None

    def running_timers(self) -> int:
        """See `Machine`."""
        return 0


def replica_set_of(deployment: Object) -> Object:
    """The ReplicaSet of a Deployment's present template, which its name tells."""
    meta, spec = deployment["metadata"], deployment["spec"]
    mark = blake2b(pack(spec["template"]), digest_size=5).hexdigest()
    selector = dict(spec["selector"])
    selector["matchLabels"] = {**text_map(selector.get("matchLabels")), TEMPLATE_HASH: mark}
    template = dict(spec["template"])
    labels = {**text_map(section(template, "metadata").get("labels")), TEMPLATE_HASH: mark}
    template["metadata"] = {**section(template, "metadata"), "labels": labels}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{meta['name']}-{mark}",
            "namespace": meta["namespace"],
            "labels": labels,
            "annotations": text_map(meta.get("annotations")),
            "ownerReferences": [_reference(deployment)],
        },
        "spec": {"replicas": spec["replicas"], "selector": selector, "template": template},
    }


def _template_of(replica_set: Object) -> Object:
    """As its Deployment has it, without the mark (Kubernetes' `EqualIgnoreHash`)."""
    template: Object = replica_set["spec"]["template"]
    meta = section(template, "metadata")
    labels = {name: value for name, value in text_map(meta.get("labels")).items() if name != TEMPLATE_HASH}
    return {**template, "metadata": {**meta, "labels": labels}}


def pod_of(replica_set: Object) -> Object:
    """Another pod of a ReplicaSet; the api names it."""
    meta, template = replica_set["metadata"], section(replica_set["spec"], "template")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{meta['name']}-",
            "namespace": meta["namespace"],
            "labels": text_map(section(template, "metadata").get("labels")),
            "annotations": text_map(section(template, "metadata").get("annotations")),
            "ownerReferences": [_reference(replica_set)],
        },
        "spec": section(template, "spec"),
    }


def _reference(owner: Object) -> Object:
    meta = owner["metadata"]
    named = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
    return {**named, "controller": True, "blockOwnerDeletion": True}


def _controller(obj: Object, kind: str) -> Object | None:
    references: list[Object] = obj["metadata"].get("ownerReferences") or []
    for each in references:
        if each.get("controller") and each["kind"] == kind:
            return each
    return None


def _owned_by(replica_set: Object, uid: str) -> bool:
    owner = _controller(replica_set, "Deployment")
    return owner is not None and owner["uid"] == uid


def _newer(obj: Object, known: Object | None) -> bool:
    return known is None or int(obj["metadata"]["resourceVersion"]) > int(known["metadata"]["resourceVersion"])


def _least_missed(pod: OwnedPod) -> tuple[bool, bool, Key]:
    """Who goes first: not placed, not ready, then by name."""
    return pod.placed, pod.ready, pod.key


def _set_status(replica_set: Object, replicas: int, ready: int) -> Object:
    status: Object = {"replicas": replicas, "observedGeneration": replica_set["metadata"].get("generation", 1)}
    if ready:
        status |= {"readyReplicas": ready, "availableReplicas": ready}
    return status
