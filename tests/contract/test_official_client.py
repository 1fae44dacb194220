"""The official Python client does its work: typed objects, watches, patches, evictions, its leader election aside."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

import httpx
import pytest

from tests.kit.serving import Served

client: Final[Any] = import_module("kubernetes.client")  # its types say of every field that it may be missing
config: Final[Any] = import_module("kubernetes.config")
watch: Final[Any] = import_module("kubernetes.watch")
ApiException: Final[Any] = client.ApiException

pytestmark = pytest.mark.filterwarnings("default")  # the client's own


@pytest.fixture
def official(passive: Served) -> Iterator[Any]:
    with config.new_client_from_config(str(passive.kubeconfig())) as api:
        yield api
        api.rest_client.pool_manager.clear()


def pod(name: str) -> Any:
    spec = client.V1PodSpec(scheduler_name="nobody", containers=[client.V1Container(name="c", image="i")])
    return client.V1Pod(metadata=client.V1ObjectMeta(name=name, labels={"app": "a"}), spec=spec)


def test_typed_objects_come_back_as_they_went(official: Any, namespace: str) -> None:
    core = client.CoreV1Api(official)
    made = core.create_namespaced_pod(namespace, pod("p"))
    assert (made.metadata.uid, made.status.phase, made.spec.scheduler_name) == (
        core.read_namespaced_pod("p", namespace).metadata.uid, "Pending", "nobody",
    )  # fmt: skip
    assert [one.metadata.name for one in core.list_namespaced_pod(namespace, label_selector="app in (a)").items] == [
        "p"
    ]
    core.delete_namespaced_pod("p", namespace)
    with pytest.raises(ApiException) as gone:
        core.read_namespaced_pod("p", namespace)
    assert gone.value.status == 404


def test_a_stale_write_is_a_conflict(official: Any, namespace: str) -> None:
    core = client.CoreV1Api(official)
    first = core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="c")))
    first.data = {"a": "1"}
    core.replace_namespaced_config_map("c", namespace, first)
    with pytest.raises(ApiException) as refused:
        core.replace_namespaced_config_map("c", namespace, first)
    assert refused.value.status == 409


def test_a_watch_ends_in_time_and_goes_on(official: Any, namespace: str) -> None:
    core = client.CoreV1Api(official)
    revision = core.list_namespaced_pod(namespace).metadata.resource_version
    core.create_namespaced_pod(namespace, pod("w"))
    stream = watch.Watch()
    events = [
        (event["type"], event["object"].metadata.name)
        for event in stream.stream(
            core.list_namespaced_pod, namespace, resource_version=revision, timeout_seconds=1, _request_timeout=10
        )
    ]
    assert events == [("ADDED", "w")]


def test_custom_objects_are_served(official: Any) -> None:
    custom = client.CustomObjectsApi(official)
    group = ("scheduling.volcano.sh", "v1beta1", "queues")
    body = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "typed"},
        "spec": {"weight": 2},
    }
    custom.create_cluster_custom_object(*group, body)
    patched = custom.patch_cluster_custom_object(*group, "typed", {"spec": {"weight": 4}})
    assert patched["spec"]["weight"] == 4
    assert "typed" in [one["metadata"]["name"] for one in custom.list_cluster_custom_object(*group)["items"]]
    custom.delete_cluster_custom_object(*group, "typed")


def test_a_list_is_read_in_pages(official: Any, namespace: str, http: httpx.Client) -> None:
    core = client.CoreV1Api(official)
    for number in range(5):
        http.post(f"/api/v1/namespaces/{namespace}/configmaps", json={"metadata": {"name": f"c{number}"}})
    names: list[str] = []
    token = None
    while True:
        page = core.list_namespaced_config_map(namespace, limit=2, _continue=token)
        names += [one.metadata.name for one in page.items]
        assert len(page.items) <= 2
        token = page.metadata._continue
        if not token:
            break
    assert names == [*(f"c{number}" for number in range(5)), "kube-root-ca.crt"]


def test_an_eviction_and_a_scale_are_subresources(official: Any, namespace: str) -> None:
    core, apps = client.CoreV1Api(official), client.AppsV1Api(official)
    core.create_namespaced_pod(namespace, pod("e"))
    core.create_namespaced_pod_eviction("e", namespace, client.V1Eviction(metadata=client.V1ObjectMeta(name="e")))
    selector = client.V1LabelSelector(match_labels={"app": "a"})
    template = client.V1PodTemplateSpec(metadata=client.V1ObjectMeta(labels={"app": "a"}), spec=pod("x").spec)
    spec = client.V1DeploymentSpec(replicas=1, selector=selector, template=template)
    apps.create_namespaced_deployment(namespace, client.V1Deployment(metadata=client.V1ObjectMeta(name="d"), spec=spec))
    scaled = apps.patch_namespaced_deployment_scale("d", namespace, {"spec": {"replicas": 0}})
    assert scaled.spec.replicas == 0
    assert apps.read_namespaced_deployment("d", namespace).spec.replicas == 0


def test_the_server_says_what_it_is(official: Any) -> None:
    assert client.VersionApi(official).get_code().git_version.startswith("v1.35.3")
    groups = {group.name for group in client.ApisApi(official).get_api_versions().groups}
    assert {"apps", "batch.volcano.sh", "scheduling.volcano.sh"} <= groups
