# SPDX-License-Identifier: Apache-2.0
"""The inputs of a storm, from a seed: nodes, queues, jobs that come and go, and changes of nodes meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

import msgspec

from pumice.core.default_scheduler.profile import NAME as DEFAULT_SCHEDULER
from pumice.core.objects.metadata import Object
from pumice.proof.storm.script.claims import LOCAL, MADE, MOST_DEVICES, MOST_SHARING
from pumice.proof.storm.script.events import Event

SHAPES: Final = (("500m", "512Mi"), ("1", "1Gi"), ("2", "2Gi"), ("1", "4Gi"), ("3", "1Gi"))
GANGS: Final = (1, 2, 3, 4, 6, 8, 12)
DISTURBANCES: Final = (
    "cordon",
    "remove-node",
    "shrink-node",
    "drain",
    "delete-pod",
    "delete-job",
    "scale-up",
    "fail-pod",
    "rush",
    "crowd",
    "loose",
    "plain",
    "budget",
    "clock-jump",
    "power-cut",
)
"""Disturbances of the cluster beside the jobs that arrive."""
SPREAD_S: Final = 6.0
"""Jobs come within so many seconds."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size: nodes, and pods in all."""

    nodes: int = 20
    pods: int = 200


def inputs(seed: int, size: Size, disturbances: dict[str, float]) -> list[Event]:
    """Return a function of its arguments. `disturbances`: how many of each kind, about."""
    random = Random(f"inputs {seed}")
    events = [_node(random, number) for number in range(size.nodes)]
    events += [
        Event("queue", target="wide", details={"weight": 3}),
        Event("queue", target="capped", details={"weight": 1, "capability": {"cpu": str(max(2, size.nodes))}}),
        Event("priority", target="high", amount=1000),
        Event("priority", target="low", amount=10),
    ]
    events += _jobs(random, size.pods)
    events += _disturbances(random, size, disturbances, events)
    return sorted(events, key=lambda event: event.at)


def _node(random: Random, number: int) -> Event:
    details: Object = {"cpu": random.choice((8, 8, 16)), "memory": random.choice(("16Gi", "32Gi"))}
    if random.random() < 0.2:
        details["gpus"] = 4
    if random.random() < 0.1:
        details["pods"] = 6
    return Event("node", target=f"n{number}", details=details)


def _jobs(random: Random, pods: int) -> list[Event]:
    events: list[Event] = []
    left = pods
    while left > 0:
        gang = min(left, random.choice(GANGS))
        left -= gang
        events.append(_job(random, len(events), gang))
    return events


def _job(random: Random, number: int, gang: int) -> Event:
    cpu, memory = random.choice(SHAPES)
    details: Object = {"pods": gang, "cpu": cpu, "memory": memory}
    details["seconds"] = random.choice((0, 3, 5, 8))
    if gang > 2 and random.random() < 0.3:
        details["min"] = gang - 1
    if random.random() < 0.4:
        details["queue"] = random.choice(("wide", "capped"))
    if random.random() < 0.3:
        details["priority"] = random.choice(("high", "low"))
    if random.random() < 0.1:
        details["gpus"] = 1
    if gang <= 4 and random.random() < 0.1:
        details["port"] = 8080
    at = 0.0 if random.random() < 0.3 else round(random.uniform(0, SPREAD_S), 3)
    what = "vcjob" if random.random() < 0.15 else "job"
    return Event(what, at, target=f"j{number}", details=details)


def _crowd(random: Random, at: float) -> list[Event]:
    """Return a job that needs one of its pods and can spare the others, as far as its budget does."""
    name = f"crowd{int(at * 1000)}"
    details = {"pods": 12, "min": 1, "cpu": "2", "memory": "1Gi", "priority": "low"}
    job = Event("job", at, target=name, details=details | {"queue": random.choice(("default", "wide"))})
    return [job, Event("budget", at, target=name, amount=random.choice((2, 6, 12)))]


def _rush(random: Random) -> Object:
    """Return a gang that may take others' room."""
    details: Object = {"pods": random.choice((2, 4)), "cpu": "3", "memory": "2Gi", "seconds": 5}
    return details | {"priority": "high", "queue": random.choice(("default", "wide"))}


