# SPDX-License-Identifier: Apache-2.0
"""Claims that a pod brings along, as a pure machine: a volume claim for every ephemeral volume, a resource claim for
every template it names.

Source: Kubernetes' ephemeral and resourceclaim controllers. They belong to the pod, and go with it; resource claims go
already when it has ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pumice.cluster.machine import Machine
from pumice.core.life.task import ENDED_PHASES
from pumice.core.messages.commands import ApiRequest, Create, Delete, UpdateStatus
from pumice.core.messages.replies import Accepted, ApiReply, Refused
from pumice.core.objects.metadata import Object, annotations_of, rows, section
from pumice.core.objects.parts import POD_WITH_CLAIMS
from pumice.storage.codec import pack, unpack

Name = tuple[str, str]

USER: Final = "volume-controller"
RETRY_S: Final = 1.0
SERVER_FAULT: Final = 500
POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
LONGEST_BASE: Final = 57  # of a generated name: a hyphen and five letters more make a DNS label
_CLAIMS: Final = ("PersistentVolumeClaim", "ResourceClaim")


class PodClaimsMachine(Machine):
    """Makes the claims that pods bring along. Only pods that bring claims along are kept."""

    kinds = ("ResourceClaimTemplate", *_CLAIMS, POD_WITH_CLAIMS)

    def __init__(self) -> None:
        self._pods: dict[Name, Object] = {}
        self._templates: dict[Name, Object] = {}
        self._claims: dict[str, dict[Name, Object]] = {kind: {} for kind in _CLAIMS}
        self._owned: dict[str, dict[Name, Object]] = {}  # pod uid -> the resource claims made for it
        self._dirty: dict[Name, None] = {}  # pods
        self._retries: dict[Name, float] = {}  # when to try again what the api could not do

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        meta = section(obj, "metadata")
        name = (meta.get("namespace") or "", str(meta.get("name")))
        if kind == "Pod":
            self._see_pod(name, obj, deleted)
        elif kind == "ResourceClaimTemplate":
            self._templates.pop(name, None)
            if not deleted:
                self._templates[name] = obj
                self._dirty.update(dict.fromkeys(pod for pod in self._pods if pod[0] == name[0]))
        else:
            self._see_claim(kind, name, obj, revision, deleted)

    def _see_pod(self, name: Name, pod: Object, deleted: bool) -> None:
        if self._pods.pop(name, None) is not None:
            self._dirty.pop(name, None)
        if not deleted and _brings_claims(pod):
            self._pods[name] = pod
            self._dirty[name] = None

    def _see_claim(self, kind: str, name: Name, claim: Object, revision: int, deleted: bool) -> None:
        of_kind = self._claims[kind]
        old = of_kind.get(name)
        if old is not None and revision <= int(old["metadata"]["resourceVersion"]):
            return
        of_kind.pop(name, None)
        owner = _owner(claim) or _owner(old or {})
        mine = self._owned.setdefault(str(owner.get("uid")), {}) if owner and kind == "ResourceClaim" else {}
        mine.pop(name, None)
        if not deleted:
            of_kind[name] = mine[name] = claim
        if not mine:
            self._owned.pop(str(owner.get("uid")), None)
        pod = (name[0], str(owner.get("name")))
        if pod in self._pods:
            self._dirty[pod] = None

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        for name in [name for name, due in self._retries.items() if due <= now]:
            del self._retries[name]
            self._dirty[name] = None
        dirty, self._dirty = self._dirty, {}
        return [request for name in dirty if name in self._pods for request in self._requests(self._pods[name])]

    def _requests(self, pod: Object) -> Iterator[ApiRequest]:
        meta = section(pod, "metadata")
        if section(pod, "status").get("phase") in ENDED_PHASES:
            for (namespace, name), claim in self._owned.get(meta["uid"], {}).items():
                if not section(claim, "metadata").get("deletionTimestamp"):
                    yield Delete("ResourceClaim", namespace, name, uid=claim["metadata"]["uid"], user=USER)
        elif not meta.get("deletionTimestamp"):
            yield from self._volume_claims(pod)
            yield from self._resource_claims(pod)

    def _volume_claims(self, pod: Object) -> Iterator[ApiRequest]:
        meta = section(pod, "metadata")
        for volume in _ephemeral(pod):
            name = f"{meta['name']}-{volume.get('name')}"
            if (meta["namespace"], name) not in self._claims["PersistentVolumeClaim"]:
                template = section(section(volume, "ephemeral"), "volumeClaimTemplate")
                yield Create(pack(_made("v1", "PersistentVolumeClaim", pod, template, {"name": name})), user=USER)

    def _resource_claims(self, pod: Object) -> Iterator[ApiRequest]:
        """Return the requests for missing claims; when none is missing, the pod's status gets their names."""
        meta, names = section(pod, "metadata"), dict[str, str]()
        made = {_pod_claim(claim): name for (_, name), claim in self._owned.get(meta["uid"], {}).items()}
        for wanted in _templated(pod):
            own = str(wanted.get("name"))
            if own in made:
                names[own] = made[own]
                continue
            template = self._templates.get((meta["namespace"], str(wanted["resourceClaimTemplateName"])))
            if template is not None:
                yield Create(pack(_resource_claim(pod, own, section(template, "spec"))), user=USER)
        told: list[Object] = section(pod, "status").get("resourceClaimStatuses") or []
        news: list[Object] = [{"name": own, "resourceClaimName": name} for own, name in names.items()]
        found = [*(each for each in told if each.get("name") not in names), *news]
        if any(each not in told for each in found):
            patch = pack({"resourceClaimStatuses": found})
            yield UpdateStatus("Pod", meta["namespace"], meta["name"], patch, user=USER)

    def answered(self, request: ApiRequest, reply: ApiReply, now: float) -> None:
        """Take the answer to one request of the last step; answers come in order, before the next step. A name that is
        taken is left alone: pods that do not own the claim wait, and their conditions say so.
        """
        if isinstance(reply, Accepted) and reply.blob and isinstance(request, Create):
            claim: Object = unpack(reply.blob)
            self.observe(claim["kind"], claim, int(claim["metadata"]["resourceVersion"]))
        elif isinstance(reply, Refused) and reply.code >= SERVER_FAULT:
            self._retries[self._pod_of(request)] = now + RETRY_S

    def _pod_of(self, request: ApiRequest) -> Name:
        if isinstance(request, Create):
            claim: Object = unpack(request.blob)
            return claim["metadata"]["namespace"], str(_owner(claim).get("name"))
        if isinstance(request, Delete):
            owner = _owner(self._claims["ResourceClaim"].get((request.namespace, request.name), {}))
            return request.namespace, str(owner.get("name"))
        assert isinstance(request, UpdateStatus)
        return request.namespace, request.name

    def next_due(self) -> float | None:
        """Return the time when `step` has work without any change; None for never."""
        return min(self._retries.values(), default=None)

    def running_timers(self) -> int:
        """Return the number of running timers."""
        return len(self._retries)


