"""explain, queue, decide and whatif give one reason, and the same numbers, for one cause."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.core.objects.metadata import Object
from pumice.questions.adviser.reasons import ALIASES, WaitCode
from tests.kit.jobs import gang
from tests.kit.nodes import node, taint
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.queues import queue
from tests.pumice.cli.terminal import pumice

OTHER = "default-scheduler"
PREEMPTING = """\
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""


def full(*, taints: list[Object] | None = None) -> list[Object]:
    """A node that a pod fills, and another one."""
    held = pod("r-0", group="r", node="n0", cpu="4")
    return [node("n0", cpu="4"), node("n1", cpu="4", taints=taints or []), pod_group("r", phase="Running"), held]


CAUSES: dict[str, tuple[list[Object], str, str]] = {
    "the queue does not exist": (
        [node("n0"), *gang("g", pods=1, queue="nosuch", phase="Inqueue")],
        "QueueMissing",
        "its queue 'nosuch' does not exist",
    ),
    "the queue is closed": (
        [node("n0"), queue("q1", state="Closed"), *gang("g", pods=1, queue="q1")],
        "QueueNotOpen",
        "its queue 'q1' is Closed",
    ),
    "no node is so large": (
        [node("n0", cpu="4"), *gang("g", pods=1, cpu="9", phase="Inqueue")],
        "LargerThanAnyNode",
        "no node is that large: a pod asks 9 cpu, the largest node that would do has 4",
    ),
    "no such scheduler": (
        [node("n0"), pod_group("g"), pod("g-0", group="g", scheduler="other")],
        "NoScheduler",
        "no scheduler named 'other' runs here",
    ),
    "no such PodGroup": (
        [node("n0"), pod_group("g", namespace="away"), pod("g-0", group="g")],
        "PodGroupNotFound",
        "PodGroup default/g is not among the objects; one of that name is in namespace away",
    ),
    "pods are missing": (
        [node("n0"), *gang("g", pods=1, min_member=2, phase="Inqueue")],
        "PodsMissing",
        "Not enough valid tasks",
    ),
    "a toleration is missing": (
        [*full(taints=[taint("gpu", "only")]), *gang("g", pods=1, cpu="4", phase="Inqueue")],
        "NotTolerated",
        "gpu=only:NoSchedule (1 node)",
    ),
    "the cluster is full": (
        [node("n0", cpu="4"), *full()[2:], *gang("g", pods=1, cpu="1", phase="Inqueue")],
        "InUse",
        "",
    ),
    "a pod of Kubernetes' own scheduler is too large": (
        [node("n0", cpu="4"), pod("g-0", scheduler=OTHER, cpu="20")],
        "LargerThanAnyNode",
        "no node is that large",
    ),
}


def told(folder: Path, objects: list[Object], *more: object) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """What explain, queue and decide say of g-0."""
    file = folder / "all.yaml"
    file.write_text(yaml.safe_dump_all([queue("default"), *objects]), "utf-8")
    at = ("-f", file, "-o", "json", *more)
    waiting = pumice("queue", *at).json["waiting"]
    of_job = next(each for each in waiting if each["job"] in ("default/g", "default/g-0"))
    return (
        pumice("explain", "pod", "g-0", "--budget", 0, *at).json,
        of_job,
        pumice("decide", *at).json["pending"]["default/g-0"],
    )


@pytest.mark.parametrize("cause", CAUSES)
def test_cause_has_one_reason_in_all_commands(tmp_path: Path, cause: str) -> None:
    objects, reason, words = CAUSES[cause]
    explained, queued, decided = told(tmp_path, objects)
    assert [each["reason"] for each in (explained, queued, decided)] == [reason] * 3
    assert len({each["class"] for each in (explained, queued, decided)}) == 1
    for sentence in (explained["message"], queued["because"], decided["message"]):
        assert words in sentence
        assert "within what the queue may have" not in sentence


def test_word_that_a_command_had_before_is_an_alias() -> None:
    assert WaitCode("NoQueue") is WaitCode("QueueNotFound") is WaitCode.QUEUE_MISSING
    assert not set(ALIASES) & set(WaitCode)


def test_limit_that_is_the_cluster_itself_names_resource_and_numbers(tmp_path: Path) -> None:
    objects = [node("n0", gpus=4), *(each for n in "abg" for each in gang(n, pods=1, gpus=2, phase="Inqueue"))]
    explained, _, _ = told(tmp_path, objects)
    numbers = "asks 2 nvidia.com/gpu, has 4 of 4, 0 left"
    assert f"queue default has no room for it: {numbers}; what it may have is the whole cluster" in explained["message"]


def test_full_node_does_not_fit_when_only_preempt_looked(tmp_path: Path) -> None:
    (tmp_path / "c.conf").write_text(PREEMPTING, "utf-8")
    explained, _, _ = told(tmp_path, CAUSES["the cluster is full"][0], "--config", tmp_path / "c.conf")
    assert explained["nodes"] == {"Insufficient cpu": 1}


def test_both_schedulers_place_their_pods_on_what_the_other_left(tmp_path: Path) -> None:
    objects = [node("n0", cpu="4"), *gang("g", pods=1, cpu="3", phase="Inqueue"), pod("a", scheduler=OTHER, cpu="1")]
    objects += [pod("b", scheduler=OTHER, cpu="1")]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([queue("default"), *objects]), "utf-8")
    said = pumice("decide", "-f", tmp_path / "all.yaml", "-o", "json", "--cycles", 2)
    assert set(said.json["cycles"][0]["binds"]) == {"default/a", "default/g-0"}
    assert said.json["cycles"][1]["binds"] == {}
    assert set(said.json["pending"]) == {"default/b"}
    placed = pumice("explain", "pod", "a", "-f", tmp_path / "all.yaml", "-o", "json").json
    assert (placed["reason"], placed["class"]) == ("Placed", "")
    assert "default/a" in pumice("decide", "-f", tmp_path / "all.yaml", "-o", "table").out


def test_generated_names_are_free_ones_and_stop_nobody(tmp_path: Path) -> None:
    made = {"metadata": {"generateName": "more-"}}
    generated = [{**pod("x", scheduler="volcano", cpu="1"), **made} for _ in range(2)]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([node("n0"), pod("more-0", scheduler="volcano"), *generated]))
    for words in (("decide",), ("queue",), ("explain", "pod", "more-2")):
        assert pumice(*words, "-f", tmp_path / "all.yaml", "-o", "json").code == 0
    said = pumice("decide", "-f", tmp_path / "all.yaml", "-o", "json").json
    assert set(said["cycles"][0]["binds"]) == {"default/more-0", "default/more-1", "default/more-2"}
