"""Cordon and drain, and a Volcano job from its manifest to its end."""

from typing import Any

import pytest

from tests.kit.kubectl import Kubectl
from tests.kubectl.conftest import pod, text


@pytest.mark.slow
def test_cordon_and_taint(kubectl: Kubectl) -> None:
    kubectl("cordon", "node-1")
    assert "SchedulingDisabled" in kubectl("get", "node", "node-1")
    kubectl("uncordon", "node-1")
    assert kubectl("get", "node", "node-1", "-o", "jsonpath={.spec}") == "{}"
    kubectl("taint", "node", "node-1", "a=b:PreferNoSchedule")
    kubectl("taint", "node", "node-1", "a-")
    assert "b" not in kubectl("get", "node", "node-1", "-o", "jsonpath={.spec.taints}")


@pytest.mark.slow
def test_drain_respects_a_budget(kubectl: Kubectl, inside: Any, namespace: str) -> None:
    guarded = pod("guarded", app="guarded")
    guarded["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "node-2"}
    inside("create", "-f", "-", stdin=text(guarded))
    inside("wait", "--for=condition=Ready", "pod/guarded", "--timeout=30s")
    inside("create", "pdb", "b", "--selector=app=guarded", "--min-available=1")
    drain = ("drain", "node-2", "--force", "--pod-selector=app=guarded")
    told = kubectl.run(*drain, "--timeout=3s")
    assert told.returncode != 0
    assert "Cannot evict pod as it would violate the pod's disruption budget" in told.stderr + told.stdout
    inside("delete", "pdb", "b")
    assert "drained" in kubectl(*drain, "--timeout=30s")
    kubectl("uncordon", "node-2")
    assert inside("get", "pods", "-o", "name") == ""


def test_a_job_from_its_manifest_to_its_end(inside: Any) -> None:
    template = {"metadata": pod("x", lasts="500ms")["metadata"], "spec": pod("x")["spec"]}
    template["metadata"].pop("name")
    template["spec"]["restartPolicy"] = "Never"
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {
            "minAvailable": 3,
            "schedulerName": "volcano",
            "policies": [{"event": "TaskCompleted", "action": "CompleteJob"}],
            "tasks": [{"name": "worker", "replicas": 3, "template": template}],
        },
    }
    assert inside("apply", "-f", "-", stdin=text(job)).endswith("created")
    inside("wait", "--for=jsonpath={.status.state.phase}=Completed", "vcjob/train", "--timeout=60s")
    row = dict(zip(*(line.split() for line in inside("get", "vj").splitlines()), strict=False))
    assert (row["NAME"], row["STATUS"], row["MINAVAILABLE"]) == ("train", "Completed", "3")
    assert inside("get", "pods", "-l", "volcano.sh/job-name=train", "-o", "name").count("pod/") == 3
    inside("delete", "vcjob", "train")
    inside("wait", "--for=delete", "pod", "-l", "volcano.sh/job-name=train", "--timeout=30s")
    assert inside("get", "vcjob,pods", "-o", "name") == ""
