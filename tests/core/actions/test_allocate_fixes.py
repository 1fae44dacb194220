"""Switches that mend what allocate does with jobs that cannot go on."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.cycle import run_action
from pumice.core.objects.metadata import Object
from pumice.core.session.session import Session
from tests.core.plugins.world import configuration, open_world
from tests.kit import gang, node, queue


def leaving(name: str, cpu: str) -> Object:
    """A running pod that is being deleted: its room is room to come."""
    (_, member) = gang(name, queue="q", pods=1, nodes=["n"], phase="Running", cpu=cpu)
    member["metadata"]["deletionTimestamp"] = "2026-01-01T11:59:00Z"
    return member


def world(*parts: Any, fix: tuple[str, ...] = ()) -> Session:
    session = open_world(configuration(["priority", "gang"], ["predicates"], fix=fix), node("n", cpu="4"), *parts)
    run_action(session, "allocate")
    return session


def bound(session: Session) -> list[str]:
    return sorted(bind.name for bind in session.binds)


@pytest.mark.parametrize(("fix", "names"), [((), []), (("discard-pipelined-only",), ["b-0", "b-1"])])
def test_room_of_a_job_that_is_only_promised_some(fix: tuple[str, ...], names: list[str]) -> None:
    session = world(
        queue("q"),
        leaving("old", "2"),
        gang("a", queue="q", pods=4, phase="Inqueue", created="2026-01-01T00:00:00Z"),  # two now, two to come
        gang("b", queue="q", pods=2, phase="Inqueue", created="2026-01-01T01:00:00Z"),
        fix=fix,
    )
    assert bound(session) == names


def fifo(name: str) -> Object:
    made = queue(name)
    return {**made, "spec": {**made["spec"], "dequeueStrategy": "fifo"}}


@pytest.mark.parametrize(("fix", "names"), [((), ["b-0", "c-0"]), (("dequeue-strategy",), ["c-0"])])
def test_nobody_overtakes_the_first_job_of_a_strict_queue(fix: tuple[str, ...], names: list[str]) -> None:
    session = world(
        fifo("q"),
        fifo("p"),
        gang("a", queue="q", pods=1, cpu="5", phase="Inqueue", created="2026-01-01T00:00:00Z"),
        gang("b", queue="q", pods=1, phase="Inqueue", created="2026-01-01T01:00:00Z"),
        gang("c", queue="p", pods=1, phase="Inqueue"),
        fix=fix,
    )
    assert bound(session) == names
