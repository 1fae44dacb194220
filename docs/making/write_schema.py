"""Writes cluster/api/schema/kinds.json from the sources of Kubernetes and Volcano.

    python -m docs.making.write_schema MODULES DEFINITIONS

MODULES is a Go module cache that holds k8s.io/api, apimachinery, apiextensions-apiserver, kube-aggregator and metrics
(`go env GOMODCACHE`, after `go mod download`); DEFINITIONS the folder config/crd of Volcano's repository.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import yaml

from docs.making.crd_types import Definitions
from docs.making.data_file import DATA, text
from docs.making.field_notes import NOTES
from docs.making.go_types import Sources, message_name
from docs.making.resources import resources

_META: Final = "k8s.io/apimachinery/pkg/apis/meta/v1"
_ROOTS: Final[dict[str, tuple[str, str]]] = {
    "k8s.io/api/core/v1": (
        "",
        """Pod Node Namespace ConfigMap Secret Service ServiceAccount Endpoints Event LimitRange PodTemplate
        ResourceQuota ReplicationController PersistentVolume PersistentVolumeClaim Binding""",
    ),
    "k8s.io/api/apps/v1": ("apps", "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet"),
    "k8s.io/api/autoscaling/v1": ("autoscaling", "HorizontalPodAutoscaler Scale"),
    "k8s.io/api/autoscaling/v2": ("autoscaling", "HorizontalPodAutoscaler"),
    "k8s.io/api/batch/v1": ("batch", "CronJob Job"),
    "k8s.io/api/certificates/v1": ("certificates.k8s.io", "CertificateSigningRequest"),
    "k8s.io/api/coordination/v1": ("coordination.k8s.io", "Lease"),
    "k8s.io/api/discovery/v1": ("discovery.k8s.io", "EndpointSlice"),
    "k8s.io/api/events/v1": ("events.k8s.io", "Event"),
    "k8s.io/api/flowcontrol/v1": ("flowcontrol.apiserver.k8s.io", "FlowSchema PriorityLevelConfiguration"),
    "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1": ("apiregistration.k8s.io", "APIService"),
    "k8s.io/api/networking/v1": ("networking.k8s.io", "Ingress IngressClass NetworkPolicy"),
    "k8s.io/api/node/v1": ("node.k8s.io", "RuntimeClass"),
    "k8s.io/api/policy/v1": ("policy", "PodDisruptionBudget Eviction"),
    "k8s.io/api/rbac/v1": ("rbac.authorization.k8s.io", "ClusterRole ClusterRoleBinding Role RoleBinding"),
    "k8s.io/api/scheduling/v1": ("scheduling.k8s.io", "PriorityClass"),
    "k8s.io/api/storage/v1": (
        "storage.k8s.io",
        "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment",
    ),
    "k8s.io/api/resource/v1": ("resource.k8s.io", "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice"),
    "k8s.io/api/admissionregistration/v1": (
        "admissionregistration.k8s.io",
        """MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
        ValidatingWebhookConfiguration""",
    ),
    "k8s.io/api/authentication/v1": ("authentication.k8s.io", "SelfSubjectReview TokenRequest TokenReview"),
    "k8s.io/api/authorization/v1": (
        "authorization.k8s.io",
        "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
    ),
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1": ("apiextensions.k8s.io", "CustomResourceDefinition"),
    "k8s.io/metrics/pkg/apis/metrics/v1beta1": ("metrics.k8s.io", "NodeMetrics PodMetrics"),
    _META: ("meta.k8s.io", "DeleteOptions CreateOptions UpdateOptions PatchOptions Status"),
}


def tables(modules: Path, definitions: Path) -> dict[str, Any]:
    """Return the whole content of the data file."""
    kinds, messages = kubernetes(Sources(modules))
    made = Definitions(messages)
    for path in sorted(definitions.glob("*/bases/*.yaml"), reverse=True):  # jobs before what repeats their spec
        definition: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
        for version in definition["spec"]["versions"]:
            key, name = made.kind(definition, version)
            kinds[key] = name
    found = resources(definitions)
    return {"kinds": kinds, "resources": found, "messages": noted({**messages, **made.made})}


def kubernetes(sources: Sources) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the kinds of Kubernetes that are served, and every message that they reach."""
    kinds: dict[str, str] = {}
    messages: dict[str, Any] = {}
    waiting: list[tuple[str, str]] = []
    for path, (group, names) in _ROOTS.items():
        for kind in names.split():
            kinds[f"{group}/{path.rsplit('/', 1)[-1]}/{kind}"] = message_name(path, kind)
            waiting.append((path, kind))
    while waiting:
        path, kind = waiting.pop()
        name = message_name(path, kind)
        if name not in messages:
            messages[name], used = sources.message(path, kind)
            waiting += used
    return kinds, messages


def noted(messages: dict[str, Any]) -> dict[str, Any]:
    """Return the messages with our sentences about their main fields."""
    for place, sentence in NOTES.items():
        name, _, field = place.partition("#")
        entry = messages[name]
        if not field:
            entry["doc"] = sentence
            continue
        row = next(row for row in entry["fields"] if row[0] == field)
        row += [0, "", {}][len(row) - 2 :]
        row[4]["doc"] = sentence
    return messages


if __name__ == "__main__":
    DATA.write_text(text(tables(Path(sys.argv[1]), Path(sys.argv[2]))), "utf-8")
