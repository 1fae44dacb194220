"""Cycles that come to nothing are counted and not run; all that comes of a life is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pumice
from pumice.cluster.kernel.kernel import Kernel, stirs
from pumice.cluster.kernel.life import Life
from pumice.core.fold.shown import Shown
from pumice.core.messages.events import Mutation
from pumice.core.state.no_op_cycles import waits
from pumice.core.state.view import View
from pumice.storage import codec
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.queues import queue
from tests.pumice.questions.whatif.clusters import fork

if TYPE_CHECKING:
    from pumice.core.messages.decisions import CycleResult
    from pumice.core.objects.metadata import Object

HORIZON_S = 60.0
Seen = tuple[float, int, str, str, str]


def lived(number: int) -> tuple[Life, list[Seen], int]:
    """A life, all that was written in it, and how many of its cycles were run."""
    seen, ran = list[Seen](), list[int]()

    def hears(mutation: Mutation, at: float) -> None:
        seen.append((at, mutation.revision, mutation.type, f"{mutation.kind} {mutation.name}", str(mutation.blob)))

    def decided(result: CycleResult, at: float) -> None:
        ran.append(result.cycle)

    life = Life(fork(number), 0, hears, decided)
    life.run(HORIZON_S)
    return life, seen, len(ran)


def never(kernel: Kernel) -> bool:
    return False


def test_what_is_not_run_would_have_come_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = range(24)  # actions that only place, and actions that evict too
    skipping = [lived(number) for number in numbers]
    monkeypatch.setattr(Kernel, "_is_still", never)
    for number, (life, seen, _) in zip(numbers, skipping, strict=True):
        every, all_seen, _ = lived(number)
        kernel, other = life.kernel, every.kernel
        assert (seen, kernel.cycle, kernel.carry.to_dict()) == (all_seen, other.cycle, other.carry.to_dict())


def test_a_job_that_has_its_place_takes_few_cycles() -> None:
    """Admitted, placed, running, ended: what else wakes the scheduler brings nothing."""
    cluster = pumice.Cluster(pumice.nodes(1))
    cluster.run("1m")
    before = cluster.cycles[-1].cycle, len(cluster.cycles)
    cluster.submit(pumice.gang("late", pods=1, duration="3s"))
    cluster.run("1m")
    assert len(cluster.cycles) - before[1] == 4
    assert cluster.cycles[-1].cycle - before[0] > 4


def shown(*objects: Object) -> Shown[View]:
    made = Shown(View)
    for obj in objects:
        made.see("ADDED", obj)
    return made


def mutation(obj: Object, kind: str, revision: int = 9) -> Mutation:
    return Mutation(revision, kind, obj["kind"], "default", obj["metadata"]["name"], codec.pack(obj))


def test_who_waits() -> None:
    placed = gang("g", pods=1, nodes=["n"], phase="Running")
    assert not waits(shown(node("n"), queue("default"), *placed).view)
    assert waits(shown(node("n"), queue("default"), *gang("g", pods=1)).view)
    assert waits(shown(queue("default"), pod_group("g", phase="Pending")).view)


def test_what_stirs() -> None:
    group = pod_group("g", phase="Running")
    running = pod("p", group="g", node="n", phase="Running")
    said = mutation(group, "MODIFIED")
    own = {9}
    assert not stirs(shown(group), said, group, own)
    assert stirs(shown(group), said, group, own), "what comes later is not what the cycle said"
    assert stirs(shown(group, running), mutation(group, "DELETED"), group, set())
    ended = pod("p", group="g", node="n", phase="Succeeded")
    assert not stirs(shown(group, ended), mutation(group, "DELETED"), group, set())
    assert stirs(shown(), mutation(node("n"), "ADDED"), node("n"), set())


def test_a_queue_stirs_by_more_than_its_counts() -> None:
    before = queue("q")
    counted = {**before, "status": {**before["status"], "running": 3}}
    closed = {**before, "status": {**before["status"], "state": "Closed"}}
    heavier = {**before, "spec": {**before["spec"], "weight": 7}}
    assert not stirs(shown(before), mutation(counted, "MODIFIED"), counted, set())
    for changed in (closed, heavier):
        assert stirs(shown(before), mutation(changed, "MODIFIED"), changed, set())
    assert stirs(shown(), mutation(before, "ADDED"), before, set())
    assert stirs(shown(before), mutation(before, "DELETED"), before, set())
