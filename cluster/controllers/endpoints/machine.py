"""Endpoints and EndpointSlices of Services as a pure machine (source: Kubernetes' two controllers for them).

A Service with a selector has the pods that it selects. The others are left to whoever made them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.controllers.endpoints.objects import (
    MANAGED_BY,
    SERVICE_NAME,
    SLICE_CONTROLLER,
    ReachedPod,
    endpoints_of,
    slices_of,
    target_of,
)
from pumice.core.messages.commands import ApiRequest, Create, Delete, Patch
from pumice.core.messages.replies import ApiReply
from pumice.core.objects.metadata import Object, section, text_map
from pumice.storage.codec import pack

Key = tuple[str, str]

USER: Final = "endpoints-controller"


class EndpointsMachine:
    """Writes the Endpoints and EndpointSlices of Services."""

    kinds = ("Service", "Pod", "Endpoints", "EndpointSlice")

    def __init__(self) -> None:
        self._services: dict[str, dict[str, Object]] = {}
        self._pods: dict[str, dict[str, Object]] = {}
        self._endpoints: dict[Key, Object] = {}
        self._slices: dict[Key, dict[str, Object]] = {}
        self._dirty: dict[Key, None] = {}

    # --- what changed

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """An object is there, or is gone, as of `revision`."""
        del revision
        key = (obj["metadata"].get("namespace") or "", obj["metadata"]["name"])
        match kind:
            case "Service":
                self._service(key, obj, deleted=deleted)
            case "Pod":
                self._pod(key, obj, deleted=deleted)
            case "Endpoints":
                self._known(key, obj, deleted=deleted)
            case _:
                self._slice(key, obj, deleted=deleted)

    def _service(self, key: Key, service: Object, *, deleted: bool) -> None:
        here = self._services.setdefault(key[0], {})
        if deleted:
            here.pop(key[1], None)
        else:
            here[key[1]] = service
        self._dirty[key] = None

    def _known(self, key: Key, endpoints: Object, *, deleted: bool) -> None:
        if deleted:
            self._endpoints.pop(key, None)
        else:
            self._endpoints[key] = endpoints
        self._dirty[key] = None

    def _slice(self, key: Key, found: Object, *, deleted: bool) -> None:
        labels = text_map(found["metadata"].get("labels"))
        for owner, held in [*self._slices.items()] if deleted else ():
            if owner[0] == key[0] and held.pop(key[1], None) is not None:
                self._dirty[owner] = None
        if not deleted and labels.get(MANAGED_BY) == SLICE_CONTROLLER and (name := labels.get(SERVICE_NAME)):
            self._slices.setdefault((key[0], name), {})[key[1]] = found
            self._dirty[key[0], name] = None

    def _pod(self, key: Key, pod: Object, *, deleted: bool) -> None:
        here = self._pods.setdefault(key[0], {})
        before = here.pop(key[1], None)
        if not deleted:
            here[key[1]] = pod
        for name, service in self._services.get(key[0], {}).items():
            old = before is not None and self._seen(service, before)
            new = not deleted and self._seen(service, pod)
            if old != new:
                self._dirty[key[0], name] = None

    @staticmethod
    def _seen(service: Object, pod: Object) -> ReachedPod | None:
        """The pod as one behind the Service; None: it is not."""
        selector = section(service, "spec").get("selector")
        if not selector or not selector.items() <= text_map(pod["metadata"].get("labels")).items():
            return None
        return target_of(service, pod)

    # --- what to do

    def step(self, now: float) -> Sequence[ApiRequest]:
        """What to ask of the api now; empty when there is nothing to do before the next news or timer."""
        del now
        dirty, self._dirty = self._dirty, {}
        return [request for key in dirty for request in self._work(key)]

    def _work(self, key: Key) -> list[ApiRequest]:
        service = self._services.get(key[0], {}).get(key[1])
        if service is None:
            own = key in self._slices  # somebody else may have Endpoints of that name
            self._slices.pop(key, None)
            return [Delete("Endpoints", *key, user=USER)] if own and key in self._endpoints else []
        targets = self._targets(key, service)
        if targets is None or "deletionTimestamp" in service["metadata"]:
            return []
        requests = _settled("Endpoints", self._endpoints.get(key), endpoints_of(service, targets), ("subsets",))
        held, wanted = self._slices.get(key, {}), slices_of(service, targets)
        for each in wanted:
            requests += _settled("EndpointSlice", held.get(each["metadata"]["name"]), each, ("endpoints", "ports"))
        kept = {each["metadata"]["name"] for each in wanted}
        return requests + [Delete("EndpointSlice", key[0], name, user=USER) for name in held if name not in kept]

    def _targets(self, key: Key, service: Object) -> list[ReachedPod] | None:
        """Who is behind it; None: this is somebody else's business."""
        spec = section(service, "spec")
        if not spec.get("selector") or spec.get("type") == "ExternalName":
            return None
        found = (self._seen(service, pod) for pod in self._pods.get(key[0], {}).values())
        return [each for each in found if each is not None]

    def answered(self, request: ApiRequest, reply: ApiReply, now: float) -> None:
        """The answer to one request of the last step; they come in order, before the next step. What was refused is
        there already or has gone: the watch tells.
        """

    def next_due(self) -> float | None:
        """When `step` will have something to do though nothing changed; None: never."""
        return None

    def running_timers(self) -> int:
        """How many timers are running."""
        return 0


def _settled(kind: str, known: Object | None, wanted: Object, parts: Sequence[str]) -> list[ApiRequest]:
    """What makes the one that is there the one that is wanted."""
    if known is None:
        return [Create(pack(wanted), user=USER)]
    meta, labels = known["metadata"], wanted["metadata"]["labels"]
    patch: Object = {part: wanted[part] for part in parts if (known.get(part) or []) != wanted[part]}
    if not labels.items() <= text_map(meta.get("labels")).items():
        patch["metadata"] = {"labels": labels}
    return [Patch(kind, meta["namespace"], meta["name"], pack(patch), user=USER)] if patch else []
