"""Faults in the cluster of a test: what is added strikes the code under test and not the test, and a reset ends it."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import anyio
import httpx
import pytest

from pumice.config.errors import ConfigError
from pumice.core.messages.events import FaultsBegan, FaultStruck
from pumice.core.objects.metadata import Object
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
        faults.cut_watch(name="x"), faults.delay_watch(name="x", behind="Pod"), faults.expire(name="x"), faults.stale(name="x"),
        faults.restart(name="x", times=1),
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
