# SPDX-License-Identifier: Apache-2.0
"""Decisions of the scheduler, carried out on a real cluster.

Sources: Volcano v1.15.1 `pkg/scheduler/cache/cache.go` (DefaultBinder, defaultEvictor, defaultStatusUpdater). It sends
whole objects back; here they are patches under the resourceVersion that is known, since what is known of a pod here is
not all of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pumice.actors.errors import RemoteError
from pumice.actors.real_clusters.scheduled.client import ClusterClient
from pumice.cluster.api.kinds import KINDS, Kind
from pumice.cluster.kube.events import Said, of_evicted, of_group, of_placed, of_waiting
from pumice.cluster.kube.merge_patch import diff_patch
from pumice.cluster.kube.statuses import merge_condition, reported, timestamp
from pumice.core.messages.commands import BindPod, EvictPod, Get, ReportStatus
from pumice.core.messages.decisions import PodCondition
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object, annotations_of, section
from pumice.storage import codec

if TYPE_CHECKING:
    from pumice.actors.real_clusters.scheduled.versions import RemoteVersions
    from pumice.actors.runtime.clock import Clock
    from pumice.actors.system.ports import ApiPort
    from pumice.core.messages.replies import ApiReply

# --- Paths of objects

EVENTS: Final = "Event"
QUEUE: Final = "Queue"
POD: Final = "Pod"
POD_GROUP: Final = "PodGroup"


def root(kind: Kind) -> str:
    """Return the path of a kind's group and version."""
    return f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"


def collection(key: str, namespace: str) -> str:
    """Return the path of the collection of the kind."""
    kind = KINDS[key]
    return f"{root(kind)}/namespaces/{namespace}/{kind.plural}" if kind.namespaced else f"{root(kind)}/{kind.plural}"


def place(key: str, namespace: str, name: str, subresource: str = "") -> str:
    """Return the path of one object, or of a subresource."""
    found = f"{collection(key, namespace)}/{name}"
    return f"{found}/{subresource}" if subresource else found


Heard = Callable[[str, Object], Awaitable[int]]
"""Takes an object of a kind in as the cluster now has it; the revision that it has here."""
Say = Callable[[Object, Said], None]
"""Says something about an object, some time."""

CONFLICT: Final = 409
CONFLICTS: Final = 5
"""How often an object is read again because another client wrote it in between."""
WHOLE: Final = (POD_GROUP,)
"""Kinds without a status subresource, in Volcano's definitions."""


