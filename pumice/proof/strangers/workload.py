# SPDX-License-Identifier: Apache-2.0
"""The storm of a seed for strangers: nodes, gangs that come, grow, shrink and go, nodes that are lost, and faults."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from pumice.config.errors import UnknownNameError
from pumice.proof.storm.script.events import Event
from pumice.proof.storm.script.workload import Size
from pumice.proof.strangers.driving import OF_OTHERS
from pumice.proof.strangers.judges.panel import subject_profile
from pumice.proof.strangers.preempting import preempting
from pumice.proof.strangers.script import FAULT, RESTART, StrangerScript

SPREAD_S: Final = 6.0
"""Everything happens within so many seconds."""
GANGS: Final = (2, 2, 3, 3, 4, 6)
SHAPES: Final = (("1", "1Gi"), ("1", "2Gi"), ("2", "1Gi"), ("2", "4Gi"), ("3", "1Gi"))
DISTURBANCES: Final = (
    "scale-up",
    "scale-up",
    "scale-down",
    "delete-pod",
    "delete-job",
    "fail-pod",
    "replace-pod",
    "replace-pod",
    "cordon",
    "remove-node",
    "shrink-node",
    "drain",
    "plain",
)
GROWING: Final = "growing"
PREEMPTING: Final = "preempting"
WORKLOADS: Final = (GROWING, PREEMPTING)
STRANGERS: Final = "[!~]*"
"""Every client except the stress command itself."""


def storm_of(
    seed: int,
    size: Size,
    judges: str,
    *,
    lockstep: bool = False,
    controllers: bool = True,
    drawn: bool = True,
    workload: str = GROWING,
) -> StrangerScript:
    """Return the storm of a seed. `controllers`: Volcano's are there, so some gangs come as Volcano Jobs. `drawn`: with
    faults. In lockstep no pod ends by itself, and moments count instead of seconds. Raises UnknownNameError for another
    `workload`.
    """
    if workload not in WORKLOADS:
        raise UnknownNameError("workload", workload, WORKLOADS, path="--workload")
    random = Random(f"strangers {seed}")
    gangs = subject_profile(judges).gangs
    events = [_node(random, number) for number in range(size.nodes)]
    if gangs:
        events += [
            Event("queue", target="wide", details={"weight": 3}),
            Event("queue", target="capped", details={"weight": 1, "capability": {"cpu": str(max(3, size.nodes))}}),
        ]
    jobs = _jobs(random, size.pods, judges, vcjobs=controllers and not lockstep, ending=not lockstep)
    events += jobs + _disturbances(random, size, jobs, gangs=gangs)
    if random.random() < 0.3:
        events.append(Event(RESTART, _moment(random)))
    replaced = any(event.what == "replace-pod" for event in events)
    rules = _faults(random, lockstep=lockstep, replaced=replaced) if drawn else []
    faults = [Event(FAULT, details=rule) for rule in rules]
    events = [*sorted(events, key=lambda event: event.at), *faults]
    if workload == PREEMPTING:
        events = preempting(Random(f"preempting {seed}"), events, STRANGERS, drawn=drawn)
    return StrangerScript(seed=seed, events=tuple(events), judges=judges, lockstep=lockstep)


def _moment(random: Random) -> float:
    return round(random.uniform(0.3, SPREAD_S), 1)


def _node(random: Random, number: int) -> Event:
    details: dict[str, Any] = {"cpu": random.choice((4, 4, 8)), "memory": random.choice(("8Gi", "16Gi"))}
    if random.random() < 0.15:
        details["pods"] = 4
    return Event("node", target=f"n{number}", details=details)


def _jobs(random: Random, pods: int, judges: str, *, vcjobs: bool, ending: bool) -> list[Event]:
    profile, events, left = subject_profile(judges), list[Event](), pods
    while left > 0:
        size = min(left, random.choice(GANGS))
        left -= size
        cpu, memory = random.choice(SHAPES)
        details: dict[str, Any] = {"pods": size, "cpu": cpu, "memory": memory}
        if ending and random.random() < 0.3:
            details["seconds"] = random.choice((1, 2, 4))
        at = 0.0 if random.random() < 0.3 else _moment(random)
        if profile.gangs:
            events.append(_gang(random, len(events), at, details, vcjobs=vcjobs))
        else:
            details["scheduler"] = profile.scheduler
            events.append(Event("pods", at, target=f"p{len(events)}", details=details))
    return events


def _gang(random: Random, number: int, at: float, details: dict[str, Any], *, vcjobs: bool) -> Event:
    size = int(details["pods"])
    if size > 2 and random.random() < 0.25:
        details["min"] = size - 1
    if random.random() < 0.3:
        details["queue"] = random.choice(("wide", "capped"))
    vcjob = random.random() < 0.25
    return Event("vcjob" if vcjob and vcjobs else "job", at, target=f"j{number}", details=details)


def _disturbances(random: Random, size: Size, jobs: list[Event], *, gangs: bool) -> list[Event]:
    events, groups = list[Event](), [job for job in jobs if job.what == "job"]
    for number in range(3 + size.pods // 8):
        what = random.choice(DISTURBANCES)
        node, at = f"n{random.randrange(max(1, size.nodes))}", _moment(random)
        job = random.choice(groups) if groups else None
        if what == "plain":
            details = {"pods": 2, "cpu": "1", "memory": "1Gi", "scheduler": OF_OTHERS}
            events.append(Event("pods", at, target=f"others{number}", details=details))
        elif what in ("cordon", "remove-node", "shrink-node", "drain"):
            events.append(Event(what, at, target=node, amount=2 if what == "drain" else 0))
            if random.random() < 0.7:
                events.append(Event("restore-node", round(at + random.uniform(0.5, 2.0), 1), target=node))
        elif job is not None and gangs:
            # Most of what happens to a gang happens while it is being placed.
            soon = round(job.at + random.choice((0.0, 0.1, 0.4, 1.2)), 1) if random.random() < 0.6 else at
            events.append(Event(what, max(soon, job.at), target=job.target, amount=random.randrange(1, 4)))
    return events


# --- Faults

_BINDING: Final[dict[str, Any]] = {"kind": "Pod", "verb": "create", "subresource": "binding"}
_STATUS: Final[dict[str, Any]] = {"kind": ["PodGroup", "Job.batch", "Pod"], "verb": ["update", "patch"]}


def _faults(random: Random, *, lockstep: bool, replaced: bool) -> list[dict[str, Any]]:
    """Return the rules of a seed: few of them, and each struck by chance."""
    known = _of_requests(random) + ([] if lockstep else _of_watches(random))
    chosen = random.sample(known, k=min(len(known), random.choice((1, 2, 2, 3, 4))))
    if replaced and random.random() < 0.5:
        # Another pod under the same name only fools a subject that still reads of the one before.
        chosen.append({"fault": "stale", "kind": "Pod", "changes": random.choice((1, 2, 3)), "probability": 0.6})
    return [{"client": STRANGERS, "probability": round(random.choice((0.1, 0.3, 0.6)), 2), **each} for each in chosen]


def _of_requests(random: Random) -> list[dict[str, Any]]:
    return [
        {"fault": "lose-answer", "answer": random.choice(("cut", "cut", 504, 500)), **_BINDING, "times": 6},
        {"fault": "refuse", "code": random.choice((409, 500, 503, 429)), **_BINDING, "times": 6},
        {"fault": "refuse", "code": 409, **_BINDING, "times": 3},
        {"fault": "lose-answer", "subresource": "*", **_STATUS, "times": 8},
        {"fault": "refuse", "code": 409, "subresource": "*", **_STATUS, "times": 8},
        {"fault": "refuse", "code": random.choice((500, 503)), "verb": ["list"], "times": 3},
        {"fault": "repeat", **_BINDING, "times": 6},
        {"fault": "lose-answer", "kind": "Pod", "verb": ["delete", "create"], "times": 3},
        {"fault": "stale", "kind": "Pod", "changes": random.choice((1, 2, 4, 8))},
        {"fault": "stale", "kind": "PodGroup", "changes": random.choice((1, 2, 4))},
        {"fault": "stale", "changes": random.choice((1, 3))},
    ]


def _of_watches(random: Random) -> list[dict[str, Any]]:
    delay = random.choice((0.3, 1.0, 2.0))
    return [
        {"fault": "delay-watch", "kind": "PodGroup", "delay_s": delay, "behind": "Pod", "probability": 1.0},
        {"fault": "delay-watch", "kind": "PodGroup", "delay_s": delay, "probability": 1.0},
        {"fault": "delay-watch", "kind": "Pod", "delay_s": delay, "probability": 1.0},
        {"fault": "delay-watch", "kind": "Node", "delay_s": delay, "probability": 1.0},
        {"fault": "cut-watch", "events": random.choice((1, 3, 6)), "within": random.random() < 0.5, "times": 3},
        {"fault": "expire", "events": random.choice((2, 5)), "times": 2},
        {"fault": "answer-late", "delay_s": delay, **_BINDING},
        {"fault": "arrive-late", "delay_s": delay, **_BINDING},
        {"fault": "restart", "down_s": 1.0, **_BINDING, "times": 1, "carried_out": random.random() < 0.5},
    ]
