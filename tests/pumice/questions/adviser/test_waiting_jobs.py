"""The order of the waiting jobs and what puts each where it is, queues in numbers, and amounts checked by trying."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.cycle import run_cycle
from pumice.core.objects.metadata import Object
from pumice.core.resources.lists import CSI_VOLUMES
from pumice.questions.adviser.queues import in_tree_order
from pumice.questions.adviser.reasons import WaitClass, WaitCode
from pumice.questions.adviser.waiting_jobs import NoSuchQueueError, waiting_jobs_of
from pumice.questions.explain.scene import jobs_of, near
from tests.core.devices.cards import gpu_node
from tests.core.plugins.test_deviceshare import asks
from tests.kit.jobs import gang
from tests.kit.nodes import node, nodes
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.priority_classes import priority_class
from tests.kit.queues import queue
from tests.kit.storage import claim, csi_node, storage_class, using
from tests.pumice.questions.adviser.test_reasons import CAPACITY, STOCK, TREE, job_of, runs, scene

GIB = 2.0**30


def big(name: str, **more: Any) -> list[Object]:
    """A gang that fits nowhere."""
    return gang(name, pods=2, cpu="9", phase="Inqueue", **more)


ORDERED: dict[str, tuple[list[Object], str, float | None, float | None]] = {
    "priority": (
        [priority_class("high", 9), *big("a"), *big("b", priority_class="high", priority=9)], "b", 9.0, 0.0,
    ),
    "gang": (
        [*gang("a", pods=2, min_member=1, cpu="9", phase="Running", nodes=["n0"]), *big("b")], "b", 0.0, 1.0,
    ),
    "drf": (
        [
            *gang("a", pods=3, min_member=3, cpu="1", phase="Inqueue", nodes=["n0"]),
            *gang("b", pods=3, min_member=3, cpu="2", phase="Inqueue", nodes=["n0", "n1"]),
        ], "a", 1 / 16, 4 / 16,
    ),
    "creation": (
        [*big("a", created="2026-01-01T00:00:01Z"), *big("b")], "b", 1767225600.0, 1767225601.0,
    ),
    "name": ([*big("a"), *big("b")], "a", None, None),
}  # fmt: skip


@pytest.mark.parametrize("by", ORDERED)
def test_the_plugin_that_decided_is_named_with_its_numbers(by: str) -> None:
    objects, first, its, own = ORDERED[by]
    blocked = [] if by != "drf" else runs("r", "n1", 2, cpu="6") + runs("s", "n0", 1, cpu="15")
    waiting = waiting_jobs_of(scene(*nodes(2, cpu="8"), *objects, *blocked)).waiting
    one, other = sorted((job for job in waiting), key=lambda job: job.position or 99)
    assert one.job == f"default/{first}"
    assert (one.position, other.position) == (1, 2)
    assert one.place.before_it is None
    before = other.place.before_it
    assert before is not None
    assert (before.job, before.by) == (one.job, by)
    assert before.its == (its and pytest.approx(its))
    assert before.own == (own and pytest.approx(own))
    assert before.words


def test_jobs_that_get_no_turn_keep_their_order_behind_those_that_do() -> None:
    """q1 has all that it deserves before its jobs are asked; q2's are tried."""
    mine = [each for name in "cb" for each in gang(name, pods=1, cpu="4", memory=None, queue="q1", phase="Inqueue")]
    held = runs("r", "n0", cpu="4", memory=None, queue="q1")
    theirs = gang("x", pods=1, cpu="9", queue="q2", phase="Inqueue")
    objects = [
        *nodes(2, cpu="4"),
        queue("q1", capability={"cpu": "4", "pods": "1"}),
        queue("q2"),
        *held,
        *mine,
        *theirs,
    ]
    waiting = waiting_jobs_of(scene(*objects)).waiting
    assert [(job.job, job.position, job.place.tried) for job in waiting] == [
        ("default/x", 1, True),
        ("default/b", 2, False),
        ("default/c", 3, False),
    ]
    assert waiting[1].place.queue_share == 1.0
    assert waiting[2].place.before_it is not None


def test_who_is_not_admitted_comes_behind_who_is_and_who_has_no_turn_has_no_position() -> None:
    asking = [pod_group("u", min_resources={"cpu": "90"}), pod("u-0", group="u", cpu="90")]
    objects = [node("n0"), *asking, *big("g"), *gang("lost", pods=1, queue="nowhere", phase="Inqueue")]
    waiting = waiting_jobs_of(scene(*objects)).waiting
    assert [(job.job, job.position, job.place.stage) for job in waiting] == [
        ("default/g", 1, "allocate"), ("default/u", 2, "enqueue"), ("default/lost", None, ""),
    ]  # fmt: skip
    assert waiting[1].wait.sentence.startswith("overcommit does not admit it: asks 90 cpu, all nodes together have 8")


