"""What comes into a served cluster gets what a kube-apiserver adds."""

from typing import Any

import pytest

from pumice.core.messages.commands import Create
from pumice.core.messages.replies import Accepted
from pumice.core.objects.metadata import Object
from pumice.storage.codec import pack, unpack
from tests.actors.cluster import Cluster
from tests.kit.pods import pod

NOT_READY = "node.kubernetes.io/not-ready"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.served()


def storage_class(name: str, default: str = "true") -> Object:
    meta = {"name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": default}}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": meta, "provisioner": "x.io/disks"}


def claim(name: str, **spec: Any) -> Object:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": asked}


def test_a_pod_stays_five_minutes_on_a_node_that_fails(cluster: Cluster) -> None:
    spec = cluster.create(pod("a"))["spec"]
    assert {each["key"]: each["tolerationSeconds"] for each in spec["tolerations"]} == {
        NOT_READY: 300,
        "node.kubernetes.io/unreachable": 300,
    }
    assert spec["serviceAccountName"] == "default"
    own = pod("b")
    own["spec"]["tolerations"] = [{"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"}]
    keys = [each["key"] for each in cluster.create(own)["spec"]["tolerations"]]
    assert keys == [NOT_READY, "node.kubernetes.io/unreachable"]
    every = pod("c")
    every["spec"]["tolerations"] = [{"operator": "Exists"}]
    assert cluster.create(every)["spec"]["tolerations"] == [{"operator": "Exists"}]


def test_a_pod_says_what_an_api_server_says_of_it(cluster: Cluster) -> None:
    own = pod("a")
    container = own["spec"]["containers"][0]
    container |= {"image": "nginx", "livenessProbe": {"periodSeconds": 3}, "terminationMessagePolicy": "Mine"}
    own["spec"] |= {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.1.1.1"]}, "serviceAccountName": "me"}
    own["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "c"}}, {"name": "w", "emptyDir": {}}]
    spec = cluster.create(own)["spec"]
    told = {name: spec[name] for name in ("dnsPolicy", "enableServiceLinks", "securityContext", "serviceAccount")}
    assert told == {"dnsPolicy": "None", "enableServiceLinks": True, "securityContext": {}, "serviceAccount": "me"}
    assert spec["volumes"] == [{"name": "v", "configMap": {"name": "c", "defaultMode": 420}}, own["spec"]["volumes"][1]]
    made = spec["containers"][0]
    assert (made["terminationMessagePath"], made["terminationMessagePolicy"]) == ("/dev/termination-log", "Mine")
    probe = {"timeoutSeconds": 1, "periodSeconds": 3, "successThreshold": 1, "failureThreshold": 3}
    assert made["livenessProbe"] == probe


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("registry.local:5000/nginx", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("nginx@sha256:00", "IfNotPresent"),
    ],
)
def test_the_latest_image_is_always_pulled(cluster: Cluster, image: str, policy: str) -> None:
    own = pod("a")
    own["spec"]["containers"][0]["image"] = image
    assert cluster.create(own)["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_without_a_door_nothing_is_added() -> None:
    spec = Cluster().create(pod("a"))["spec"]
    assert not {"dnsPolicy", "enableServiceLinks", "securityContext"} & spec.keys()


def test_a_claim_gets_the_default_class(cluster: Cluster) -> None:
    assert "storageClassName" not in cluster.create(claim("before"))["spec"]
    cluster.create(storage_class("slow", "false"))
    cluster.create(storage_class("fast"))
    cluster.create({**storage_class("standard"), "provisioner": "pumice.dev/volumes"})
    assert cluster.create(claim("a"))["spec"]["storageClassName"] == "fast"
    assert cluster.create(claim("b", storageClassName=""))["spec"]["storageClassName"] == ""
    assert cluster.create(claim("c", storageClassName="slow"))["spec"]["storageClassName"] == "slow"


def test_what_a_run_begins_with_stays_as_it_is(cluster: Cluster) -> None:
    reply = cluster.ask(Create(pack(pod("a")), user="submit"))
    assert isinstance(reply, Accepted)
    assert "tolerations" not in unpack(reply.blob)["spec"]
