"""Jobs of a workload, as findings, filters and names of a renamed policy see them."""

from __future__ import annotations

from pumice.core.objects.metadata import Object
from pumice.lab.builders import gang
from pumice.questions.gate.demands import demands

GROUP = "scheduling.k8s.io/group-name"


def pod(name: str, cpu: str, **annotations: str) -> Object:
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    return {"kind": "Pod", "metadata": {"name": name, "annotations": annotations}, "spec": {"containers": containers}}


def test_the_least_of_each_resource_is_by_that_resource() -> None:
    job = gang("j", 2, cpu=8, memory="1Gi")
    (small,) = gang("k", 2, cpu=1, memory="64Gi")["spec"]["tasks"]
    job["spec"]["tasks"].append({**small, "name": "large"})
    job["spec"]["minAvailable"] = 2
    (found,) = demands([job])
    assert (found.least("cpu"), found.least("memory")) == (2.0, 2.0 * 2**30)


def test_pods_of_a_group_are_one_job_with_its_queue() -> None:
    group = {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"queue": "q", "minMember": 2}}
    annotated = pod("lone", "1", **{"scheduling.volcano.sh/queue-name": "r"})
    found = demands([group, pod("a", "1", **{GROUP: "g"}), pod("b", "3", **{GROUP: "g"}), annotated])
    assert [(job.name, job.queue, len(job.roles), job.least("cpu")) for job in found] == [
        ("default/g", "q", 2, 4.0),
        ("default/lone", "r", 1, 1.0),
    ]


def test_a_deployment_is_a_job_of_single_pods() -> None:
    template: Object = {"metadata": {}, "spec": pod("x", "2")["spec"]}
    deployed: Object = {"kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 3, "template": template}}
    (found,) = demands([deployed, gang("odd", 1) | {"spec": {"tasks": 7, "minAvailable": "x"}}])
    assert (found.roles[0].pods, found.minimum, found.least("cpu")) == (3, 1, 2.0)
