# SPDX-License-Identifier: Apache-2.0
"""Schedulers of a cluster whose roles hold: with the rights that their installers give them, and not without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.kit import source
from tests.kit.jobs import job_task, vcjob
from tests.pumice.elsewhere.rig import JOBS, QUICK, placed, process, until

if TYPE_CHECKING:
    from pathlib import Path

    from pumice.testing import ServedCluster

DEPLOY: Final = source.ROOT / "examples" / "deploy.yaml"
ACCOUNT: Final = "system:serviceaccount:volcano-system:pumice-scheduler"
VOLCANO: Final = "system:serviceaccount:volcano-system:volcano-scheduler"
METRICS: Final = 'cannot watch resource "nodes" in API group "metrics.k8s.io"'
"""Metrics cannot be watched in any cluster: they are listed now and then, with or without the right."""
RULES: Final = """
apiextensions.k8s.io customresourcedefinitions create,get,list,watch,delete
batch.volcano.sh jobs get,list,watch,update,delete
batch.volcano.sh jobs/status update,patch
- events create,list,watch,update,patch
- pods get,list,watch,patch,delete
- pods/status update
- pods/binding create
- persistentvolumeclaims,persistentvolumes list,watch,update
- namespaces,services,replicationcontrollers list,watch,get
- resourcequotas list,watch
- nodes get,list,watch,update,patch
storage.k8s.io storageclasses,csinodes,csidrivers,csistoragecapacities,volumeattachments list,watch
policy poddisruptionbudgets list,watch
scheduling.k8s.io priorityclasses get,list,watch
scheduling.volcano.sh queues get,list,watch,create,delete,update
scheduling.volcano.sh queues/status update
scheduling.volcano.sh podgroups list,watch,update
nodeinfo.volcano.sh numatopologies get,list,watch,delete
topology.volcano.sh hypernodes,hypernodes/status get,list,watch
- configmaps get,list,watch,create,delete,update
apps daemonsets,replicasets,statefulsets list,watch,get
coordination.k8s.io leases get,create,update,watch
"""
"""The ClusterRole of Volcano's chart for its scheduler: group, resources, verbs."""
DOES: Final = (
    ("create", "", "pods/binding"),
    ("delete", "", "pods"),
    ("update", "", "pods/status"),
    ("update", "scheduling.volcano.sh", "podgroups"),
    ("update", "scheduling.volcano.sh", "queues/status"),
    ("create", "", "events"),
    ("update", "coordination.k8s.io", "leases"),
    ("watch", "topology.volcano.sh", "hypernodes"),
)
DOES_NOT: Final = (
    ("list", "", "secrets"),
    ("create", "", "pods"),
    ("patch", "scheduling.volcano.sh", "podgroups"),
    ("update", "batch.volcano.sh", "jobs/finalizers"),
    ("delete", "", "nodes"),
)


def volcanos_role() -> list[dict[str, Any]]:
    """Return the account, the role and its binding as Volcano's chart installs them."""
    named = {"name": "volcano-scheduler"}
    rules = [
        {"apiGroups": [group.strip("-")], "resources": resources.split(","), "verbs": verbs.split(",")}
        for group, resources, verbs in (line.split() for line in RULES.strip().splitlines())
    ]
    version = "rbac.authorization.k8s.io/v1"
    subject = {"kind": "ServiceAccount", "namespace": "volcano-system", **named}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", **named}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "volcano-system"}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**named, "namespace": "volcano-system"}},
        {"apiVersion": version, "kind": "ClusterRole", "metadata": named, "rules": rules},
        {
            "apiVersion": version,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "volcano-scheduler-role"},
            "roleRef": ref,
            "subjects": [subject],
        },
    ]


@pytest.mark.pumice_cluster(authorization="rbac", nodes=1)
def test_volcanos_scheduler_has_the_rights_of_its_chart(pumice_cluster: ServedCluster) -> None:
    pumice_cluster.apply(*volcanos_role())
    scheduler = pumice_cluster.user(VOLCANO).client
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    for expected, asked in ((True, DOES), (False, DOES_NOT)):
        for verb, group, resource in asked:
            plural, _, sub = resource.partition("/")
            about = {"verb": verb, "group": group, "resource": plural, "subresource": sub, "namespace": "default"}
            status = scheduler.post(path, json={"spec": {"resourceAttributes": about}}).json()["status"]
            assert status["allowed"] is expected, (verb, group, resource)
    assert scheduler.get("/apis/scheduling.volcano.sh/v1beta1/queues").status_code == 200
    assert scheduler.get("/api/v1/secrets").status_code == 403


@pytest.mark.slow
@pytest.mark.pumice_cluster(authorization="rbac", nodes=2, scheduler=False, default_scheduler=False)
def test_pumice_schedules_a_cluster_with_the_rights_of_its_example(
    pumice_cluster: ServedCluster, tmp_path: Path
) -> None:
    pumice_cluster.apply(DEPLOY)
    config = pumice_cluster.user(ACCOUNT).kubeconfig
    client = pumice_cluster.client
    with process("run", config, tmp_path / "here.db", *QUICK):
        assert client.post(JOBS, json=vcjob("mine", job_task(replicas=2, duration="0"))).status_code == 201
        until(lambda: len([name for name in placed(client) if name.startswith("mine")]) == 2)
    refused = [line for line in (tmp_path / "here.log").read_text("utf-8").splitlines() if "forbidden" in line]
    assert [line for line in refused if METRICS not in line] == []
    pumice_cluster.delete("clusterrolebinding", "pumice-scheduler")
    with process("run", config, tmp_path / "there.db", *QUICK):
        until(lambda: 'cannot list resource "pods"' in (tmp_path / "there.log").read_text("utf-8"))
