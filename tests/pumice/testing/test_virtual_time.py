"""A served cluster whose time is moved by the test."""

import time
from collections.abc import Iterator

import pytest

import pumice
from pumice.core.objects.metadata import parse_time
from pumice.errors import InputError
from pumice.runtime.bells import Bells, HeldAlarm
from pumice.testing import NotReachedError, ServedCluster, served_cluster

CRON = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: hourly}
spec:
  schedule: "0 * * * *"
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: main, image: work, command: [sleep, "60"]}]}
"""


@pytest.fixture(scope="module")
def shared() -> Iterator[ServedCluster]:
    with served_cluster(time="virtual") as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: ServedCluster) -> Iterator[ServedCluster]:
    yield shared
    shared.reset()


def phases(cluster: ServedCluster) -> list[str]:
    return sorted(pod["status"]["phase"] for pod in cluster.list("pods"))


def test_nothing_happens_before_time_is_moved(cluster: ServedCluster) -> None:
    before = cluster.now
    cluster.apply(pumice.gang("train", pods=2, duration="1h"))
    time.sleep(0.2)
    assert cluster.list("pods") == []
    assert cluster.now == before


def test_what_is_due_happens_at_its_time(cluster: ServedCluster) -> None:
    before = cluster.now
    cluster.apply(pumice.gang("train", pods=2, duration="1h"))
    cluster.advance(60)
    assert phases(cluster) == ["Running", "Running"]
    cluster.advance(3500)
    assert phases(cluster) == ["Running", "Running"]
    cluster.advance(60)
    assert phases(cluster) == ["Succeeded", "Succeeded"]
    assert cluster.now == pytest.approx(before + 3620, abs=0.001)
    (pod, _) = cluster.list("pods")
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert parse_time(ended["finishedAt"]) - parse_time(ended["startedAt"]) == 3600


def test_a_cron_job_runs_every_hour(cluster: ServedCluster) -> None:
    cluster.apply(CRON)
    cluster.advance(2 * 3600)
    assert len(cluster.list("jobs.batch")) == 2


def test_a_wait_moves_the_clock_to_what_is_due(cluster: ServedCluster) -> None:
    before, began = cluster.now, time.monotonic()
    cluster.apply(pumice.gang("train", pods=2, duration="1h"))
    cluster.wait_for("vcjob", "train", "jsonpath={.status.state.phase}=Completed", timeout_s=7200)
    assert 3600 <= cluster.now - before < 3601
    assert time.monotonic() - began < 60


def test_a_wait_in_vain_ends_on_both_clocks(cluster: ServedCluster) -> None:
    before, began = cluster.now, time.monotonic()
    with pytest.raises(NotReachedError, match=r"within 0\.5 s"):
        cluster.wait_for("pod", "nobody", timeout_s=0.5)
    assert cluster.now - before == pytest.approx(0.5, abs=0.001)
    assert time.monotonic() - began >= 0.5


def test_the_same_test_has_the_same_outcome() -> None:
    seen = set[str]()
    for _ in range(3):
        with served_cluster(time="virtual", nodes=2) as cluster:
            cluster.apply(pumice.gang("a", pods=9, duration="20s"), pumice.gang("b", pods=9, duration="20s"))
            cluster.advance(30)
            seen.add(str([(pod["metadata"]["uid"], pod["spec"].get("nodeName")) for pod in cluster.list("pods")]))
    assert len(seen) == 1


@pytest.mark.parametrize("seconds", [-1, -0.001])
def test_time_does_not_go_back(cluster: ServedCluster, seconds: float) -> None:
    with pytest.raises(InputError, match="time does not go back"):
        cluster.advance(seconds)


def test_real_time_is_not_advanced() -> None:
    with served_cluster(nodes=0) as cluster, pytest.raises(InputError, match='only a cluster with time="virtual"'):
        cluster.advance(1)


@pytest.mark.anyio
async def test_a_scope_ends_when_its_bell_rings() -> None:
    bells = Bells()
    alarm = HeldAlarm(bells)
    with alarm.scope_until(5.0) as scope:
        bells.go_to(4.9)
        assert not scope.cancel_called
        bells.go_to(5.0)
        await alarm.sleep_until(9.0)
    assert scope.cancelled_caught
    assert bells.next_due() == float("inf"), "a bell whose waiter has gone counts no more"
