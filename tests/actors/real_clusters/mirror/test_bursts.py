"""When a cycle of a scheduler is over, as far as is to be seen from outside."""

from dataclasses import replace
from typing import Any

import anyio
import pytest

from pumice.actors.real_clusters.mirror.intake import Burst
from pumice.core.messages.commands import BindPod
from pumice.core.objects.metadata import Object
from pumice.storage.memory import MemoryJournal
from tests.actors.real_clusters.mirror.rig import CLUSTER, cluster, cycles_of, mirror, same, way_to
from tests.kit.nodes import node
from tests.kit.pods import pod


def leaving(name: str, message: str) -> Object:
    obj = pod(name, node="n1", uid=f"u-{name}")
    obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    obj["status"]["conditions"] = [{"type": "Ready", "status": "False", "reason": "Evict", "message": message}]
    return obj


def waiting(*names: str) -> Burst:
    burst = Burst(1.0)
    for name in names:
        burst.hear(pod(name, uid=f"u-{name}"), 0.0)
    return burst


def bound(name: str, **more: Any) -> Object:
    return pod(name, node="n1", uid=f"u-{name}", **more)


def test_it_is_over_once_nothing_was_bound_for_a_while() -> None:
    burst = waiting("a", "b")
    assert burst.left_s(0.0) == 0.0
    burst.hear(bound("a"), 5.0)
    assert burst.left_s(5.1) == pytest.approx(0.2)
    burst.hear(bound("b"), 5.2)
    assert burst.left_s(5.4) == pytest.approx(0.1)
    burst.hear(bound("b", phase="Running"), 5.45)
    assert burst.left_s(5.5) == pytest.approx(0.0), "that it runs is no decision"


def test_it_is_not_waited_for_longer_than_a_period_and_a_half() -> None:
    names = [f"p{number}" for number in range(40)]
    burst = waiting(*names)
    for number, name in enumerate(names):
        burst.hear(bound(name), 5.0 + 0.1 * number)
    assert burst.left_s(6.4) == pytest.approx(0.1)
    assert burst.left_s(8.9) == 0.0


def test_evictions_are_decisions_too_and_deletions_by_others_are_none() -> None:
    burst = waiting()
    burst.hear(bound("a"), 1.0)
    burst.hear(leaving("a", "somebody deleted it"), 2.0)
    assert burst.left_s(2.0) == 0.0
    burst.hear(bound("b"), 2.0)
    burst.hear(leaving("b", "Pod is evicted, because of preempt"), 3.0)
    assert burst.left_s(3.0) == pytest.approx(0.3)
    burst.hear(leaving("b", "Pod is evicted, because of preempt"), 3.2, gone=True)
    assert burst.left_s(3.2) == pytest.approx(0.1), "once"


def test_who_came_with_a_node_or_belongs_to_another_scheduler_was_bound_by_nobody_here() -> None:
    burst = Burst(1.0)
    burst.hear(bound("a"), 1.0)
    burst.hear(pod("b", uid="u-b", scheduler="other"), 1.0)
    burst.hear(bound("b", scheduler="other"), 1.0)
    assert burst.left_s(1.0) == 0.0


@pytest.mark.anyio
async def test_no_look_ends_amid_a_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two binds, with many looks' time between them, are one cycle as long as that one is not over."""
    amid = False

    def left_s(burst: Burst, now: float) -> float:
        return 0.01 if amid else 0.0

    monkeypatch.setattr(Burst, "left_s", left_s)
    journal = MemoryJournal()
    by_hand = replace(CLUSTER, scheduler=False)
    async with cluster(by_hand) as web, way_to(web) as way, mirror(way, journal) as here:
        await web.system.submit([node("n1"), pod("a", uid="u-a"), pod("b", uid="u-b")])
        await same(here, web.system, "Node", "Pod")
        amid = True
        for name in ("a", "b"):
            await web.system.api.ask(BindPod("default", name, f"u-{name}", "n1"))
            await anyio.sleep(0.1)
        amid = False
        await same(here, web.system, "Pod")
    assert [len(cycle.decisions) for cycle in await cycles_of(journal) if cycle.decisions] == [2]
