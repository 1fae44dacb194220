"""The kinds of object the api server knows: group, version, plural, scope, short names, one row each.

Messages name a kind by its key: the bare kind, or `Kind.group` where two groups share a kind (batch/v1 `Job` is to be
`Job.batch`; plain `Job` is Volcano's). A further kind is one more row; but for admission, nothing else in the store
knows a kind's name.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Kind(Struct, frozen=True, gc=False):
    """One row.

    `status` says whether the kind has a status subresource: then a status given on create or on the main path is
    dropped. `also` are older group/versions whose objects are stored under `version` (their fields are the same).
    """

    key: str
    kind: str
    group: str
    version: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    status: bool = False
    also: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """`group/version`, or the bare version in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """`plural.group`, as error messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified(self) -> str:
        """`Kind.group`, as Invalid errors name it."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


_BATCH: Final = "batch.volcano.sh"
_SCHEDULING: Final = "scheduling.volcano.sh"
_OLD_POD_GROUPS: Final = (
    "scheduling.volcano.sh/v1alpha1",
    "scheduling.volcano.sh/v1alpha2",
    "scheduling.incubator.k8s.io/v1alpha1",
    "scheduling.sigs.dev/v1alpha2",
)


def _row(
    kind: str,
    group: str,
    version: str,
    plural: str,
    *short_names: str,
    namespaced: bool = True,
    status: bool = False,
    also: tuple[str, ...] = (),
    key: str = "",
) -> Kind:
    return Kind(key or kind, kind, group, version, plural, namespaced, short_names, status, also)


_ROWS: Final = (
    _row("Pod", "", "v1", "pods", "po", status=True),
    _row("Node", "", "v1", "nodes", "no", namespaced=False),  # kubelets give status on create, so it is kept
    _row("Namespace", "", "v1", "namespaces", "ns", namespaced=False, status=True),
    _row("ConfigMap", "", "v1", "configmaps", "cm"),
    _row("Secret", "", "v1", "secrets"),
    _row("Service", "", "v1", "services", "svc"),
    _row("ServiceAccount", "", "v1", "serviceaccounts", "sa"),
    _row("Event", "", "v1", "events", "ev"),
    _row("LimitRange", "", "v1", "limitranges", "limits"),
    _row("ResourceQuota", "", "v1", "resourcequotas", "quota"),  # status kept: no quota controller fills it in
    _row("ReplicationController", "", "v1", "replicationcontrollers", "rc", status=True),
    _row("PersistentVolume", "", "v1", "persistentvolumes", "pv", namespaced=False),
    _row("PersistentVolumeClaim", "", "v1", "persistentvolumeclaims", "pvc"),
    _row("Deployment", "apps", "v1", "deployments", "deploy", status=True, also=("extensions/v1beta1",)),
    _row("ReplicaSet", "apps", "v1", "replicasets", "rs", status=True, also=("extensions/v1beta1",)),
    _row("StatefulSet", "apps", "v1", "statefulsets", "sts", status=True),
    _row("DaemonSet", "apps", "v1", "daemonsets", "ds", status=True),
    _row("Lease", "coordination.k8s.io", "v1", "leases"),
    _row("NetworkPolicy", "networking.k8s.io", "v1", "networkpolicies", "netpol"),
    _row("PodDisruptionBudget", "policy", "v1", "poddisruptionbudgets", "pdb", also=("policy/v1beta1",)),
    _row(
        "PriorityClass",
        "scheduling.k8s.io",
        "v1",
        "priorityclasses",
        "pc",
        namespaced=False,
        also=("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha1"),
    ),
    _row("StorageClass", "storage.k8s.io", "v1", "storageclasses", "sc", namespaced=False),
    _row("CSINode", "storage.k8s.io", "v1", "csinodes", namespaced=False),
    _row("CSIDriver", "storage.k8s.io", "v1", "csidrivers", namespaced=False),
    _row("CSIStorageCapacity", "storage.k8s.io", "v1", "csistoragecapacities"),
    _row("VolumeAttachment", "storage.k8s.io", "v1", "volumeattachments", namespaced=False),
    _row("ResourceClaim", "resource.k8s.io", "v1", "resourceclaims"),
    _row("ResourceClaimTemplate", "resource.k8s.io", "v1", "resourceclaimtemplates"),
    _row("ResourceSlice", "resource.k8s.io", "v1", "resourceslices", namespaced=False),
    _row("DeviceClass", "resource.k8s.io", "v1", "deviceclasses", namespaced=False),
    _row("NodeMetrics", "metrics.k8s.io", "v1beta1", "nodes", namespaced=False),
    _row("Job", _BATCH, "v1alpha1", "jobs", "vcjob", "vj", status=True),
    _row("Command", "bus.volcano.sh", "v1alpha1", "commands"),
    _row("PodGroup", _SCHEDULING, "v1beta1", "podgroups", "pg", "podgroup-v1beta1", also=_OLD_POD_GROUPS),
    _row(
        "Queue",
        _SCHEDULING,
        "v1beta1",
        "queues",
        "q",
        "queue-v1beta1",
        namespaced=False,
        status=True,
        also=_OLD_POD_GROUPS,
    ),
    _row("HyperNode", "topology.volcano.sh", "v1alpha1", "hypernodes", "hn", namespaced=False, status=True),
    _row("NodeShard", "shard.volcano.sh", "v1alpha1", "nodeshards", "nsh", namespaced=False, status=True),
    _row("Numatopology", "nodeinfo.volcano.sh", "v1alpha1", "numatopologies", "numatopo", namespaced=False),
)

KINDS: Final[dict[str, Kind]] = {row.key: row for row in _ROWS}
"""Every known kind by its key."""

_BY_TYPE: Final[dict[tuple[object, object], Kind]] = {
    (api_version, row.kind): row for row in _ROWS for api_version in (row.api_version, *row.also)
}


def kind_of(api_version: object, kind: object) -> Kind | None:
    """The row for an object's `apiVersion` and `kind`, older versions included; None when there is none."""
    return _BY_TYPE.get((api_version, kind)) if isinstance(api_version, str) and isinstance(kind, str) else None


def known_types() -> list[tuple[str, str]]:
    """Every (apiVersion, kind) that is stored as it is, for "did you mean" hints."""
    return [(row.api_version, row.kind) for row in _ROWS]
