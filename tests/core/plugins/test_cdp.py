"""cdp: protected until the cooldown is over."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.objects.metadata import parse_time
from pumice.core.session.session import Session
from tests.core.plugins.world import NOW, configuration, evictable, open_world, task_of
from tests.kit import gang, node, queue

COOLDOWN = "volcano.sh/cooldown-time"


def world(scheduled: str | None, *, phase: str = "Running", status: str = "True", **marks: Any) -> Session:
    old = gang("old", queue="q", pods=1, nodes=["n"], phase="Running", **marks)
    old[1]["status"]["phase"] = phase
    if scheduled:
        condition = {"type": "PodScheduled", "status": status, "lastTransitionTime": scheduled}
        old[1]["status"]["conditions"] = [condition]
    return open_world(configuration(["cdp"]), node("n"), queue("q"), old, gang("new", queue="q", pods=1))


def is_victim(session: Session, point: str = "Preemptable") -> bool:
    return evictable(session, point, task_of(session, "new-0"), "old-0") == ["old-0"]


LATELY = "2026-01-01T11:50:00Z"  # ten minutes before NOW


@pytest.mark.parametrize("point", ["Preemptable", "Reclaimable"])
@pytest.mark.parametrize(("cooldown", "victim"), [("15m", False), ("10m", True), ("5m", True), ("soon", True)])
def test_the_cooldown_counts_from_scheduling(point: str, cooldown: str, victim: bool) -> None:
    assert is_victim(world(LATELY, annotations={COOLDOWN: cooldown}), point) is victim


def test_a_label_goes_before_an_annotation() -> None:
    assert not is_victim(world(LATELY, labels={COOLDOWN: "1h"}, annotations={COOLDOWN: "1s"}))


@pytest.mark.parametrize(
    "each", [{"scheduled": None}, {"scheduled": LATELY, "phase": "Pending"}, {"scheduled": LATELY, "status": "False"}]
)
def test_who_is_not_known_to_run_since_a_moment_is_not_protected(each: dict[str, Any]) -> None:
    assert is_victim(world(**each, annotations={COOLDOWN: "1h"}))


def test_the_next_cycle_comes_when_the_cooldown_is_over() -> None:
    session = world(LATELY, annotations={COOLDOWN: "15m"})
    assert session.wake_at is None
    assert not is_victim(session)
    assert session.wake_at == parse_time(NOW) + 300.0
