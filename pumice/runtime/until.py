"""When a run ends: never by itself, when idle, after so many seconds, after so many cycles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import anyio

from pumice.actors.system.system import System
from pumice.config.durations import parse_duration


@dataclass(frozen=True, slots=True)
class Until:
    """`amount`: seconds or cycles."""

    kind: Literal["forever", "idle", "seconds", "cycles"]
    amount: float = 0.0


def parse_until(text: str | None) -> Until:
    """`idle`, `30s`, `cycles=5`, or None for ever. ValueError for anything else (settings check the form before)."""
    if text is None:
        return Until("forever")
    if text == "idle":
        return Until("idle")
    if text.startswith("cycles="):
        return Until("cycles", int(text.removeprefix("cycles=")))
    return Until("seconds", parse_duration(text))


async def reached(until: Until, system: System) -> None:
    """Return when the run is to end."""
    match until.kind:
        case "forever":
            await anyio.sleep_forever()
        case "idle":
            await system.until_idle()
        case "seconds":
            await anyio.sleep(until.amount)
        case "cycles":
            await _cycles(system, system.recovered.cycle + int(until.amount))


async def _cycles(system: System, last: int) -> None:
    """Wait for the cycle of that number. An idle system would never come to it, so it is made to run its cycles."""
    async with anyio.create_task_group() as tasks:

        async def push() -> None:
            await system.until_idle()
            while await system.cycles() < last:
                await system.run_cycle()
                await system.until_idle()

        tasks.start_soon(push)
        await system.until_cycles(last)
        tasks.cancel_scope.cancel()
