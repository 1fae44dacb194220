"""Manifests have a clock of their own: who asks twice gets the same answer."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.queues import queue
from tests.pumice.cli.terminal import pumice


@pytest.mark.parametrize("command", [("decide",), ("explain", "podgroup", "g")])
def test_the_clock_is_the_inputs(command: tuple[str, ...], tmp_path: Path) -> None:
    """A job that asks for too much is admitted when it has waited for an hour; the input shows half an hour of it."""
    conf, file = tmp_path / "scheduler.conf", tmp_path / "objects.yaml"
    waits = "{name: sla, arguments: {sla-waiting-time: 1h}}"
    conf.write_text(f'actions: "enqueue"\ntiers: [{{plugins: [{waits}]}}, {{plugins: [{{name: overcommit}}]}}]\n')
    group = pod_group("g", min_member=1, min_resources={"cpu": "64"})
    group["metadata"]["creationTimestamp"] = "2027-01-01T00:00:00Z"
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2027-01-01T00:30:00Z"}
    there = node("n0")
    there["status"]["conditions"] = [ready]
    file.write_text(yaml.safe_dump_all([there, queue("default"), group]))
    question = (command[0], "-f", file, "--config", conf, "-o", "json", *command[1:])
    now, later = (str(pumice(*question, *more).json) for more in ((), ("--now", "2027-01-01T01:30:00Z")))
    assert "Inqueue" not in now
    assert "Inqueue" in later


def test_only_manifests_take_a_clock(tmp_path: Path) -> None:
    said = pumice("explain", "--db", tmp_path / "a.db", "job", "j", "--now", "2027-01-01T01:30:00Z")
    assert (said.code, "--now goes with -f" in said.err) == (2, True)
