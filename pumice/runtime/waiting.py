# SPDX-License-Identifier: Apache-2.0
"""The end of a run: when it comes, and which pods are left pending, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

import anyio

from pumice.actors.system.system import System
from pumice.cluster.controllers.unserved import SCHEDULER, SERVED, other_scheduler
from pumice.config.durations import parse_duration
from pumice.core.objects.metadata import Object, key_of, section
from pumice.core.objects.pod import GROUP_NAME

# --- The end of a run


@dataclass(frozen=True, slots=True)
class Until:
    """The end condition. `amount`: seconds or cycles."""

    kind: Literal["forever", "idle", "seconds", "cycles"]
    amount: float = 0.0


def parse_until(text: str | None) -> Until:
    """Read `idle`, `30s`, `1h30m`, `cycles=5`, or None for ever. ValueError for another text (settings check the form
    before).
    """
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
    """Wait for the cycle of that number. An idle system would never reach it, so it is made to run its cycles."""
    async with anyio.create_task_group() as tasks:
        # Beside the wait below: cycles that come by themselves count, and only an idle system is pushed.
        async def push() -> None:
            await system.until_idle()
            while await system.cycles() < last:
                await system.run_cycle()
                await system.until_idle()

        tasks.start_soon(push)
        await system.until_cycles(last)
        tasks.cancel_scope.cancel()


UNKNOWN: Final = "no reason was written"
UNGROUPED: Final = "it names no PodGroup, and no controller made one"


@dataclass(slots=True)
class LeftWaiting:
    """Pods and groups that are left waiting. `why`: reason by "ns/pod", and by "PodGroup ns/name" of groups that wait
    without any pod; `strangers`: how many pods wait for each scheduler that does not run here.
    """

    why: dict[str, str] = field(default_factory=dict[str, str])
    strangers: Counter[str] = field(default_factory=Counter[str])


async def left_waiting(
    each: Callable[[str], Awaitable[Iterable[Object]]], served: Collection[str] = SERVED
) -> LeftWaiting:
    """Return the waiting pods, in name order, then groups without pods, from a look at every object. `served`: the
    schedulers that run here.
    """
    found, peopled = LeftWaiting(), set[str]()
    groups = {_key(group): group for group in await each("PodGroup")}
    said = dict(_remarks(await each("Event")))
    waiting = list[Object]()
    for pod in await each("Pod"):
        # Of pods that run as well: only a group without any pod is told of by its own name.
        peopled.add(_group_of(pod))
        if not section(pod, "spec").get("nodeName") and section(pod, "status").get("phase", "Pending") == "Pending":
            waiting.append(pod)
    for pod in sorted(waiting, key=_key):
        group = _group_of(pod)
        if scheduler := other_scheduler(pod, served):
            found.strangers[scheduler] += 1
            continue
        found.why[_key(pod)] = _condition(pod, "PodScheduled", "False") or _of_group(group, groups, said)
        if found.why[_key(pod)] == UNKNOWN and section(pod, "spec").get("schedulerName") == SCHEDULER:
            found.why[_key(pod)] = UNKNOWN if group in groups else UNGROUPED
    for name in sorted(groups.keys() - peopled):
        if section(groups[name], "status").get("phase") in (None, "", "Pending", "Inqueue"):
            found.why[f"PodGroup {name}"] = _of_group(name, groups, said)
    return found


def _group_of(pod: Object) -> str:
    meta = pod["metadata"]
    return key_of(meta.get("namespace") or "", section(meta, "annotations").get(GROUP_NAME) or "")


def _of_group(name: str, groups: dict[str, Object], said: dict[str, str]) -> str:
    group = groups.get(name)
    if group is None:
        return UNKNOWN
    return said.get(name) or _condition(group, "Unschedulable", "True") or UNKNOWN


def _remarks(events: Iterable[Object]) -> Iterable[tuple[str, str]]:
    """Yield the scheduler's remarks about PodGroups; the last one of each counts."""
    for event in sorted(events, key=lambda event: str(event.get("lastTimestamp") or "")):
        about = section(event, "involvedObject")
        if about.get("kind") == "PodGroup" and event.get("reason") == "Unschedulable":
            yield key_of(about.get("namespace") or "", about.get("name") or ""), str(event.get("message") or "")


def _condition(obj: Object, kind: str, status: str) -> str:
    for condition in section(obj, "status").get("conditions") or ():
        if condition.get("type") == kind and condition.get("status") == status:
            return str(condition.get("message") or condition.get("reason") or "")
    return ""


def _key(obj: Object) -> str:
    return key_of(obj["metadata"].get("namespace") or "", obj["metadata"]["name"])
