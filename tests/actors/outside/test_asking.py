"""A whole system with an extender: asked beside the event loop, journaled, replayed without it, and its faults."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import anyio
import pytest

from pumice.actors.outside.over_http import ExtenderRequest
from pumice.core.messages.commands import Restart
from pumice.core.messages.events import ActorCrashed, CycleDropped
from pumice.core.messages.questions import OutsideAnswer
from pumice.questions.replay.verify import verify
from pumice.storage.memory import MemoryJournal
from tests.actors.rig import QUICK, cycles, idle, lives, placed, started, three_nodes
from tests.kit.jobs import gang

pytestmark = pytest.mark.anyio
CONFIG = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: extender
    arguments:
      extender.urlPrefix: http://extender
      extender.onSessionOpenVerb: open
      extender.onSessionCloseVerb: close
      extender.predicateVerb: predicate
      extender.prioritizeVerb: prioritize
      extender.ignorable: IGNORABLE
"""
Says = Callable[[str, dict[str, Any]], OutsideAnswer]


class Outside:
    """An extender that needs a moment for each answer, beside which the event loop goes on."""

    def __init__(self, says: Says, moment_s: float = 0.001) -> None:
        self.says, self.moment_s = says, moment_s
        self.asked: list[str] = []

    async def __call__(self, requests: Sequence[ExtenderRequest]) -> Sequence[OutsideAnswer]:
        await anyio.sleep(self.moment_s)
        return [self._one(request) for request in requests]

    def _one(self, request: ExtenderRequest) -> OutsideAnswer:
        verb = request.url.rsplit("/", 1)[1]
        self.asked.append(verb)
        return self.says(verb, json.loads(request.content))


def settings(outside: Outside, *, ignorable: bool = False) -> Any:
    return replace(QUICK, config_text=CONFIG.replace("IGNORABLE", str(ignorable).lower()), post=outside)


def only_n1(verb: str, asked: dict[str, Any]) -> OutsideAnswer:
    if verb != "predicate":
        return OutsideAnswer(200, b'{"nodeScore": {}}')
    assert asked["task"]["Pod"]["spec"]["containers"], "the pod is whole"
    fits = asked["node"]["Name"] == "n1"
    return OutsideAnswer(200, b"{}" if fits else b'{"status": "not there", "code": 2}')


async def test_pods_go_where_the_extender_says_and_the_record_replays_without_it() -> None:
    journal, outside = MemoryJournal(), Outside(only_n1)
    async with started(journal, settings=settings(outside)) as system:
        await system.submit([*three_nodes(), *gang("g", pods=3, duration="0")])
        await idle(system)
        assert set(placed(system).values()) == {"n1"}
    asked = len(outside.asked)
    assert {"open", "predicate", "close"} <= set(outside.asked)
    assert any(cycle.answers for cycle in await cycles(journal))
    report = await verify(journal)
    assert report.identical
    assert report.cycles
    assert len(outside.asked) == asked


@pytest.mark.parametrize("ignorable", [False, True])
async def test_an_extender_that_fails_refuses_or_is_passed_over(ignorable: bool) -> None:
    faults = iter(range(10_000))

    def fails(verb: str, asked: dict[str, Any]) -> OutsideAnswer:
        said = (
            OutsideAnswer(500),
            OutsideAnswer(200, b"<html>"),
            OutsideAnswer(error="Post: refused"),
            OutsideAnswer(200, b"[]"),
        )
        return OutsideAnswer(200) if verb == "open" else said[next(faults) % 4]

    journal = MemoryJournal()
    async with started(journal, settings=settings(Outside(fails), ignorable=ignorable)) as system:
        await system.submit([*three_nodes(), *gang("g", pods=2, duration="0")])
        await idle(system)
        assert len(placed(system)) == (2 if ignorable else 0)
    assert (await verify(journal)).identical


async def test_a_client_that_crashes_over_a_question_costs_the_cycle_and_nothing_else() -> None:
    journal, once = MemoryJournal(), iter([True])

    def says(verb: str, asked: dict[str, Any]) -> OutsideAnswer:
        if verb == "predicate" and next(once, False):
            raise RuntimeError("planted")
        return only_n1(verb, asked)

    async with started(journal, settings=settings(Outside(says))) as system:
        await system.submit([*three_nodes(), *gang("g", pods=2, duration="0")])
        await idle(system)
        assert set(placed(system).values()) == {"n1"}
    assert await lives(journal, ActorCrashed)
    assert len(await lives(journal, CycleDropped)) == 1
    assert (await verify(journal)).identical


async def test_a_worker_restarted_over_a_question_loses_no_pod() -> None:
    outside = Outside(only_n1, moment_s=0.02)
    async with started(settings=settings(outside)) as system:
        await system.submit([*three_nodes(), *gang("g", pods=2, duration="0")])
        while "predicate" not in outside.asked:  # noqa: ASYNC110
            await anyio.sleep(0.005)
        await system.switchboard.mailboxes["supervisor"].tell(Restart("action-worker:allocate"))
        await idle(system)
        assert set(placed(system).values()) == {"n1"}


async def test_the_loop_goes_on_while_somebody_is_asked() -> None:
    outside, ticks = Outside(only_n1, moment_s=0.1), 0
    async with started(settings=settings(outside)) as system:
        await system.submit([*three_nodes(), *gang("g", pods=1, duration="0")])
        while not outside.asked:
            ticks += 1
            await anyio.sleep(0.005)
        await idle(system)
    assert ticks > 5