def test_a_job_whose_pods_are_made_once_it_is_admitted_waits_too() -> None:
    """So Volcano's Job controller does."""
    objects = [node("n0", cpu="4"), pod_group("g", min_member=2, min_resources={"cpu": "90", "memory": "1Gi"})]
    found = job_of(waiting_jobs_of(scene(*objects)))
    assert found is not None
    assert (found.wait.code, found.pods, found.needed) == (WaitCode.LARGER_THAN_CLUSTER, 0, 2)
    assert found.asks == {"cpu": 90.0, "memory": GIB}
    admitted = job_of(waiting_jobs_of(scene(node("n0"), pod_group("g", min_member=2, phase="Inqueue"))))
    assert admitted is not None
    assert (admitted.wait.code, admitted.position) == (WaitCode.PODS_MISSING, None)
    assert not waiting_jobs_of(scene(node("n0"), pod_group("g", phase="Completed"))).waiting


def test_a_queue_that_has_more_than_it_deserves_borrows_the_difference() -> None:
    objects = [
        node("n0", cpu="8"), queue("q1", deserved={"cpu": "2"}, capability={"cpu": "6"}), queue("q2"),
        *runs("r", "n0", 3, cpu="1", queue="q1"), *big("g", queue="q1"),
    ]  # fmt: skip
    standing = waiting_jobs_of(scene(*objects, config=CAPACITY)).queues["q1"]
    assert (standing.deserved["cpu"], standing.allocated["cpu"], standing.borrowed["cpu"]) == (2.0, 3.0, 1.0)
    assert (standing.capability["cpu"], standing.pending["cpu"], standing.pending["memory"]) == (6.0, 18.0, 2 * GIB)
    assert (standing.jobs_waiting, standing.pods_waiting) == (1, 2)
    assert standing.share == pytest.approx(1.5)


def test_the_limit_of_a_queue_above_is_a_quota_too() -> None:
    objects = [
        node("n0", cpu="8"), queue("root"), queue("top", parent="root", capability={"cpu": "3"}),
        queue("q1", parent="top"), *gang("g", pods=1, cpu="4", queue="q1", phase="Inqueue"),
    ]  # fmt: skip
    waiting_jobs = waiting_jobs_of(scene(*objects, config=TREE, default=False))
    found = job_of(waiting_jobs)
    assert found is not None
    assert found.wait.code is WaitCode.QUEUE_CAPABILITY
    assert in_tree_order(waiting_jobs.queues) == [(0, "root"), (1, "top"), (2, "q1")]
    assert list(waiting_jobs.within("top").queues) == ["q1", "top"]


def test_without_a_plugin_for_queues_what_they_have_is_counted() -> None:
    config = STOCK.replace(", {name: proportion}", "")
    waiting_jobs = waiting_jobs_of(scene(node("n0"), *runs("r", "n0", 2), *big("g"), config=config))
    assert waiting_jobs.queues["default"].allocated == {"cpu": 2.0, "memory": 2 * GIB, "pods": 2.0}
    assert waiting_jobs.queues["default"].share is None


@pytest.mark.parametrize("config", [CAPACITY, STOCK.replace(", {name: proportion}", "")], ids=["limits", "counted"])
def test_volumes_of_a_driver_are_whole_ones(config: str) -> None:
    volumes = CSI_VOLUMES + "csi.example.com"
    driven = storage_class("driven", waits=False)
    objects = [node("n0"), csi_node("n0", "csi.example.com", most=5), driven, claim("c", cls="driven")]
    group, runs_there = runs("r", "n0")
    waiting_jobs = waiting_jobs_of(scene(*objects, group, using(runs_there, "c"), *big("g"), config=config))
    standing = waiting_jobs.queues["default"]
    assert standing.allocated[volumes] == 1.0
    if config == CAPACITY:
        assert standing.capability[volumes] == 5.0


def test_one_queue_and_those_below_it_or_a_clear_refusal() -> None:
    waiting_jobs = waiting_jobs_of(scene(node("n0"), queue("q1"), *big("g"), *big("h", queue="q1")))
    assert [job.job for job in waiting_jobs.within("q1").waiting] == ["default/h"]
    assert waiting_jobs.classes()[WaitClass.NO_CAPACITY] == {"default": 1, "q1": 1}
    with pytest.raises(NoSuchQueueError, match="no queue 'q'; near: q1"):
        waiting_jobs.within("q")


