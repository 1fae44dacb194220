"""A cluster for tests: what it serves, what is applied to it, what is waited for."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread
import httpx
import pytest
import yaml

import pumice
from pumice.config.errors import ConfigError
from pumice.errors import InputError
from pumice.testing import NotReachedError, RefusedError, ServedCluster, served_cluster
from pumice.testing.options import read_manifests

CRD: Final = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Lamp, plural: lamps, singular: lamp}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object,
       properties: {watts: {type: integer, maximum: 100}}}}}}}
"""
LAMP: Final = {"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": {"name": "desk"}, "spec": {"watts": 5}}
POD: Final = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: main, image: nginx}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: red}
"""


@pytest.fixture(scope="module")
def shared() -> Iterator[ServedCluster]:
    with served_cluster(crds=CRD, manifests=POD.partition("---")[2]) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: ServedCluster) -> Iterator[ServedCluster]:
    yield shared
    shared.reset()


def test_a_client_finds_it_by_its_kubeconfig(cluster: ServedCluster) -> None:
    told = yaml.safe_load(cluster.kubeconfig.read_text("utf-8"))
    assert told["clusters"][0]["cluster"]["server"] == cluster.url
    assert httpx.get(f"{cluster.url}/version", trust_env=False).json()["gitVersion"].startswith("v1.")


def test_its_objects_are_there_from_the_beginning(cluster: ServedCluster) -> None:
    assert [node["metadata"]["name"] for node in cluster.list("nodes")] == ["node-0", "node-1", "node-2"]
    assert cluster.get("cm", "settings")["data"] == {"colour": "red"}
    (made,) = cluster.apply(LAMP)
    assert made["spec"] == {"watts": 5}
    assert [each["metadata"]["name"] for each in cluster.list("lamps.example.com")] == ["desk"]


def test_what_is_applied_again_is_changed(cluster: ServedCluster) -> None:
    cluster.apply(POD)
    cluster.apply({**LAMP, "metadata": {"name": "desk", "labels": {"a": "1"}}})
    cluster.apply(LAMP)
    assert "labels" not in cluster.get("lamp", "desk")["metadata"], "a field that is applied no longer goes"
    assert [pod["metadata"]["name"] for pod in cluster.list("pods", selector="app=web")] == ["web"]


def test_a_refusal_has_the_words_of_the_server(cluster: ServedCluster) -> None:
    with pytest.raises(RefusedError, match=r"spec\.watts.*less than or equal to 100") as refused:
        cluster.apply({**LAMP, "spec": {"watts": 101}})
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    with pytest.raises(RefusedError, match="not found"):
        cluster.get("pod", "nobody")


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        ({"kind": "Pod"}, "an object with a name, of a kind that is served here"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {}}, "without a name"),
        ("a: [1\n", "malformed YAML"),
        ("- 1\n", "expected Kubernetes objects"),
        (Path("nowhere"), "nowhere: does not exist"),
    ],
)
def test_input_that_is_no_object_is_named(cluster: ServedCluster, manifest: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        cluster.apply(manifest)


def test_texts_are_read_as_kubectl_reads_them() -> None:
    """A moment stays a text, a PodList gives pods, and JSON may come one document after another."""
    moment = "apiVersion: example.com/v1\nkind: Lamp\nmetadata: {name: a, annotations: {since: 2026-01-31}}\n"
    assert read_manifests(moment)[0]["metadata"]["annotations"] == {"since": "2026-01-31"}
    listed = '{"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "p"}}]}\n{"kind": "Other"}'
    assert [obj["kind"] for obj in read_manifests(listed)] == ["Pod", "Other"]


def test_a_kind_that_is_not_served_has_near_ones(cluster: ServedCluster) -> None:
    with pytest.raises(InputError, match="no such kind here: 'podz'; near: pod"):
        cluster.list("podz")


def is_running(pod: dict[str, Any]) -> bool:
    return bool(pod["status"]["phase"] == "Running")


@pytest.mark.parametrize(
    "for_",
    [
        "create",
        "condition=Ready",
        "condition=ready=true",
        "jsonpath={.status.phase}=Running",
        "jsonpath={.status.podIP}",
        is_running,
    ],
)
def test_a_wait_ends_when_the_condition_holds(cluster: ServedCluster, for_: Any) -> None:
    cluster.apply(POD)
    assert cluster.wait_for("pod", "web", for_)["metadata"]["name"] == "web"
    cluster.delete("pod", "web", grace_s=0)
    assert cluster.wait_for("pod", "web", "delete") == {}


@pytest.mark.parametrize("for_", ["ready", "condition", "jsonpath=.status", "create=1", ""])
def test_a_condition_that_is_none_is_refused(cluster: ServedCluster, for_: str) -> None:
    with pytest.raises(InputError, match="expected create, delete, condition=TYPE"):
        cluster.wait_for("pod", "web", for_)


def test_a_wait_in_vain_says_what_holds_it_up(cluster: ServedCluster) -> None:
    with pytest.raises(NotReachedError, match=r"nobody: create did not come within 0\.05 s; there is no such object"):
        cluster.wait_for("pod", "nobody", timeout_s=0.05)
    cluster.apply(pumice.gang("huge", pods=30))
    with pytest.raises(NotReachedError, match=r"its status is .*PodGroup default/huge.*overused cpu"):
        cluster.wait_for("vcjob", "huge", "jsonpath={.status.state.phase}=Running", timeout_s=0.5)


def test_a_configuration_and_nodes_of_ones_own_count() -> None:
    config = "actions: enqueue, allocate\ntiers: [{plugins: [{name: gang}, {name: binpack}, {name: predicates}]}]\n"
    with served_cluster(nodes=pumice.nodes(4, cpu=2, name="big"), config=config, time="virtual") as cluster:
        cluster.apply(pumice.gang("pack", pods=2, duration="0"))
        cluster.advance(1)
        assert len({pod["spec"]["nodeName"] for pod in cluster.list("pods")}) == 1, "bin packing fills a node"
        assert len(cluster.list("nodes")) == 4


def test_an_unknown_key_is_refused_unless_it_is_lenient() -> None:
    with pytest.raises(ConfigError, match="tierz"), served_cluster(config="actions: allocate\ntierz: []\n"):
        pass
    with served_cluster(config="actions: allocate\ntierz: []\n", lenient=True) as cluster:
        assert cluster.list("pods") == []


def test_a_part_may_be_left_to_the_one_under_test() -> None:
    with served_cluster(scheduler=False, default_scheduler=False, time="virtual") as cluster:
        cluster.apply(POD)
        cluster.advance(60)
        assert "nodeName" not in cluster.get("pod", "web")["spec"]


def test_a_token_is_asked_for() -> None:
    with served_cluster(token="secret", nodes=0) as cluster:
        assert httpx.get(f"{cluster.url}/api/v1/nodes", trust_env=False).status_code == 401
        assert cluster.list("nodes") == []


@pytest.mark.parametrize("options", [{"time": "slow"}, {"default_duration": "soon"}, {"manifests": LAMP}])
def test_options_that_are_not_valid_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError), served_cluster(**options):
        pass


@pytest.mark.anyio
async def test_a_controller_may_run_in_the_event_loop_of_the_test(cluster: ServedCluster) -> None:
    """On asyncio and on trio: the cluster has a loop of its own, and a wait in a thread lets the test's go on."""

    async def label_pods() -> None:
        async with httpx.AsyncClient(base_url=cluster.url, trust_env=False, timeout=10.0) as client:
            while not (found := (await client.get("/api/v1/pods")).json()["items"]):  # noqa: ASYNC110
                await anyio.sleep(0.01)
            body = {"metadata": {"labels": {"seen": "yes"}}}
            headers = {"content-type": "application/merge-patch+json"}
            await client.patch(
                f"/api/v1/namespaces/default/pods/{found[0]['metadata']['name']}", json=body, headers=headers
            )

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(label_pods)
        await anyio.to_thread.run_sync(cluster.apply, POD)
        wait = partial(cluster.wait_for, "pod", "web", "jsonpath={.metadata.labels.seen}=yes")
        await anyio.to_thread.run_sync(wait)


def test_questions_about_it_are_answered(cluster: ServedCluster) -> None:
    """From a journal that is in memory: each question sees what has happened by then."""
    standings = "/apis/pumice.dev/v1/standings"
    cluster.wait_for("queue", "default")
    before = cluster.client.get(standings)
    assert before.status_code == 200, before.text
    cluster.apply(pumice.gang("giant", pods=2, cpu=100))
    cluster.wait_for("vcjob", "giant", lambda _: bool(cluster.list("podgroups")))
    cluster.host.settle()
    assert "default/giant" not in before.text
    assert "default/giant" in cluster.client.get(standings).text