class ClusterEffects:
    """Carries out decisions on a cluster. `local`: the known state of the cluster here. `until`: event-loop time
    (seconds) after which no asker waits.
    """

    def __init__(
        self, client: ClusterClient, local: ApiPort, versions: RemoteVersions, clock: Clock, heard: Heard, say: Say
    ) -> None:
        self._client = client
        self._local = local
        self._versions = versions
        self._clock = clock
        self._heard = heard
        self._say = say

    async def bind(self, request: BindPod) -> None:
        """Bind by POST. A pod that is already on that node counts as bound. Raises RemoteError."""
        meta: Object = {"namespace": request.namespace, "name": request.name, "uid": request.uid}
        if request.annotations:
            meta["annotations"] = request.annotations
        target = {"apiVersion": "v1", "kind": "Node", "name": request.node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        path = place(POD, request.namespace, request.name, "binding")
        try:
            await self._client.create(path, binding, request.until)
        except RemoteError as error:
            # 409 says that the pod has a node: perhaps by this very request, sent again after its answer was lost.
            if error.code != CONFLICT or not await self._is_bound(request):
                raise
        said = of_placed(request.namespace, request.name, request.node)
        self._say({"apiVersion": "v1", "kind": POD, "metadata": meta}, said)

    async def _is_bound(self, request: BindPod) -> bool:
        pod = await self.read(POD, request.namespace, request.name)
        return (
            section(pod, "metadata").get("uid") == request.uid and section(pod, "spec").get("nodeName") == request.node
        )

    async def evict(self, request: EvictPod) -> None:
        """Evict: write the conditions, then delete with the pod's own grace period. Raises RemoteError.

        Unlike Volcano's, an eviction that was cut off between the two is gone on with.
        """
        pod = await self._known(POD, request.namespace, request.name)
        for attempt in range(CONFLICTS):
            if section(pod, "metadata").get("uid") != request.uid:
                raise RemoteError(f"pod {request.namespace}/{request.name} is another one by now", CONFLICT, "Conflict")
            if section(pod, "metadata").get("deletionTimestamp"):
                return
            try:
                await self._give_reasons(pod, request)
                break
            except RemoteError as error:
                if error.code != CONFLICT or attempt == CONFLICTS - 1:
                    raise
                pod = await self.read(POD, request.namespace, request.name)
        # By uid: another pod that has come under this name stays.
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": request.uid}}
        await self._client.delete(place(POD, request.namespace, request.name), options, request.until)

    async def _give_reasons(self, pod: Object, request: EvictPod) -> None:
        conditions: list[Object] = list(section(pod, "status").get("conditions") or ())
        before, at = conditions, timestamp(self._clock.now())
        for each in request.conditions:
            wanted = {"type": each.type, "status": each.status, "reason": each.reason, "message": each.message}
            conditions = merge_condition(conditions, wanted, at) or conditions
        if conditions is before:
            return
        self._say(pod, of_evicted(request.conditions[0].message))
        await self._patch(POD, pod, {"status": {"conditions": conditions}}, request.until)

    async def report(self, request: ReportStatus, until: float) -> Accepted | Refused:
        """Write a status: 409 when the object has changed after what the reporter knew. Raises RemoteError."""
        found = await self._local.ask(Get(request.kind, request.namespace, request.name))
        if not isinstance(found, Accepted):
            return found if isinstance(found, Refused) else _gone(request)
        obj: Object = codec.unpack(found.blob)
        revision = int(obj["metadata"]["resourceVersion"])
        if revision > request.as_of:
            return _changed(request, revision)
        after = reported(obj, request.wanted, timestamp(self._clock.now()), request.cycle)
        patch = {} if after is None else diff_patch(_told(obj), _told(after))
        if not patch:
            return Accepted(revision)
        self._tell_waiting(obj, request)
        try:
            return Accepted(await self._patch(request.kind, obj, patch, until))
        except RemoteError as error:
            if error.code != CONFLICT:
                raise
        # The reporter tries again immediately, and needs the version that won.
        await self.read(request.kind, request.namespace, request.name)
        return _changed(request, await self._revision(request, revision))

    def _tell_waiting(self, obj: Object, request: ReportStatus) -> None:
        if isinstance(request.wanted, PodCondition) and request.wanted.message:
            self._say(obj, of_waiting(request.wanted.message))

    async def _revision(self, request: ReportStatus, otherwise: int) -> int:
        found = await self._local.ask(Get(request.kind, request.namespace, request.name))
        return (
            int(codec.unpack(found.blob)["metadata"]["resourceVersion"]) if isinstance(found, Accepted) else otherwise
        )

    async def _patch(self, kind: str, obj: Object, patch: Object, until: float) -> int:
        """Patch under the known version, and return its revision here."""
        meta = obj["metadata"]
        key = kind, meta.get("namespace") or "", meta["name"]
        known = self._versions.of(key)
        condition = {"uid": meta["uid"], **({"resourceVersion": known.text} if known and known.text else {})}
        whole = {**patch, "metadata": {**patch.get("metadata", {}), **condition}}
        after = await self._client.patch(place(*key, "" if kind in WHOLE else "status"), whole, until)
        if kind == POD_GROUP:
            self._tell_group(obj, after)
        # Taken from the answer: until the watch brings it, the next report would be a conflict with this one.
        return await self._heard(kind, after)

    def _tell_group(self, before: Object, after: Object) -> None:
        said = set(of_group(before))
        for each in of_group(after):
            if each not in said:
                self._say(after, each)

    async def read(self, kind: str, namespace: str, name: str) -> Object:
        """Return the cluster's present object, which is stored here as well. Raises RemoteError."""
        obj = await self._client.get(place(kind, namespace, name))
        await self._heard(kind, obj)
        return obj

    async def take_in(self, kind: str, obj: Object) -> None:
        """Store the cluster's present object here."""
        await self._heard(kind, obj)

    async def _known(self, kind: str, namespace: str, name: str) -> Object:
        found: ApiReply = await self._local.ask(Get(kind, namespace, name))
        return codec.unpack(found.blob) if isinstance(found, Accepted) else await self.read(kind, namespace, name)


def _told(obj: Object) -> Object:
    """Return the changes that the report makes."""
    return {
        "metadata": {"annotations": annotations_of(obj)},
        "status": section(obj, "status"),
    }


def _changed(request: ReportStatus, revision: int) -> Refused:
    said = f"{request.kind} {request.name} has changed since"
    return replace(Refused(CONFLICT, "Conflict", said), revision=revision)


def _gone(request: ReportStatus) -> Refused:
    return Refused(404, "NotFound", f"{request.kind} {request.name} not found")
