"""A whole system on a journal in memory, and places to plant faults in it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio

from pumice.actors.runtime.clock import Clock, RealClock
from pumice.actors.scheduling.core_decider import core_decider
from pumice.actors.scheduling.decider import Decider
from pumice.actors.system.settings import SystemSettings
from pumice.actors.system.system import System
from pumice.core.messages.commands import StoreRequest
from pumice.core.messages.events import ActorEvent, CycleRecord
from pumice.core.messages.replies import ApiReply, Listing
from pumice.core.objects.metadata import Object
from pumice.storage import codec
from pumice.storage.journal import Journal
from pumice.storage.memory import MemoryJournal
from tests.kit.nodes import node

QUICK = SystemSettings(schedule_period_s=0.005, check_view=True)
PATIENCE_S = 20.0
PREEMPTING = """actions: "enqueue, allocate, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: nodeorder
"""


def three_nodes() -> list[Object]:
    """cpu 8, memory 16Gi, pods 110 each."""
    return [node(f"n{number}") for number in range(3)]


@asynccontextmanager
async def started(
    journal: Journal | None = None,
    *,
    settings: SystemSettings = QUICK,
    clock: Clock | None = None,
    decider: Decider | None = None,
    api: Callable[[StoreRequest, Callable[[StoreRequest, float], ApiReply], float], ApiReply] | None = None,
) -> AsyncGenerator[System]:
    """A running system. `api` stands before the store: (request, the store's apply, now) -> reply."""
    system = System(settings, journal or MemoryJournal(), clock or RealClock(), decider=decider)
    if api is not None:
        stand_before(system, api)
    async with system.running():
        yield system


def stand_before(
    system: System, api: Callable[[StoreRequest, Callable[[StoreRequest, float], ApiReply], float], ApiReply]
) -> None:
    """Have every request of the api go through this function first."""
    apply = system.store.apply

    def intercepted(request: StoreRequest, now: float) -> ApiReply:
        return api(request, apply, now)

    setattr(system.store, "apply", intercepted)  # noqa: B010


async def idle(system: System, patience_s: float = PATIENCE_S) -> None:
    """Until idle; a system that never is says what keeps it."""
    with anyio.move_on_after(patience_s) as scope:
        await system.until_idle()
    assert not scope.cancelled_caught, system.context.activity.reasons()


def tampered(run_action: Callable[[Callable[[Any, str], None], Any, str], None]) -> Decider:
    """The real core with `run_action(the real one, session, action)` in its place."""
    real = core_decider()

    def intercepted(session: Any, action: str) -> None:
        run_action(real.run_action, session, action)

    return replace(real, run_action=intercepted)


def stored(system: System, kind: str) -> list[Object]:
    """All objects of a kind, as the api has them."""
    listing = system.store.list(kind)
    assert isinstance(listing, Listing)
    return [codec.unpack(blob) for blob in listing.blobs]


def placed(system: System) -> dict[str, str]:
    """Pod name -> node, for pods that have one."""
    pods = stored(system, "Pod")
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}


async def journaled(journal: Journal, kind: str, type_: Any) -> list[Any]:
    """The journal's records of a kind, decoded."""
    return [codec.decode(record.payload, type_) for record in await journal.read(kinds=[kind], limit=100_000)]


async def cycles(journal: Journal) -> list[CycleRecord]:
    """The cycles in the journal."""
    return await journaled(journal, "cycle", CycleRecord)


async def lives(journal: Journal, type_: type[Any]) -> Sequence[Any]:
    """What became of actors, as far as it is of this type."""
    return [event for event in await journaled(journal, "actor", ActorEvent) if isinstance(event, type_)]
