"""What is left out of objects."""

from pumice.actors.real_clusters.mirror.changes import change_of, trimmed
from pumice.actors.real_clusters.mirror.mirror import Readability
from pumice.core.objects.metadata import Object
from tests.kit.jobs import vcjob
from tests.kit.nodes import node
from tests.kit.pods import pod

ENV = [{"name": "PASSWORD", "value": "hunter2"}, {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s"}}}]
NAMES = [{"name": "PASSWORD"}, {"name": "KEY"}]


def with_environment(spec: Object) -> Object:
    container = {**spec["containers"][0], "env": ENV, "envFrom": [{"secretRef": {"name": "all"}}]}
    return {**spec, "containers": [container], "initContainers": [container]}


def test_values_of_environments_stay_where_they_are() -> None:
    obj = pod("p")
    obj["spec"] = with_environment(obj["spec"])
    spec = trimmed("Pod", obj)["spec"]
    for container in (spec["containers"][0], spec["initContainers"][0]):
        assert container["env"] == NAMES
        assert "envFrom" not in container
    assert spec["containers"][0]["resources"] == obj["spec"]["containers"][0]["resources"]
    assert obj["spec"]["containers"][0]["env"] == ENV


def test_so_do_those_of_templates_in_jobs() -> None:
    obj = vcjob("j")
    template = obj["spec"]["tasks"][0]["template"]
    template["spec"] = with_environment(template["spec"])
    found = trimmed("Job", obj)["spec"]["tasks"][0]["template"]["spec"]
    assert "hunter2" not in str(found)
    assert found["containers"][0]["env"] == NAMES


def test_copies_of_all_that_are_left_out_too() -> None:
    obj = pod("p", annotations={"kubectl.kubernetes.io/last-applied-configuration": "hunter2", "mine": "yes"})
    obj["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    meta = trimmed("Pod", obj)["metadata"]
    assert meta["annotations"] == {"mine": "yes"}
    assert "managedFields" not in meta


def test_headers_of_probes_hooks_and_attributes_of_volumes_are_left_out() -> None:
    get: Object = {"path": "/", "port": 80}
    headers = [{"name": "Authorization", "value": "hunter2"}]
    obj = pod("p")
    (container,) = obj["spec"]["containers"]
    container |= {
        "livenessProbe": {"httpGet": {**get, "httpHeaders": headers}, "periodSeconds": 3},
        "readinessProbe": {"exec": {"command": ["true"]}},
        "lifecycle": {"preStop": {"exec": {"command": ["hunter2"]}}},
    }
    csi: Object = {"driver": "d", "volumeAttributes": {"key": "hunter2"}}
    obj["spec"]["volumes"] = [{"name": "v", "csi": csi}, {"name": "e", "emptyDir": {}}]
    spec = trimmed("Pod", obj)["spec"]
    assert "hunter2" not in str(spec)
    assert spec["containers"][0]["livenessProbe"] == {"httpGet": get, "periodSeconds": 3}
    assert spec["containers"][0]["readinessProbe"] == {"exec": {"command": ["true"]}}
    assert spec["volumes"] == [{"name": "v", "csi": {"driver": "d"}}, {"name": "e", "emptyDir": {}}]
    volume: Object = {"metadata": {"name": "pv"}, "spec": {"csi": {**csi, "volumeHandle": "h"}}}
    assert trimmed("PersistentVolume", volume)["spec"] == {"csi": {"driver": "d", "volumeHandle": "h"}}
    assert "hunter2" in str(volume)


def test_a_sample_of_metrics_gets_a_uid() -> None:
    sample = {"metadata": {"name": "n1"}, "usage": {"cpu": "1"}}
    change = change_of("NodeMetrics", sample)
    assert change.key == ("NodeMetrics", "", "n1")
    assert change.obj is not None
    assert change.obj["metadata"]["uid"] == "NodeMetrics/n1"


def test_what_the_view_cannot_read_is_told_apart() -> None:
    readability = Readability()
    assert readability.problem(change_of("Node", node("n1"))) == ""
    assert "abc" in readability.problem(change_of("Pod", pod("p", cpu="abc")))
    assert readability.problem(change_of("Pod", pod("p"))) == ""
    assert readability.problem(change_of("Pod", pod("p", cpu="abc"), gone=True)) == ""
