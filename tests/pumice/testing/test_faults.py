"""Faults in the cluster of a test: what is added strikes the code under test and not the test, and a reset ends it."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import anyio
import httpx
import pytest

from pumice.config.errors import ConfigError
from pumice.core.messages.events import FaultsBegan, FaultStruck
from pumice.core.objects.metadata import Object, parse_time
from pumice.storage.journal import FAULT
from pumice.testing import ServedCluster, served_cluster
from pumice.testing.faults import Profile
from tests.actors.rig import journaled

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def served() -> Generator[ServedCluster]:
    with served_cluster(nodes=0, scheduler=False, controllers=False, kubelets=False) as cluster:
        yield cluster


@pytest.fixture
def cluster(served: ServedCluster) -> Generator[ServedCluster]:
    yield served
    served.reset()


@pytest.fixture
def controller(cluster: ServedCluster) -> Generator[httpx.Client]:
    """The code under test."""
    with httpx.Client(base_url=cluster.url, headers={"user-agent": "controller/1"}, trust_env=False) as client:
        yield client


def config_map(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def create(client: httpx.Client, name: str) -> int:
    """Create once, as a careless controller does: the code, 0 for no answer."""
    try:
        return client.post(MAPS, json=config_map(name)).status_code
    except httpx.RemoteProtocolError:
        return 0


def test_a_lost_answer_is_lost_once(cluster: ServedCluster, controller: httpx.Client) -> None:
    lost = cluster.faults.lose_answer(verb="create", kind="ConfigMap", times=1)
    assert [create(controller, name) for name in ("a", "a", "b")] == [0, 409, 201]
    assert (lost.struck, cluster.faults.struck) == (1, {lost.rule: 1})
    assert cluster.get("configmap", "a")


def test_the_test_itself_meets_no_fault(cluster: ServedCluster, controller: httpx.Client) -> None:
    cluster.faults.refuse(subresource="*")
    cluster.apply(config_map("a"))
    assert cluster.get("configmap", "a")
    assert create(controller, "b") == 503


def test_a_reset_ends_faults(cluster: ServedCluster, controller: httpx.Client) -> None:
    cluster.faults.refuse(code=500)
    assert create(controller, "a") == 500
    cluster.reset()
    assert create(controller, "a") == 201
    assert cluster.faults.struck == {}


def test_every_fault_has_its_method(cluster: ServedCluster, controller: httpx.Client) -> None:
    faults = cluster.faults
    added = [
        faults.refuse(name="x"), faults.arrive_late(name="x"), faults.answer_late(name="x"),
        faults.lose_answer(name="x"), faults.repeat(name="x"), faults.cut_answer(name="x", size=3),
        faults.cut_watch(name="x"), faults.delay_watch(name="x", behind="Pod"), faults.expire(name="x"),
        faults.stale(name="x"), faults.restart(name="x", times=1), faults.dead_kubelet(name="x"),
        faults.slow_kubelet(name="x"), faults.skewed_clock(name="x"), faults.late_webhook(name="x"),
        faults.lost_node(name="x"),
    ]  # fmt: skip
    assert len({each.rule for each in added}) == len(added)
    assert create(controller, "a") == 201
    faults.stop()
    assert create(controller, "x") == 201


def test_a_profile_may_be_a_name_a_file_a_text_or_parsed(
    cluster: ServedCluster, controller: httpx.Client, tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("rules: [{fault: refuse, code: 429}]")
    forms: list[Profile] = [file, file.read_text(), {"rules": [{"fault": "refuse", "code": 429}]}]
    for number, profile in enumerate(forms):
        cluster.faults.begin(profile)
        assert create(controller, f"m{number}") == 429
    cluster.faults.begin("rough+stale")
    with pytest.raises(ConfigError, match="did you mean 'rough'"):
        cluster.faults.begin("rouhg")
    with pytest.raises(ConfigError, match="did you mean 'verb'"):
        cluster.faults.refuse(verbs="create")  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="two rules are called 'a'"):
        [cluster.faults.refuse(rule="a") for _ in range(2)]


def test_options_have_faults_that_a_reset_brings_back() -> None:
    with served_cluster(nodes=0, kubelets=False, faults="rules: [{fault: refuse, times: 1}]") as cluster:
        with httpx.Client(base_url=cluster.url, trust_env=False) as client:
            assert [create(client, name) for name in "ab"] == [503, 201]
            cluster.faults.refuse(code=500)
            cluster.reset()
            assert [create(client, name) for name in "ab"] == [503, 201]
        told = anyio.run(journaled, cluster.host.journal, FAULT, FaultsBegan | FaultStruck)
        assert [type(each) for each in told] == [FaultsBegan, FaultStruck, FaultsBegan, FaultsBegan, FaultStruck]


POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, annotations: {pumice.dev/duration: "0"}}
spec:
  terminationGracePeriodSeconds: 5
  tolerations:
  - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 30}
  containers: [{name: main, image: web, resources: {requests: {cpu: "1"}}}]
"""


def test_a_dead_kubelet_loses_its_pods_and_comes_back() -> None:
    with served_cluster(nodes=1, time="virtual") as cluster:
        cluster.apply(POD)
        node = cluster.wait_for("pod", "web", "condition=Ready")["spec"]["nodeName"]
        dead = cluster.faults.dead_kubelet(name=node, until_s=300)
        cluster.wait_for("node", node, "condition=Ready=Unknown", timeout_s=60)
        taints = cluster.wait_for("node", node, "jsonpath={.spec.taints}")["spec"]["taints"]
        assert {each["effect"] for each in taints} == {"NoSchedule", "NoExecute"}
        gone = cluster.wait_for("pod", "web", "jsonpath={.metadata.deletionTimestamp}", timeout_s=60)
        assert gone["status"]["phase"] == "Running"
        cluster.advance(100)
        assert cluster.get("pod", "web")["status"]["phase"] == "Running"  # nobody says that it has stopped
        cluster.wait_for("pod", "web", "delete", timeout_s=300)
        cluster.wait_for("node", node, "condition=Ready", timeout_s=60)
        assert not cluster.wait_for("node", node, lambda found: not found["spec"].get("taints"))["spec"].get("taints")
        assert dead.struck == 1


def test_slow_kubelets_clocks_and_lost_nodes_are_seen() -> None:
    with served_cluster(nodes=3, time="virtual") as cluster:
        cluster.faults.slow_kubelet(delay_s=20, until_s=100)
        cluster.faults.skewed_clock(ahead_s=1000)
        began = cluster.now
        cluster.apply(POD)
        found = cluster.wait_for("pod", "web", "jsonpath={.status.phase}=Running", timeout_s=60)
        assert 20 <= cluster.now - began < 30
        assert parse_time(found["status"]["startTime"]) > began + 900
        node = found["spec"]["nodeName"]
        cluster.faults.lost_node(name=node)
        cluster.wait_for("node", node, "delete", timeout_s=60)
        cluster.wait_for("pod", "web", "delete", timeout_s=120)
