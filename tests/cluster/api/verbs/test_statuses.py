"""What a status may become."""

from __future__ import annotations

import pytest

from pumice.core.messages.replies import Refused
from tests.actors.cluster import Cluster
from tests.kit.pods import pod


@pytest.mark.parametrize("ended", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_does_not_run_again(ended: str) -> None:
    """Its agent may not have heard of it: then nobody would end it any more."""
    cluster = Cluster()
    cluster.create(pod("p", node="n"))
    cluster.status("Pod", "p", {"phase": ended})
    refused = cluster.status("Pod", "p", {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"})
    assert isinstance(refused, Refused)
    assert refused.code == 409
    assert cluster.get("Pod", "p")["status"]["phase"] == ended
    other = {"Succeeded": "Failed", "Failed": "Succeeded"}[ended]
    assert not isinstance(cluster.status("Pod", "p", {"phase": other}), Refused)