def _loose(random: Random) -> Object:
    """Return pods without a group of their own; every other time they request nothing, and are left to backfill."""
    details: Object = {"pods": random.choice((1, 2, 3)), "seconds": random.choice((0, 3, 8))}
    return details | random.choice(({}, {"cpu": "1", "memory": "1Gi"}))


def _plain(random: Random) -> Object:
    """Return pods of Kubernetes' own scheduler; one time in three they may preempt."""
    details = _loose(random) | {"scheduler": DEFAULT_SCHEDULER}
    return details | random.choice(({}, {"cpu": "2", "memory": "1Gi"}, {"cpu": "3", "priority": "high"}))


def _disturbances(random: Random, size: Size, wanted: dict[str, float], inputs: list[Event]) -> list[Event]:
    jobs = [event.target for event in inputs if event.what == "job"]
    guarded = [event for event in inputs if event.what in ("job", "vcjob") and int(event.details["pods"]) > 1]
    events: list[Event] = []
    for what, number in sorted(wanted.items()):
        for _ in range(int(number) + (random.random() < number % 1)):
            at = round(random.uniform(0.2, 2 * SPREAD_S), 3)
            if what == "budget":
                events += _budget(random, guarded)
                continue
            events += _disturbance(random, what, at, f"n{random.randrange(max(1, size.nodes))}", jobs)
    return events


def _budget(random: Random, jobs: list[Event]) -> list[Event]:
    """Return a budget for a job: some of its pods may go, or none."""
    if not jobs:
        return []
    job = random.choice(jobs)
    pods = int(job.details["pods"])
    return [Event("budget", job.at, target=job.target, amount=random.randint(max(1, pods // 2), pods))]


def _disturbance(random: Random, what: str, at: float, node: str, jobs: list[str]) -> list[Event]:
    back = round(at + random.uniform(0.1, 4.0), 3)
    match what:
        case "cordon" | "remove-node" | "shrink-node":
            return [Event(what, at, target=node, amount=0.5), Event("restore-node", back, target=node)]
        case "delete-pod" | "delete-job" | "scale-up" | "fail-pod":
            return [Event(what, at, target=random.choice(jobs), amount=random.randrange(1, 4))] if jobs else []
        case "rush":
            return [Event("job", at, target=f"rush{int(at * 1000)}", details=_rush(random))]
        case "drain":
            return [Event(what, at, target=node, amount=5), Event("restore-node", round(at + 6.0, 3), target=node)]
        case "loose":
            return [Event("pods", at, target=f"loose{int(at * 1000)}", details=_loose(random))]
        case "plain":
            return [Event("pods", at, target=f"plain{int(at * 1000)}", details=_plain(random))]
        case "crowd":
            return _crowd(random, round(at / 4, 3))
        case "clock-jump":
            return [Event(what, at, amount=random.choice((3600.0, 60.0, -5.0)))]
        case "power-cut":
            return [Event(what, at)]
        case _:
            raise ValueError(f"unknown disturbance {what!r}")


def with_claims(seed: int, events: Iterable[Event], share: float) -> Iterator[Event]:
    """Yield events of a storm, where half of the nodes offer devices or storage and a share of the jobs claims some."""
    random = Random(f"claims {seed}")
    yield Event("claims")
    for event in events:
        more: Object = {}
        if event.what == "node" and random.random() < 0.5:
            more = {"devices": 4, "volumes": 3}
        elif event.what in ("job", "vcjob") and random.random() < share:
            more = _wish(random, event)
        yield msgspec.structs.replace(event, details=event.details | more) if more else event


def _wish(random: Random, job: Event) -> Object:
    """Return the claims of each pod of a job. Small jobs may share one claim, and with it a node."""
    wishes: list[Object] = [{"devices": 1}, {"devices": MOST_DEVICES}, {"storage": LOCAL}, {"storage": MADE}]
    if int(job.details["pods"]) <= MOST_SHARING:
        wishes.append({"shared": f"{job.target}-gpus"})
    return random.choice(wishes)
