"""Advice for a job that has no pods before it is admitted, out of a journal: as if its controller had made them."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
import yaml

from pumice.core.objects.metadata import Object
from pumice.questions.history.rewind import owners_at
from tests.kit.nodes import node
from tests.pumice.cli.terminal import pumice

REMARK = "it has no pods before it is admitted: tried as if they were there"


def wide() -> Object:
    containers = [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]
    tasks = [{"name": "w", "replicas": 4, "template": {"spec": {"containers": containers}}}]
    spec = {"minAvailable": 4, "tasks": tasks}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "wide"}, "spec": spec}


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve cores are asked for, where there are eight."""
    folder = tmp_path_factory.mktemp("unmade")
    file, db = folder / "objects.yaml", folder / "a.db"
    file.write_text(yaml.safe_dump_all([node("n0", cpu="8"), wide()]))
    assert pumice("run", "-f", file, "--db", db, "--time", "virtual", "--until", "5s", "-o", "json").code == 0
    return db


@pytest.mark.parametrize("kind", ["job", "podgroup"])
def test_room_for_pods_that_are_not_there_yet(journal: Path, kind: str) -> None:
    group = pumice("explain", "--db", journal, "job", "wide", "--budget", "0", "-o", "json").json["job"]
    assert group["tasks"] == {}
    name = {"job": "default/wide", "podgroup": group["name"]}[kind]
    told = pumice("explain", "--db", journal, kind, name, "-o", "json").json
    assert told["unblock"][0] == "4 of 4 fit with: 4 cpu more on node n0"
    assert "2 of 4 fit with: minAvailable 2 instead of 4" in told["unblock"]
    assert told["tried"]["remark"] == REMARK


def test_owners_are_as_they_were_at_the_time(journal: Path) -> None:
    assert anyio.run(owners_at, journal, 1) == []
    found = anyio.run(owners_at, journal, 10**9)
    assert [(each["kind"], each["metadata"]["name"]) for each in found] == [("Job", "wide")]
