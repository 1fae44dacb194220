"""The kinds of object the api server knows: group, version, plural, scope, short names, one row each.

Messages name a kind by its key: the bare kind, or `Kind.group` where two groups share a kind (batch/v1 `Job` is
`Job.batch`; plain `Job` is Volcano's) and for kinds that a user defines. A further kind is one more row; but for
admission, nothing else in the store knows a kind's name. Sources: Kubernetes' discovery documents, Volcano's CRDs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping


class Kind(Struct, frozen=True, gc=False):
    """One row.

    `status` says whether the kind has a status subresource: then a status given on create or on the main path is
    dropped, unless `keeps_status` (nothing else here would fill it in). `also` are older group/versions whose objects
    are stored under `version` (their fields are the same); `versions` are those of them, of the same group, that are
    served beside it. `scale`: it has a scale subresource. `defined`: by a user.
    `selectable`: fields of a defined kind by which its objects can be selected.
    `elsewhere`: group/versions of other groups in which it is served, where the fields may have other names
    (`actors/gateway/request/versions.py`).
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
    keeps_status: bool = False
    versions: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    scale: bool = False
    singular_name: str = ""
    list_kind: str = ""
    defined: bool = False
    elsewhere: tuple[str, ...] = ()
    selectable: tuple[str, ...] = ()

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

    @property
    def singular(self) -> str:
        """The name of one, as `kubectl get pod` has it."""
        return self.singular_name or self.kind.lower()

    @property
    def is_custom(self) -> bool:
        """Return whether a real cluster has the kind from a CustomResourceDefinition: a user's own kind, or one of
        Volcano's.
        """
        return self.defined or self.group.endswith(".volcano.sh")

    @property
    def drops_status(self) -> bool:
        """Return whether only the status subresource writes the status."""
        return self.status and not self.keeps_status

    @property
    def served_versions(self) -> tuple[str, ...]:
        """The versions of its group under which it is served, the stored one first."""
        return (self.version, *self.versions)


_ADMISSION: Final = "admissionregistration.k8s.io"
_BATCH: Final = "batch.volcano.sh"
_FLOW: Final = "flow.volcano.sh"
_FLOW_CONTROL: Final = "flowcontrol.apiserver.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"
_SCHEDULING: Final = "scheduling.volcano.sh"
_STORAGE: Final = "storage.k8s.io"
_ALL: Final = ("all",)
_OLD_POD_GROUPS: Final = (
    "scheduling.volcano.sh/v1alpha1",
    "scheduling.volcano.sh/v1alpha2",
    "scheduling.incubator.k8s.io/v1alpha1",
    "scheduling.sigs.dev/v1alpha2",
)
_OLD_PRIORITIES: Final = ("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha1")


def _row(
    kind: str, group: str, version: str, plural: str, *short_names: str, key: str = "", wide: bool = False, **more: Any
) -> Kind:
    """`wide`: cluster-wide."""
    return Kind(key or kind, kind, group, version, plural, not wide, short_names, **more)