def _brings_claims(pod: Object) -> bool:
    spec = section(pod, "spec")
    if not spec.get("volumes") and not spec.get("resourceClaims"):
        return False
    return bool(_ephemeral(pod) or _templated(pod))


def _ephemeral(pod: Object) -> list[Object]:
    return [volume for volume in rows(section(pod, "spec"), "volumes") if volume.get("ephemeral") is not None]


def _templated(pod: Object) -> list[Object]:
    return [claim for claim in rows(section(pod, "spec"), "resourceClaims") if claim.get("resourceClaimTemplateName")]


def _owner(obj: Object) -> Object:
    """Return the pod that owns an object, {} for none."""
    references: list[Object] = section(obj, "metadata").get("ownerReferences") or []
    return next((each for each in references if each.get("controller") and each.get("kind") == "Pod"), Object())


def _pod_claim(claim: Object) -> str:
    return annotations_of(claim).get(POD_CLAIM, "")


def _made(version: str, kind: str, pod: Object, template: Object, named: Object) -> Object:
    """Return an object of the template's spec that the pod owns."""
    given, meta = section(template, "metadata"), section(pod, "metadata")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"], "controller": True}
    about: Object = {key: given[key] for key in ("labels", "annotations") if given.get(key)}
    about |= {"namespace": meta["namespace"], "ownerReferences": [owner]}
    return {"apiVersion": version, "kind": kind, "metadata": about | named, "spec": section(template, "spec")}


def _resource_claim(pod: Object, own: str, template: Object) -> Object:
    name = f"{pod['metadata']['name']}-{own}-"
    if len(name) > LONGEST_BASE:  # both parts give way alike
        pod_name = str(pod["metadata"]["name"])
        kept = [part[: len(part) * LONGEST_BASE // len(name)] for part in (pod_name, own)]
        name = "-".join(kept)
    made = _made("resource.k8s.io/v1", "ResourceClaim", pod, template, {"generateName": name})
    made["metadata"]["annotations"] = {**section(made["metadata"], "annotations"), POD_CLAIM: own}
    return made
