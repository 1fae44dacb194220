# SPDX-License-Identifier: Apache-2.0
"""Objects that Kubernetes puts into every namespace, as a pure machine: the default ServiceAccount of pods, and the
certificate by which pods know the API server (source: its service account and root CA controllers). The certificate is
empty: simulated containers never connect to the API server.

A namespace that a client deletes is emptied a little later, as by Kubernetes' namespace controller: `kubectl delete -f`
of a namespace and what is in it finds all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.machine import Machine
from pumice.cluster.timers import Timers
from pumice.core.messages.commands import EMPTIES, ApiRequest, Create, Delete
from pumice.core.objects.metadata import Object, section
from pumice.storage.codec import pack

Name = tuple[str, str, str]

CONTENTS: Final[tuple[tuple[str, str, Object], ...]] = (
    ("ServiceAccount", "default", {}),
    ("ConfigMap", "kube-root-ca.crt", {"data": {"ca.crt": ""}}),
)
"""Kind, name, and what is in it."""
EMPTIED_AFTER_S: Final = 2.0


class NamespaceMachine(Machine):
    """Makes the objects of every namespace, and makes deleted ones again while their namespace stays."""

    kinds = ("ServiceAccount", "ConfigMap", "Namespace")

    def __init__(self) -> None:
        self._names = {name for _, name, _ in CONTENTS}
        self._namespaces: dict[str, bool] = {}  # whether they stay
        self._there: set[Name] = set()
        self._stale: dict[str, None] = {}
        self._timers = Timers[str]()

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        meta = obj["metadata"]
        if kind == "Namespace":
            self._namespace(obj, deleted=deleted)
        elif meta["name"] in self._names:
            key = (kind, meta["namespace"], meta["name"])
            (self._there.discard if deleted else self._there.add)(key)
            self._stale[meta["namespace"]] = None

    def _namespace(self, obj: Object, *, deleted: bool) -> None:
        name = obj["metadata"]["name"]
        if deleted:
            self._namespaces.pop(name, None)
            self._timers.cancel(name)
            return
        stays = "deletionTimestamp" not in obj["metadata"] and section(obj, "status").get("phase") != "Terminating"
        if self._namespaces.get(name) is not stays:
            self._namespaces[name] = stays
            self._stale[name] = None

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        stale, self._stale = self._stale, {}
        for namespace in stale:
            if self._namespaces.get(namespace) is False:
                self._timers.set(namespace, now + EMPTIED_AFTER_S)
        emptied = [Delete("Namespace", "", name, user=EMPTIES) for name in self._timers.take_due(now)]
        made = [
            Create(pack(_made(kind, namespace, name, content)), user=EMPTIES)
            for namespace in stale
            if self._namespaces.get(namespace)
            for kind, name, content in CONTENTS
            if (kind, namespace, name) not in self._there
        ]
        return [*emptied, *made]

    def next_due(self) -> float | None:
        """Return the time when `step` has work without any change; None for never."""
        return self._timers.next_due()

    def running_timers(self) -> int:
        """Return the number of running timers that an idle run must have waited for."""
        return len(self._timers)


def _made(kind: str, namespace: str, name: str, content: Object) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, **content}
