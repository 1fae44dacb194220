"""Tests with kr8s, on virtual time: an hour takes no time, and comes out the same every time."""

from typing import Any

import kr8s
import pytest

import pumice
from pumice.testing import ServedCluster

pytestmark = [
    pytest.mark.pumice_cluster(nodes=2, time="virtual"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # kr8s leaves its connections open
]


def running(api: Any) -> int:
    """Return the number of pods that run; the code under test."""
    return sum(pod.status.phase == "Running" for pod in api.get("pods", namespace="default"))


def test_a_gang_starts_when_there_is_room_for_all_of_it(pumice_cluster: ServedCluster) -> None:
    api: Any = kr8s.api(url=pumice_cluster.url, kubeconfig=str(pumice_cluster.kubeconfig))
    pumice_cluster.apply(pumice.gang("first", pods=12, duration="1h"), pumice.gang("second", pods=8, duration="1h"))
    pumice_cluster.advance(60)
    assert running(api) == 12
    pumice_cluster.advance(3600)
    assert running(api) == 8


def test_a_failed_wait_says_why(pumice_cluster: ServedCluster) -> None:
    pumice_cluster.apply(pumice.gang("huge", pods=40))
    with pytest.raises(AssertionError, match="overused cpu"):
        pumice_cluster.wait_for("vcjob", "huge", "jsonpath={.status.state.phase}=Running", timeout_s=1)