def test_a_job_with_a_role_that_fits_and_one_that_does_not() -> None:
    """Of several kinds of pods the sum is what counts."""
    roles = [pod("g-0", group="g", cpu="1"), pod("g-1", group="g", cpu="4"), pod("g-2", group="g", cpu="4")]
    objects = [pod_group("g", min_member=3, phase="Inqueue"), *roles]
    found = job_of(waiting_jobs_of(scene(node("n0", cpu="4"), node("n1", cpu="4"), *objects)))
    assert found is not None
    assert (found.wait.code, found.needed, found.asks["cpu"]) == (WaitCode.LARGER_THAN_CLUSTER, 3, 9.0)
    found = job_of(waiting_jobs_of(scene(node("n0", cpu="5"), *nodes(2, prefix="m", cpu="2"), *objects)))
    assert found is not None
    assert found.wait.code is WaitCode.FREE_IN_PIECES


def test_the_same_question_twice_gives_the_same_bytes_and_the_cycle_decides_the_same() -> None:
    asked = scene(*nodes(3, cpu="4"), *gang("a", pods=2, cpu="3"), *big("g"), *gang("h", pods=8, cpu="2"))
    first, second = (msgspec.json.encode(waiting_jobs_of(asked).standings()) for _ in range(2))
    assert first == second
    unasked = run_cycle(asked.view.snapshot(), asked.config, asked.clock, asked.carry)
    waiting_jobs_of(asked)
    assert run_cycle(asked.view.snapshot(), asked.config, asked.clock, asked.carry).digest == unasked.digest


def test_room_of_cards_is_in_pieces_too() -> None:
    """Three times 8 of two cards of 12: enough in all, and one card has to be cut."""
    shared = STOCK.replace(
        "{name: nodeorder}", "{name: nodeorder}, {name: deviceshare, arguments: {deviceshare.GPUSharingEnable: true}}"
    )
    cards = gpu_node("n0", cards=2, memory=24)
    found = job_of(
        waiting_jobs_of(scene(cards, *asks(gang("g", pods=3, phase="Inqueue"), gpu_memory=8), config=shared))
    )
    assert found is not None
    assert found.wait.code is WaitCode.FREE_IN_PIECES
    assert not waiting_jobs_of(
        scene(cards, *asks(gang("g", pods=2, phase="Inqueue"), gpu_memory=8), config=shared)
    ).waiting


SIZES = st.lists(st.tuples(st.integers(1, 8), st.integers(0, 8)), min_size=1, max_size=5)


@given(sizes=SIZES, pods=st.integers(1, 4), cpu=st.integers(1, 6))
def test_fragmented_means_that_the_same_in_one_piece_would_do(
    sizes: list[tuple[int, int]], pods: int, cpu: int
) -> None:
    """Checked by trying: the same nodes as one."""
    used = [(size, min(taken, size)) for size, taken in sizes]
    gang_of = gang("g", pods=pods, cpu=str(cpu), memory="1Mi", phase="Inqueue")
    apart = [node(f"n{i}", cpu=str(size)) for i, (size, _) in enumerate(used)]
    apart += [each for i, (_, taken) in enumerate(used) if taken for each in runs(f"r{i}", f"n{i}", cpu=str(taken))]
    found = job_of(waiting_jobs_of(scene(*apart, *gang_of)))
    whole, taken = sum(size for size, _ in used), sum(taken for _, taken in used)
    together = [node("n0", cpu=str(whole)), *(runs("r", "n0", cpu=str(taken)) if taken else [])]
    starts = job_of(waiting_jobs_of(scene(*together, *gang_of))) is None
    if found is None:
        assert starts
    else:
        fragmented = found.wait.wait_class is WaitClass.FRAGMENTED
        too_large = found.wait.code is WaitCode.LARGER_THAN_ANY_NODE
        assert starts == fragmented or too_large
        assert found.wait.wait_class in (WaitClass.FRAGMENTED, WaitClass.NO_CAPACITY)


def test_a_job_is_named_by_who_owns_its_group_whatever_that_is_called() -> None:
    """In a redacted journal the PodGroup's name is another pseudonym than the Job's."""
    group = pod_group("x7f", queue="default")
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "a1b", "uid": "u", "controller": True}
    group["metadata"]["ownerReferences"] = [owner]
    seen = scene(node("n0", cpu="1"), group, pod("p", group="x7f", cpu="2"))
    (waiting,) = waiting_jobs_of(seen).waiting
    assert (waiting.job, waiting.name, waiting.row().made_for) == ("default/x7f", "default/a1b", "default/a1b")
    assert jobs_of(seen.view, "job", "default/a1b") == ["default/x7f"]
    assert "default/a1b" in near(seen.view, "job", "default/a1c")
