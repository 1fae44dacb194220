# SPDX-License-Identifier: Apache-2.0
"""Registrar of a storage driver on every node, as a pure machine. The node's CSINode names the drivers of all storage
classes, without a limit, so that claims count as a resource of nodes.

A CSINode that another client made is left as it is. Source: Kubernetes' kubelet (`pkg/volume/csi/nodeinfomanager`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.machine import Machine
from pumice.core.kube.storage import NO_PROVISIONER
from pumice.core.messages.commands import ApiRequest, Create, Delete, Update
from pumice.core.messages.replies import ApiReply, Refused
from pumice.core.objects.metadata import Object, annotations_of, section
from pumice.storage.codec import pack, unpack

USER: Final = "volume-controller"
MADE_HERE: Final = "pumice.dev/registered"
RETRY_S: Final = 1.0
_KINDS: Final = ("StorageClass", "Node", "CSINode")


class DriversMachine(Machine):
    """Names the drivers of all storage classes in every node's CSINode."""

    kinds = _KINDS

    def __init__(self) -> None:
        self._classes: dict[str, str] = {}  # storage class -> provisioner
        self._nodes: set[str] = set()
        self._registered: dict[str, Object] = {}
        self._dirty: dict[str, None] = {}
        self._retries: dict[str, float] = {}

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        # what is older than what was seen is met with a conflict, and seen again
        name: str = obj["metadata"]["name"]
        if kind == "StorageClass":
            before = self._drivers()
            self._classes[name] = "" if deleted else str(obj.get("provisioner") or "")
            if self._drivers() != before:
                self._dirty.update(dict.fromkeys(sorted(self._nodes)))
        elif kind == "Node":
            if (name in self._nodes) is deleted:
                (self._nodes.discard if deleted else self._nodes.add)(name)
                self._dirty[name] = None
        elif deleted:
            self._registered.pop(name, None)
            self._dirty[name] = None
        else:
            self._registered[name] = obj
            self._dirty[name] = None

    def _drivers(self) -> list[str]:
        return sorted({*self._classes.values()} - {"", NO_PROVISIONER})

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        for name in [name for name, due in self._retries.items() if due <= now]:
            del self._retries[name]
            self._dirty[name] = None
        dirty, self._dirty = self._dirty, {}
        return [request for name in dirty if (request := self._write(name)) is not None]

    def _write(self, name: str) -> ApiRequest | None:
        there = self._registered.get(name)
        ours = there is not None and MADE_HERE in annotations_of(there)
        if name not in self._nodes:
            return Delete("CSINode", "", name, user=USER) if ours else None
        wanted = [{"name": driver, "nodeID": name} for driver in self._drivers()]
        if there is None and wanted:
            metadata = {"name": name, "annotations": {MADE_HERE: "true"}}
            made = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata}
            return Create(pack({**made, "spec": {"drivers": wanted}}), user=USER)
        if there is not None and ours and section(there, "spec").get("drivers") != wanted:
            return Update(pack({**there, "spec": {"drivers": wanted}}), user=USER)
        return None

    def answered(self, request: ApiRequest, reply: ApiReply, now: float) -> None:
        """Take the answer to one request of the last step; answers come in order, before the next step. Writes come
        back by the watch.
        """
        if isinstance(reply, Refused) and isinstance(request, Create | Update | Delete):
            name = request.name if isinstance(request, Delete) else unpack(request.blob)["metadata"]["name"]
            self._retries[name] = now + RETRY_S

    def next_due(self) -> float | None:
        """Return the time when `step` has work without any change; None for never."""
        return min(self._retries.values(), default=None)

    def running_timers(self) -> int:
        """Return the number of running timers."""
        return len(self._retries)
