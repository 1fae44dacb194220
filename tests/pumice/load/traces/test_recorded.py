"""A recorded journal is a trace: the same work comes when it came, and runs for as long as it ran."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml

import pumice as lab
from pumice.cluster.kubelets.pod_runs import DURATION
from pumice.core.messages.events import Mutation
from pumice.errors import InputError
from pumice.load.traces.recorded import Arrived
from pumice.questions.replay.remainder import ITSELF
from pumice.runtime.arrivals import ARRIVAL
from pumice.storage import codec
from tests.kit import source
from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.pumice.cli.terminal import pumice

OUTSIDE = {"submit", "pumice:admin", "somebody-else"}
"""Names under which people come, and what disturbs them."""


def noted(objects: list[dict[str, Any]], name: str) -> dict[str, str]:
    (obj,) = [obj for obj in objects if obj["metadata"]["name"] == name]
    return obj["metadata"].get("annotations") or {}


def lasts(objects: list[dict[str, Any]], name: str) -> str | None:
    (obj,) = [obj for obj in objects if obj["metadata"]["name"] == name]
    said: dict[str, str] = obj["spec"]["tasks"][0]["template"]["metadata"].get("annotations", {})
    return said.get(DURATION)


def day() -> lab.Cluster:
    """A day: two that end, one of which says nothing of how long, one that still runs, one that never starts."""
    cluster = lab.Cluster(lab.nodes(2, cpu=2), lab.queue("q", weight=3), default_duration="7s")
    cluster.submit(lab.gang("says", pods=2, duration="1m"), lab.gang("silent", pods=1, arrival="30s", queue="q"))
    cluster.submit(lab.gang("stays", pods=1, duration="10h", arrival="100s"))
    cluster.submit(lab.gang("huge", pods=1, cpu=3, arrival="2m"))
    return cluster


def test_work_comes_when_it_came_and_runs_as_long_as_it_ran(tmp_path: Path) -> None:
    first = day()
    here = first.run("5m")
    first.save(tmp_path / "day.db")
    read = lab.read(f"journal:{tmp_path / 'day.db'}")
    assert [noted(read, name).get(ARRIVAL) for name in ("node-0", "q", "says")] == [None, None, "0s"]
    assert [noted(read, name)[ARRIVAL] for name in ("silent", "stays")] == ["30s", "100s"]
    assert [lasts(read, name) for name in ("says", "silent", "stays", "huge")] == ["1m", "7s", "10h", None]
    assert not {"Pod", "PodGroup", "Event"} & {obj["kind"] for obj in read}
    there = lab.Cluster(read).run("5m")
    assert {row.job: (row.submitted, row.wait_s, row.run_s, row.queue) for row in there.jobs} == {
        row.job: (row.submitted, row.wait_s, row.run_s, row.queue) for row in here.jobs
    }


def test_the_whole_system_lives_through_it_under_another_configuration(tmp_path: Path) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "most"}, "spec": {"hard": {"pods": 9}}}
    plain = pod("plain", cpu="1")
    plain["metadata"]["annotations"] = {ARRIVAL: "20s"}
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([node("n0", cpu="4"), quota, plain]), "utf-8")
    virtual = ("--time", "virtual", "--until", "idle", "-o", "json")
    first = pumice("run", "-f", tmp_path / "all.yaml", "--db", tmp_path / "a.db", *virtual)
    assert first.code == 0, first.err
    (tmp_path / "other.conf").write_text('actions: "allocate"\ntiers: [{plugins: [{name: predicates}]}]\n', "utf-8")
    other = ("--config", tmp_path / "other.conf", "--db", tmp_path / "b.db")
    second = pumice("run", "-f", f"journal:{tmp_path / 'a.db'}", *other, *virtual)
    assert (second.code, "left out" in second.err) == (0, False), second.err
    (row,) = lab.measures_of(tmp_path / "b.db").jobs
    assert (row.job, row.submitted, row.run_s, row.state) == ("default/plain", 20.0, 5.0, "Completed")


def changed(kind: str, name: str, revision: int, *, what: str = "ADDED", **more: Any) -> Mutation:
    obj = {"kind": kind, "metadata": {"name": name, "uid": f"uid-{name}"}, **more}
    return Mutation(revision, what, kind, "", name, codec.pack(obj), user="submit")


def test_what_came_before_the_first_work_stands_as_it_was_then_and_later_changes_are_counted() -> None:
    arrived = Arrived()
    for second, change in enumerate(
        (
            changed("Queue", "q", 1, spec={"weight": 1}),
            changed("Queue", "q", 2, what="MODIFIED", spec={"weight": 5}),
            changed("Node", "gone", 3),
            changed("Node", "gone", 4, what="DELETED"),
            changed("Pod", "p", 5, status={"phase": "Pending"}, spec={}),
            changed("Node", "late", 6, status={"allocatable": {"cpu": "1"}}),
            changed("Queue", "q", 7, what="MODIFIED", spec={"weight": 9}),
            changed("Pod", "p", 8, what="DELETED"),
        )
    ):
        arrived.note(change, float(second), outside=True)
    queue, work, late = arrived.objects()
    assert (queue["spec"], "uid" in queue["metadata"]) == ({"weight": 5}, False)
    assert (work["metadata"]["annotations"], "status" in work) == ({ARRIVAL: "4s"}, False)
    assert (late["metadata"]["annotations"], "status" in late) == ({ARRIVAL: "5s"}, True)
    assert list(arrived.left.out.values()) == [2]


def test_what_still_runs_runs_for_ever_and_others_as_the_longest_of_theirs() -> None:
    arrived = Arrived()
    spec: dict[str, Any] = {"template": {"metadata": {}}}
    arrived.note(changed("Job", "j", 1, spec=spec), 0.0, outside=True)
    arrived.note(changed("Deployment", "d", 2, spec=spec), 0.0, outside=True)
    for name, owner, ends in (("a", "j", 10.0), ("b", "j", 25.0), ("c", "d", None)):
        for at, phase in ((5.0, "Running"), (ends, "Succeeded")):
            if at is not None:
                metadata = {"uid": f"uid-{name}", "ownerReferences": [{"uid": f"uid-{owner}"}]}
                blob = codec.pack({"kind": "Pod", "metadata": metadata, "status": {"phase": phase}})
                arrived.note(Mutation(int(at) + 3, "MODIFIED", "Pod", "", name, blob), at, outside=False)
    found = [obj["spec"]["template"]["metadata"]["annotations"][DURATION] for obj in arrived.objects()]
    assert found == ["20s", "0s"]


def test_every_part_of_the_system_is_known_as_one() -> None:
    users = {
        node.value.value
        for _, tree in source.modules("actors")
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "USER"
        if isinstance(node.value, ast.Constant)
    }
    assert users - OUTSIDE <= ITSELF
    assert not OUTSIDE & ITSELF


def test_a_journal_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        lab.read(f"journal:{tmp_path / 'none.db'}")
    with pytest.raises(InputError, match="takes no options"):
        lab.read(f"journal:{tmp_path / 'none.db'},times")
