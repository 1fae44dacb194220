"""What would help: every sentence was tried, the smallest change is named, and half a help is called so."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.configuration import parse_scheduler_config
from pumice.core.objects.metadata import Object
from pumice.core.session.carry import Carry, CycleClock
from pumice.questions.explain.advice.advise import Advice, advise, candidates
from pumice.questions.explain.advice.trial import Bench, budget
from pumice.questions.explain.scene import Scene
from pumice.questions.oneshot.cycles import fill
from tests.kit.jobs import gang
from tests.kit.nodes import node, nodes, taint
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.priority_classes import priority_class
from tests.kit.queues import queue

CONFIG = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""


def scene(*objects: Object) -> Scene:
    given = [queue("default"), *objects]
    config = parse_scheduler_config(CONFIG, source="test")
    return Scene(fill(given), config, CycleClock(1, 1_800_000_000.0, 0), Carry(), objects=lambda: given)


def advised(*objects: Object, seconds: float = 30.0, name: str = "default/g") -> Advice:
    return advise(scene(*objects), "podgroup", name, seconds)


def stateless(name: str) -> dict[str, Any]:
    return {**queue(name), "status": {}}


def cordoned(name: str, **more: Any) -> Object:
    found = node(name, **more)
    found.setdefault("spec", {})["unschedulable"] = True
    return found


def claiming(one: Object, claim: str) -> Object:
    one["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    return one


def affine(objects: list[Object], key: str, value: str) -> list[Object]:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    for obj in objects:
        if obj["kind"] == "Pod":
            obj["spec"]["affinity"] = {"nodeAffinity": required}
    return objects


def gated(objects: list[Object], gate: str) -> list[Object]:
    for obj in objects:
        if obj["kind"] == "Pod":
            obj["spec"]["schedulingGates"] = [{"name": gate}]
    return objects


TAINT = taint("dedicated", "gpu")
FOUND = {
    "room": (
        [*nodes(5, cpu="4"), *gang("g", pods=8, cpu="3")],
        ["8 of 8 fit with: 8 cpu more on node n0", "8 of 8 fit with: 2 cpu more on each of 3 nodes (n0, n1, n2)"],
    ),
    "fewer": (
        [*nodes(5, cpu="4"), *gang("g", pods=8, cpu="3")],
        ["5 of 8 fit with: minAvailable 5 instead of 8"],
    ),
    "gpus": (
        [node("n0", gpus=1), *gang("g", pods=1, gpus=3)],
        ["1 of 1 fit with: 2 nvidia.com/gpu more on node n0"],
    ),
    "memory": (
        [node("n0", memory="2Gi"), *gang("g", pods=1, memory="10Gi")],
        ["1 of 1 fit with: 8Gi memory more on node n0"],
    ),
    "taint": (
        [node("n0", taints=[TAINT]), node("n1", taints=[TAINT]), *gang("g", pods=2)],
        [
            "2 of 2 fit with: remove taint dedicated=gpu:NoSchedule from node n0",
            "2 of 2 fit with: tolerate taint dedicated=gpu:NoSchedule",
        ],
    ),
    "cordon": (
        [cordoned("n0", cpu="2"), cordoned("n1", cpu="2"), cordoned("n2", cpu="2"), *gang("g", pods=4)],
        ["4 of 4 fit with: uncordon 2 nodes (n0, n1)"],
    ),
    "label": (
        [*nodes(3, cpu="2"), *gang("g", pods=3, node_selector={"zone": "a"})],
        ["3 of 3 fit with: label 2 nodes (n0, n1) with zone=a", "3 of 3 fit with: no node selector (zone=a)"],
    ),
    "queue": (
        [
            node("n0"),
            queue("small", capability={"cpu": "2"}),
            *gang("g", pods=4, queue="small", phase="Inqueue"),
        ],
        ["4 of 4 fit with: queue small: capability cpu 4 instead of 2"],
    ),
    "no queue": ([node("n0"), *gang("g", pods=2, queue="lost")], ["2 of 2 fit with: create queue lost"]),
    "closed": (
        [node("n0"), queue("shut", state="Closed"), *gang("g", pods=2, queue="shut")],
        ["2 of 2 fit with: open queue shut"],
    ),
    "no state": (
        [node("n0"), stateless("shut"), *gang("g", pods=2, queue="shut")],
        ["2 of 2 fit with: open queue shut"],
    ),
    "admission": (
        [
            node("n0"),
            queue("small", capability={"cpu": "2"}),
            pod_group("g", min_member=4, queue="small", min_resources={"cpu": "4"}),
        ],
        ["admitted with: queue small: capability cpu 4 instead of 2", "admitted with: minAvailable 2 instead of 4"],
    ),
    "priority": (
        [
            node("n0", cpu="3"),
            priority_class("low", 1),
            priority_class("middle", 5),
            priority_class("high", 9),
            *gang("r", pods=3, min_member=1, phase="Running", nodes=["n0"] * 3, priority_class="middle"),
            *gang("g", pods=1, cpu="2", phase="Inqueue", priority_class="low"),
        ],
        ["1 of 1 fit (2 pods are evicted for it) with: priority class high"],
    ),
    "claim": (
        [
            node("n0"),
            pod_group("g"),
            claiming(pod("g-0", group="g"), "data"),
        ],
        ["1 of 1 fit with: create PersistentVolumeClaim data, bound to a volume that all nodes reach"],
    ),
    "unbound claim": (
        [
            node("n0"),
            pod_group("g"),
            claiming(pod("g-0", group="g"), "data"),
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "data", "namespace": "default", "uid": "one"},
                "spec": {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"]},
                "status": {"phase": "Pending"},
            },
        ],
        ["1 of 1 fit with: bind PersistentVolumeClaim data to a volume that all nodes reach"],
    ),
    "affinity": (
        [*nodes(2, cpu="2"), *affine(gang("g", pods=2), "zone", "a")],
        ["2 of 2 fit with: label node n0 with zone=a", "2 of 2 fit with: no required node affinity"],
    ),
    "gates": (
        [node("n0"), *gated(gang("g", pods=2), "hold")],
        ["2 of 2 fit with: remove scheduling gates (hold)"],
    ),
    "both": (
        [cordoned("n0", taints=[TAINT]), *gang("g", pods=2)],
        ["2 of 2 fit with: tolerate taint dedicated=gpu:NoSchedule; also uncordon node n0"],
    ),
}


@pytest.mark.parametrize("case", FOUND)
def test_what_helps_is_found_in_its_smallest_form(case: str) -> None:
    objects, sentences = FOUND[case]
    found = advised(*objects)
    assert [each for each in sentences if each not in found.sentences] == [], found.sentences


def test_what_does_not_help_is_not_said() -> None:
    """A node that is cordoned and tainted is no use when only one of the two is mended."""
    found = advised(*FOUND["both"][0])
    assert all("; also " in each for each in found.sentences)


def test_the_smallest_change_comes_first_by_its_amounts() -> None:
    """Two cores on each of three nodes are fewer than eight on one."""
    found = advised(*FOUND["room"][0])
    rooms = [each.split("with: ")[1] for each in found.sentences if " more on " in each]
    assert rooms == ["2 cpu more on each of 3 nodes (n0, n1, n2)", "8 cpu more on node n0"]


def test_what_would_let_too_few_fit_is_no_help() -> None:
    """Four of eight would find a place on the cordoned node: the gang starts with neither it nor a label alone."""
    objects = [cordoned("n0", cpu="4"), node("n1", cpu="4", taints=[TAINT]), *gang("g", pods=8)]
    found = advised(*objects)
    assert all(each.startswith("8 of 8") for each in found.sentences if "minAvailable" not in each)
    assert "8 of 8 fit with: tolerate taint dedicated=gpu:NoSchedule; also uncordon node n0" in found.sentences


def test_what_brings_only_some_is_told_with_what_brings_all() -> None:
    """Of pods that need not start together four fit once the node is there for them."""
    objects = [cordoned("n0", cpu="4"), node("n1", cpu="4", taints=[TAINT]), *gang("g", pods=8, min_member=1)]
    found = advised(*objects)
    both = (
        "8 of 8 fit with: tolerate taint dedicated=gpu:NoSchedule (alone 4 of 8); also uncordon node n0 (alone 4 of 8)"
    )
    assert found.sentences[0] == both
    assert "4 of 8 fit with: uncordon node n0" in found.sentences


def test_more_is_added_only_of_what_a_node_lacks() -> None:
    objects = [node("n0", cpu="1", memory="64Gi"), node("n1", cpu="64", memory="1Gi")]
    found = advised(*objects, *gang("g", pods=1, cpu="2", memory="2Gi"))
    rooms = {each.split("with: ")[1] for each in found.sentences}
    assert {"1 cpu more on node n0", "1Gi memory more on node n1"} <= rooms


def test_room_that_others_would_take_first() -> None:
    """Another job waits for two cores and comes first: four of its own are not enough, nor on a node of its own."""
    first = gang("a", pods=1, cpu="2")
    found = advised(node("n0", cpu="1"), *first, *gang("g", pods=1, cpu="4"))
    assert found.sentences == ["1 of 1 fit with: 5 cpu more on node n0"]


def rooms(*objects: Object) -> list[str]:
    return [each.split("with: ")[1] for each in advised(*objects).sentences if " more on " in each]


def test_room_is_spread_over_as_many_nodes_as_need_least_in_all() -> None:
    """Of three nodes one has no GPU at all: four pods more on two of them are fewer GPUs than two on each of three."""
    objects = [node("n0", cpu="32", gpus=4), node("n1", cpu="32", gpus=4), node("n2", cpu="32")]
    told = rooms(*objects, *gang("g", pods=8, cpu="1", gpus=2))
    assert told[:2] == ["8 nvidia.com/gpu more on node n0", "4 nvidia.com/gpu more on each of 2 nodes (n0, n1)"]


def test_room_that_others_take_is_no_more_than_they_take() -> None:
    """Five are lacking, and two that another job takes first: not two whole tasks."""
    told = rooms(node("n0", cpu="32", gpus=1), *gang("a", pods=1, gpus=2), *gang("g", pods=1, gpus=6))
    assert told == ["7 nvidia.com/gpu more on node n0"]


def test_there_may_be_nothing() -> None:
    found = advised(pod_group("g", min_member=2), pod("g-0", group="g"))
    assert (found.sentences, found.remark[:14]) == ([], "no change that")


def test_the_time_may_be_over() -> None:
    found = advised(*FOUND["room"][0], seconds=0.0)
    assert found.sentences == []
    assert found.remark == "the work for trying (0 s) was over before anything was tried (--budget)"


def test_the_view_asked_about_stays_as_it_was() -> None:
    here = scene(*FOUND["room"][0])
    version = here.view.version
    assert advise(here, "podgroup", "default/g", 30.0) == advise(here, "podgroup", "default/g", 30.0)
    assert here.view.version == version
    assert here.view.check() == []


def test_who_does_not_wait_needs_no_advice() -> None:
    assert advised(node("n0"), *gang("g", pods=2)) == Advice()


@pytest.mark.parametrize("case", ["room", "taint", "queue", "priority", "claim"])
def test_trying_on_one_view_comes_out_as_on_a_fresh_one(case: str) -> None:
    """What is tried leaves no trace: a change does the same after all others, and on a view that saw no other."""
    objects, _ = FOUND[case]

    def bench() -> Bench:
        return Bench.of(scene(*objects), "default/g", budget(30.0))

    used = bench()
    families, _ = candidates(used)
    tried = [used.attempt(family.of(family.most)) for family in families]
    again = [used.attempt(family.of(family.most)) for family in families]
    fresh = [
        Bench.of(scene(*objects), "default/g", budget(30.0)).attempt(family.of(family.most)) for family in families
    ]
    assert tried == again == fresh
    assert used.view.check() == []