_ROWS: Final = (
    _row("Pod", "", "v1", "pods", "po", status=True, categories=_ALL),
    _row("Node", "", "v1", "nodes", "no", wide=True, status=True, keeps_status=True),
    _row("Namespace", "", "v1", "namespaces", "ns", wide=True, status=True),
    _row("ConfigMap", "", "v1", "configmaps", "cm"),
    _row("Secret", "", "v1", "secrets"),
    _row("Service", "", "v1", "services", "svc", status=True, keeps_status=True, categories=_ALL),
    _row("ServiceAccount", "", "v1", "serviceaccounts", "sa"),
    _row("Endpoints", "", "v1", "endpoints", "ep", singular_name="endpoints"),
    _row("Event", "", "v1", "events", "ev", elsewhere=("events.k8s.io/v1",)),
    _row("LimitRange", "", "v1", "limitranges", "limits"),
    _row("PodTemplate", "", "v1", "podtemplates"),
    _row("ResourceQuota", "", "v1", "resourcequotas", "quota", status=True, keeps_status=True),
    _row(
        "ReplicationController",
        "",
        "v1",
        "replicationcontrollers",
        "rc",
        status=True,
        scale=True,
        categories=_ALL,
    ),
    _row("PersistentVolume", "", "v1", "persistentvolumes", "pv", wide=True, status=True, keeps_status=True),
    _row("PersistentVolumeClaim", "", "v1", "persistentvolumeclaims", "pvc", status=True, keeps_status=True),
    _row("ControllerRevision", "apps", "v1", "controllerrevisions"),
    _row("DaemonSet", "apps", "v1", "daemonsets", "ds", status=True, categories=_ALL),
    _row(
        "Deployment",
        "apps",
        "v1",
        "deployments",
        "deploy",
        status=True,
        scale=True,
        categories=_ALL,
        also=("extensions/v1beta1",),
    ),
    _row(
        "ReplicaSet",
        "apps",
        "v1",
        "replicasets",
        "rs",
        status=True,
        scale=True,
        categories=_ALL,
        also=("extensions/v1beta1",),
    ),
    _row("StatefulSet", "apps", "v1", "statefulsets", "sts", status=True, scale=True, categories=_ALL),
    _row(
        "HorizontalPodAutoscaler",
        "autoscaling",
        "v2",
        "horizontalpodautoscalers",
        "hpa",
        also=("autoscaling/v1",),
        versions=("v1",),
        status=True,
        categories=_ALL,
    ),
    _row("CronJob", "batch", "v1", "cronjobs", "cj", key="CronJob.batch", status=True, categories=_ALL),
    _row("Job", "batch", "v1", "jobs", key="Job.batch", status=True, categories=_ALL),
    _row(
        "CertificateSigningRequest",
        "certificates.k8s.io",
        "v1",
        "certificatesigningrequests",
        "csr",
        wide=True,
        status=True,
    ),
    _row("Lease", "coordination.k8s.io", "v1", "leases"),
    _row("EndpointSlice", "discovery.k8s.io", "v1", "endpointslices"),
    _row("FlowSchema", _FLOW_CONTROL, "v1", "flowschemas", wide=True, status=True),
    _row("PriorityLevelConfiguration", _FLOW_CONTROL, "v1", "prioritylevelconfigurations", wide=True, status=True),
    _row(
        "APIService",
        "apiregistration.k8s.io",
        "v1",
        "apiservices",
        wide=True,
        status=True,
        categories=("api-extensions",),
    ),
    _row("Ingress", "networking.k8s.io", "v1", "ingresses", "ing", status=True),
    _row("IngressClass", "networking.k8s.io", "v1", "ingressclasses", wide=True),
    _row("NetworkPolicy", "networking.k8s.io", "v1", "networkpolicies", "netpol"),
    _row("RuntimeClass", "node.k8s.io", "v1", "runtimeclasses", wide=True),
    _row(
        "PodDisruptionBudget",
        "policy",
        "v1",
        "poddisruptionbudgets",
        "pdb",
        status=True,
        keeps_status=True,
        also=("policy/v1beta1",),
    ),
    _row("ClusterRole", _RBAC, "v1", "clusterroles", wide=True),
    _row("ClusterRoleBinding", _RBAC, "v1", "clusterrolebindings", wide=True),
    _row("Role", _RBAC, "v1", "roles"),
    _row("RoleBinding", _RBAC, "v1", "rolebindings"),
    _row("PriorityClass", "scheduling.k8s.io", "v1", "priorityclasses", "pc", wide=True, also=_OLD_PRIORITIES),
    _row("CSIDriver", _STORAGE, "v1", "csidrivers", wide=True),
    _row("CSINode", _STORAGE, "v1", "csinodes", wide=True),
    _row("CSIStorageCapacity", _STORAGE, "v1", "csistoragecapacities"),
    _row("StorageClass", _STORAGE, "v1", "storageclasses", "sc", wide=True),
    _row("VolumeAttachment", _STORAGE, "v1", "volumeattachments", wide=True, status=True, keeps_status=True),
    _row("DeviceClass", "resource.k8s.io", "v1", "deviceclasses", wide=True),
    _row("ResourceClaim", "resource.k8s.io", "v1", "resourceclaims", status=True, keeps_status=True),
    _row("ResourceClaimTemplate", "resource.k8s.io", "v1", "resourceclaimtemplates"),
    _row("ResourceSlice", "resource.k8s.io", "v1", "resourceslices", wide=True),
    _row("MutatingWebhookConfiguration", _ADMISSION, "v1", "mutatingwebhookconfigurations", wide=True),
    _row("ValidatingAdmissionPolicy", _ADMISSION, "v1", "validatingadmissionpolicies", wide=True, status=True),
    _row("ValidatingAdmissionPolicyBinding", _ADMISSION, "v1", "validatingadmissionpolicybindings", wide=True),
    _row("ValidatingWebhookConfiguration", _ADMISSION, "v1", "validatingwebhookconfigurations", wide=True),
    _row(
        "CustomResourceDefinition",
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "crd",
        "crds",
        wide=True,
        status=True,
        categories=("api-extensions",),
    ),
    _row("NodeMetrics", "metrics.k8s.io", "v1beta1", "nodes", wide=True),
    _row("Job", _BATCH, "v1alpha1", "jobs", "vcjob", "vj", status=True),
    _row("CronJob", _BATCH, "v1alpha1", "cronjobs", "cronvcjob", "cronvj", status=True),
    _row("Command", "bus.volcano.sh", "v1alpha1", "commands"),
    _row("ColocationConfiguration", "config.volcano.sh", "v1alpha1", "colocationconfigurations", status=True),
    _row("JobFlow", _FLOW, "v1alpha1", "jobflows", "jf", status=True),
    _row("JobTemplate", _FLOW, "v1alpha1", "jobtemplates", "jt", status=True),
    _row("PodGroup", _SCHEDULING, "v1beta1", "podgroups", "pg", "podgroup-v1beta1", also=_OLD_POD_GROUPS),
    _row("Queue", _SCHEDULING, "v1beta1", "queues", "q", "queue-v1beta1", wide=True, status=True, also=_OLD_POD_GROUPS),
    _row("HyperNode", "topology.volcano.sh", "v1alpha1", "hypernodes", "hn", wide=True, status=True),
    _row("NodeShard", "shard.volcano.sh", "v1alpha1", "nodeshards", "nsh", wide=True, status=True),
    _row("Numatopology", "nodeinfo.volcano.sh", "v1alpha1", "numatopologies", "numatopo", wide=True),
)

KINDS: Final[Mapping[str, Kind]] = {row.key: row for row in _ROWS}
"""Every known kind by its key."""

_BY_TYPE: Final[dict[tuple[object, object], Kind]] = {
    (api_version, row.kind): row for row in _ROWS for api_version in (row.api_version, *row.also, *row.elsewhere)
}


def kind_of(api_version: object, kind: object) -> Kind | None:
    """The row for an object's `apiVersion` and `kind`, older versions included; None when there is none."""
    return _BY_TYPE.get((api_version, kind)) if isinstance(api_version, str) and isinstance(kind, str) else None


def known_types() -> list[tuple[str, str]]:
    """Every (apiVersion, kind) that is stored as it is, for "did you mean" hints."""
    return [(row.api_version, row.kind) for row in _ROWS]
