"""Resources of the served kinds: names, scope, subresources and columns, for the schema's data file.

    python -m docs.making.resources DEFINITIONS

writes them into the data file; DEFINITIONS is the folder config/crd of Volcano's repository, whose definitions say all
of Volcano's kinds. Kubernetes says the names of its own in code (`ShortNames`, `Categories` in its registries) and in
its discovery documents: the table below.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from docs.making.data_file import DATA, text

Row = dict[str, Any]

KUBERNETES: Final = """
/v1 Pod pods po status all
/v1 Node nodes no cluster status keeps_status
/v1 Namespace namespaces ns cluster status
/v1 ConfigMap configmaps cm
/v1 Secret secrets
/v1 Service services svc status keeps_status all
/v1 ServiceAccount serviceaccounts sa
/v1 Endpoints endpoints ep singular=endpoints
/v1 Event events ev elsewhere=events.k8s.io/v1
/v1 LimitRange limitranges limits
/v1 PodTemplate podtemplates
/v1 ResourceQuota resourcequotas quota status keeps_status
/v1 ReplicationController replicationcontrollers rc status scale all makes=Pod keeps_pods
/v1 PersistentVolume persistentvolumes pv cluster status keeps_status
/v1 PersistentVolumeClaim persistentvolumeclaims pvc status keeps_status
apps/v1 ControllerRevision controllerrevisions
apps/v1 DaemonSet daemonsets ds status all makes=Pod keeps_pods
apps/v1 Deployment deployments deploy status scale all also=extensions/v1beta1 makes=ReplicaSet
apps/v1 ReplicaSet replicasets rs status scale all also=extensions/v1beta1 makes=Pod keeps_pods
apps/v1 StatefulSet statefulsets sts status scale all makes=Pod keeps_pods
autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers hpa status all also=autoscaling/v1 versions=v1
batch/v1 CronJob cronjobs cj status all key=CronJob.batch makes=Job.batch
batch/v1 Job jobs status all key=Job.batch makes=Pod
certificates.k8s.io/v1 CertificateSigningRequest certificatesigningrequests csr cluster status
coordination.k8s.io/v1 Lease leases
discovery.k8s.io/v1 EndpointSlice endpointslices
flowcontrol.apiserver.k8s.io/v1 FlowSchema flowschemas cluster status
flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration prioritylevelconfigurations cluster status
apiregistration.k8s.io/v1 APIService apiservices cluster status api-extensions
networking.k8s.io/v1 Ingress ingresses ing status
networking.k8s.io/v1 IngressClass ingressclasses cluster
networking.k8s.io/v1 NetworkPolicy networkpolicies netpol
node.k8s.io/v1 RuntimeClass runtimeclasses cluster
policy/v1 PodDisruptionBudget poddisruptionbudgets pdb status keeps_status also=policy/v1beta1
rbac.authorization.k8s.io/v1 ClusterRole clusterroles cluster
rbac.authorization.k8s.io/v1 ClusterRoleBinding clusterrolebindings cluster
rbac.authorization.k8s.io/v1 Role roles
rbac.authorization.k8s.io/v1 RoleBinding rolebindings
scheduling.k8s.io/v1 PriorityClass priorityclasses pc cluster also=scheduling.k8s.io/v1beta1,scheduling.k8s.io/v1alpha1
storage.k8s.io/v1 CSIDriver csidrivers cluster
storage.k8s.io/v1 CSINode csinodes cluster
storage.k8s.io/v1 CSIStorageCapacity csistoragecapacities
storage.k8s.io/v1 StorageClass storageclasses sc cluster
storage.k8s.io/v1 VolumeAttachment volumeattachments cluster status keeps_status
resource.k8s.io/v1 DeviceClass deviceclasses cluster
resource.k8s.io/v1 ResourceClaim resourceclaims status keeps_status
resource.k8s.io/v1 ResourceClaimTemplate resourceclaimtemplates
resource.k8s.io/v1 ResourceSlice resourceslices cluster
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration mutatingwebhookconfigurations cluster
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy validatingadmissionpolicies cluster status
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings cluster
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration validatingwebhookconfigurations cluster
apiextensions.k8s.io/v1 CustomResourceDefinition customresourcedefinitions crd crds cluster status api-extensions
metrics.k8s.io/v1beta1 NodeMetrics nodes cluster
"""
"""A line a kind: its version, kind, plural and short names, flags and categories (below), `name=value` for the rest."""
FLAGS: Final = ("status", "keeps_status", "scale", "keeps_pods")
CATEGORIES: Final = ("all", "api-extensions")
VOLCANO: Final = (
    "jobs.batch", "cronjobs.batch", "commands.bus", "colocationconfigurations.config", "jobflows.flow",
    "jobtemplates.flow", "podgroups.scheduling", "queues.scheduling", "hypernodes.topology", "nodeshards.shard",
    "numatopologies.nodeinfo",
)  # fmt: skip
"""In the order in which they are listed."""
_OLD: Final = [
    "scheduling.volcano.sh/v1alpha1",
    "scheduling.volcano.sh/v1alpha2",
    "scheduling.incubator.k8s.io/v1alpha1",
    "scheduling.sigs.dev/v1alpha2",
]
ALSO: Final = {"PodGroup": _OLD, "Queue": _OLD}
"""Older versions of Volcano's kinds, whose fields are the same."""
MAKES: Final = {"Job": "Pod", "CronJob": "Job", "JobFlow": "Job"}
"""Kinds that controllers make of Volcano's kinds."""


def resources(definitions: Path) -> list[Row]:
    """Return the rows of all served kinds."""
    found: dict[str, Row] = {}
    for path in definitions.glob("*/bases/*.yaml"):
        definition: Row = yaml.safe_load(path.read_text("utf-8"))
        found[definition["metadata"]["name"].removesuffix(".volcano.sh")] = volcanos(definition["spec"])
    return [*map(kubernetes, KUBERNETES.strip().splitlines()), *(found[name] for name in VOLCANO)]


def kubernetes(line: str) -> Row:
    """Return the row that a line of the table says."""
    (api_version, kind, plural, *words), row = line.split(), dict[str, Any]()
    group, _, version = api_version.partition("/")
    row |= {"key": kind, "kind": kind, "group": group, "version": version, "plural": plural}
    for word in words:
        name, given, value = word.partition("=")
        if given:
            one = {"key": "key", "singular": "singular_name", "makes": "makes"}.get(name)
            row |= {one: value} if one else {name: value.split(",")}
        elif word == "cluster":
            row["namespaced"] = False
        elif word in FLAGS:
            row[word] = True
        else:
            row.setdefault("categories" if word in CATEGORIES else "short_names", []).append(word)
    return row


def volcanos(spec: Row) -> Row:
    """Return the row that a definition of Volcano's says."""
    names, (version,) = spec["names"], spec["versions"]
    row: Row = {"key": names["kind"], "kind": names["kind"], "group": spec["group"], "version": version["name"]}
    row |= {"plural": names["plural"], "namespaced": spec["scope"] == "Namespaced"}
    row |= {"short_names": names.get("shortNames", []), "categories": names.get("categories", [])}
    row |= {part: part in (version.get("subresources") or {}) for part in ("status", "scale")}
    row |= {"columns": version.get("additionalPrinterColumns", []), "also": ALSO.get(names["kind"], [])}
    row |= {"makes": MAKES.get(names["kind"], "")}
    return {name: value for name, value in row.items() if value or name in ("namespaced", "group")}


if __name__ == "__main__":
    content = json.loads(DATA.read_text("utf-8"))
    DATA.write_text(text({**content, "resources": resources(Path(sys.argv[1]))}), "utf-8")
