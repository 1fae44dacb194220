"""Where nobody reads why tasks wait, what plainly cannot start is not tried, and nothing else is decided."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest

from pumice.core.actions import allocate
from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import run_cycle
from pumice.core.messages.decisions import CycleResult
from pumice.core.session.carry import Carry, CycleClock, SessionOptions
from pumice.load.openb import OpenbRow
from pumice.load.openb_cards import card_node, card_pod
from pumice.questions.oneshot.cycles import fill
from tests.core.plugins.world import configuration
from tests.kit.jobs import gang
from tests.kit.nodes import nodes
from tests.kit.pod_groups import pod_group
from tests.kit.queues import queue

CONFIG = parse_scheduler_config(
    """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
""",
    source="test",
)

NODE = {"cpu_milli": "8000", "memory_mib": "8192", "gpu": "1"}
SHARE = {"cpu_milli": "1000", "memory_mib": "1024", "num_gpu": "1", "gpu_milli": "300"}


def decided(objects: list[dict[str, Any]], *, wordless: bool) -> CycleResult:
    snapshot = fill(objects).snapshot()
    return run_cycle(snapshot, CONFIG, CycleClock(1, 1.7e9), Carry(), SessionOptions(wordless=wordless))


def tried(objects: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The jobs for whose tasks nodes were looked for."""
    found: list[str] = []
    real: Any = vars(allocate)["_allocate_job"]

    def watched(session: Any, job: Any, *more: Any, **others: Any) -> Any:
        found.append(job.name)
        return real(session, job, *more, **others)

    monkeypatch.setattr(allocate, "_allocate_job", watched)
    decided(objects, wordless=True)
    return found


def test_a_gang_without_room_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = [*nodes(2, cpu="4"), queue("default"), *gang("large", pods=3, cpu="3"), *gang("small", pods=2, cpu="1")]
    assert tried(objects, monkeypatch) == ["small"]


def test_all_that_find_room_count_not_only_those_like_the_first() -> None:
    """Two like the first would find room, each on a node of its own, and three are needed."""
    group, first, *others = gang("mixed", pods=4, min_member=3, cpu="1")
    first["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "4"
    objects = [*nodes(2, cpu="4"), queue("default"), group, first, *others]
    said, unsaid = (decided(objects, wordless=wordless) for wordless in (False, True))
    assert len(unsaid.binds) == 4
    assert unsaid.binds == said.binds


def test_of_gangs_alike_that_come_to_nothing_one_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    limited = queue("default", capability={"cpu": "3"})
    twins = [each for name in ("a", "b", "c") for each in gang(name, pods=4, cpu="1")]
    assert tried([*nodes(4, cpu="4"), limited, *twins], monkeypatch) == ["a"]


def test_a_gang_of_pods_that_are_not_all_alike_is_like_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """By their labels, or because room was made for one of them."""
    gangs = {name: gang(name, pods=4, cpu="1") for name in ("a", "b", "c", "d")}
    gangs["c"][4]["metadata"]["labels"] = {"last": "yes"}
    gangs["d"][4]["status"]["nominatedNodeName"] = "n0"
    objects = [
        *nodes(4, cpu="4"),
        queue("default", capability={"cpu": "3"}),
        *[x for each in gangs.values() for x in each],
    ]
    assert tried(objects, monkeypatch) == ["a", "c", "d"]


def test_gangs_that_a_plugin_tells_apart_are_not_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ask for as much; one, by an annotation, for cards that nobody has."""
    sharing = {"name": "deviceshare", "arguments": {"deviceshare.VGPUEnable": True}}
    config = configuration(["gang"], ["predicates", sharing])
    monkeypatch.setattr(sys.modules[__name__], "CONFIG", config)
    rows = {name: OpenbRow({**SHARE, "gpu_spec": name}, Path("pods"), 2) for name in ("P100", "T4")}
    pods = [card_pod(rows[name], name.lower(), 0) for name in rows]
    for each in pods:
        each["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = each["metadata"]["name"]
    card = card_node(OpenbRow({**NODE, "model": "T4"}, Path("nodes"), 2), "n")
    groups = [pod_group(each["metadata"]["name"], phase="Inqueue") for each in pods]
    assert [bind.name for bind in decided([card, queue("default"), *groups, *pods], wordless=True).binds] == ["t4"]


@pytest.mark.parametrize("seed", range(25))
def test_the_same_is_decided(seed: int) -> None:
    chance = random.Random(seed)
    objects: list[dict[str, Any]] = [*nodes(chance.randint(1, 5), cpu="4"), queue("q1", weight=2), queue("default")]
    for place in range(chance.randint(1, 12)):
        size = chance.randint(1, 5)
        where = chance.choice(("q1", "default"))
        low, cpu = chance.randint(1, size), str(chance.randint(1, 4))
        objects += gang(f"g{place}", pods=size, min_member=low, cpu=cpu, queue=where)
    said, unsaid = (decided(objects, wordless=wordless) for wordless in (False, True))
    assert (unsaid.binds, unsaid.evicts, unsaid.carry) == (said.binds, said.evicts, said.carry)
    assert [(one.name, one.phase) for one in unsaid.pod_groups] == [(one.name, one.phase) for one in said.pod_groups]
