# SPDX-License-Identifier: Apache-2.0
"""Work that only a served cluster does, because clients read its results.

- Namespaces must exist (`pumice.cluster.api.checks.namespace`), and one that a client deletes is emptied a little later
  (`pumice.core.messages.commands.EMPTIES`), so that a client may delete what is in it too.
- Volcano's kinds are offered while their CustomResourceDefinitions exist (`pumice.cluster.api.kind_table`).
- New objects get what a kube-apiserver's admission plugins and defaults add (`fill_in_served`).
- It begins with namespaces, a StorageClass, those definitions, and the API server's Service with its address
  (`pumice.cluster.api.bootstrap.first_requests`).
- Pods and nodes have addresses, nodes leases, and there are events of pods and endpoints of services
  (`served` and `SERVED` in `pumice.cluster.kernel.roster`).
- Clients have tokens (`pumice.actors.gateway.handlers.tokens`).

What a run begins with, and a run without clients, go without: there it would only be more to write. Sources:
DefaultTolerationSeconds, ServiceAccount, DefaultStorageClass, the defaults of `core/v1`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pumice.cluster.api.admission.batch_jobs import selection_problems
from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.refusals import Cause, forbidden_field
from pumice.core.objects.metadata import Object, annotations_of, rows, section

DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
OWN_PROVISIONER: Final = "pumice.dev/volumes"
"""Of the class that a served cluster begins with: one that a client has made goes before it."""
OLD_DEFAULT_CLASS: Final = "storageclass.beta.kubernetes.io/is-default-class"
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATED_S: Final = 300
_OF_PODS: Final = (("dnsPolicy", "ClusterFirst"), ("enableServiceLinks", True))
_OF_CONTAINERS: Final = (("terminationMessagePath", "/dev/termination-log"), ("terminationMessagePolicy", "File"))
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_OF_PROBES: Final = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_NOTHING: Final = {"cpu": "0", "memory": "0"}
_FILES: Final = ("configMap", "downwardAPI", "projected", "secret")
_READABLE: Final = 0o644
"""The mode of files that volumes of those sources hold."""


def fill_in_served(kind: str, obj: Object, lookup: Lookup) -> None:
    """Fill in a new object of a kind, by its key."""
    if (fill_in := _FILL_IN.get(kind)) is not None:
        fill_in(obj, lookup)


def served_problems(kind: str, obj: Object, uid: str) -> list[Cause]:
    """Return the problems of a new object of a kind (by key) that would get this uid. Objects that a run begins with
    may have had another uid.
    """
    if kind == "Pod" and section(obj, "spec").get("ephemeralContainers"):
        return [forbidden_field("spec.ephemeralContainers", "cannot be set on create")]
    return selection_problems(obj, uid) if kind == "Job.batch" else []


def _pod(pod: Object, _lookup: Lookup) -> None:
    """Add a service account, fields that only clients read, and five minutes on a node that is not ready or cannot be
    reached.
    """
    spec: Object = pod.setdefault("spec", {})
    account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    # Both names: clients of old versions read the deprecated one.
    spec["serviceAccountName"] = spec["serviceAccount"] = account
    _say_defaults(spec)
    tolerations = rows(spec, "tolerations")
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_S}
        for key in _TAINTS
        if not any(_covers(each, key) for each in tolerations)
    ]
    if added:
        spec["tolerations"] = [*tolerations, *added]


def _say_defaults(spec: Object) -> None:
    """Write the defaults that clients read. Source: `SetDefaults_PodSpec` and its callees."""
    for name, value in _OF_PODS:
        spec.setdefault(name, value)
    spec.setdefault("securityContext", {})
    for group in ("containers", "initContainers"):
        for container in rows(spec, group):
            for name, value in _OF_CONTAINERS:
                container.setdefault(name, value)
            container.setdefault("resources", {})
            if "imagePullPolicy" not in container:
                container["imagePullPolicy"] = _pull_policy(str(container.get("image", "")))
            for probe in _PROBES:
                if container.get(probe):
                    # What the manifest says goes last, so that it wins.
                    container[probe] = {**_OF_PROBES, **container[probe]}
    for volume in rows(spec, "volumes"):
        for source in _FILES:
            if source in volume:
                volume[source] = {"defaultMode": _READABLE, **(volume[source] or {})}


def _pull_policy(image: str) -> str:
    """Return the pull policy: Always for the tag latest, which an image without a tag has."""
    name = image.rpartition("/")[2]
    # After the last slash only: a registry's port has a colon, too.
    tagged = "@" in name or name.partition(":")[2] not in ("", "latest")
    return "IfNotPresent" if tagged else "Always"


def _covers(toleration: Object, key: str) -> bool:
    return toleration.get("key") in (key, None, "") and toleration.get("effect") in ("NoExecute", None, "")


def _claim(claim: Object, lookup: Lookup) -> None:
    """Set the default class of a claim that names no class; the newest, if there are several."""
    spec: Object = claim.setdefault("spec", {})
    if spec.get("storageClassName") is not None or _OLD_CLASS in annotations_of(claim):
        return
    classes = [each for each in lookup.all("StorageClass") if _is_default(each)]
    if classes:
        # The newest of several, as Kubernetes since 1.26; Pumice's own class only where no other is the default.
        spec["storageClassName"] = max(classes, key=_rank)["metadata"]["name"]


def _is_default(storage_class: Object) -> bool:
    annotations = annotations_of(storage_class)
    return "true" in (annotations.get(DEFAULT_CLASS), annotations.get(OLD_DEFAULT_CLASS))


def _rank(storage_class: Object) -> tuple[bool, str, str]:
    meta = storage_class["metadata"]
    return storage_class.get("provisioner") != OWN_PROVISIONER, meta.get("creationTimestamp") or "", meta["name"]


def _queue(queue: Object, _lookup: Lookup) -> None:
    """Write the status that the first session would write of an empty queue. A client that creates a queue and updates
    it immediately, as Volcano's suites do, would otherwise meet a conflicting write (409).
    """
    queue["status"] = {"allocated": dict(_NOTHING), **section(queue, "status")}


_FILL_IN: Final[dict[str, Callable[[Object, Lookup], None]]] = {
    "Pod": _pod,
    "PersistentVolumeClaim": _claim,
    "Queue": _queue,
}
