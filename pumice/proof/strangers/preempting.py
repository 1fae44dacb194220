# SPDX-License-Identifier: Apache-2.0
"""Storms in which pods are evicted for others: priorities, host ports, pods that ask for nothing, budgets, nodes that
register again, and faults of evictions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final

from pumice.proof.storm.script.events import Event
from pumice.proof.strangers.driving import OF_OTHERS
from pumice.proof.strangers.script import FAULT, JOBS

PRIORITIES: Final = {"high": 1000, "low": 10}
LEVELS: Final = ("low", "low", "high", "")
PORTS: Final = (8080, 9090)
FIRST: Final = ("node", "queue", "priority")
"""New objects that others of the same moment name."""
LAST_S: Final = 9.0
"""Faults stay in force until then: an eviction takes two cycles of a scheduler."""


def preempting(random: Random, events: Sequence[Event], strangers: str, *, drawn: bool) -> list[Event]:
    """Return the events of a storm with reasons to evict. `strangers`: the pattern for clients that faults strike;
    `drawn`: with faults of evictions.
    """
    found = [_ranked(random, event) if _has_pods(event) else event for event in events]
    found += [Event("priority", target=name, amount=amount) for name, amount in PRIORITIES.items()]
    found += _loose(random, [event for event in found if event.what in ("pods", *JOBS)])
    found += _budgets(random, [event for event in found if event.what == "job" and event.details["pods"] > 1])
    nodes = [event.target for event in found if event.what == "node"]
    if nodes and random.random() < 0.3:
        found.append(Event("replace-node", round(random.uniform(2.0, 6.0), 1), target=random.choice(nodes)))
    if drawn and random.random() < 0.4:
        fault = random.choice(("refuse", "lose-answer"))
        rule: dict[str, Any] = {"fault": fault, "client": strangers, "verb": "delete", "kind": "Pod", "times": 2}
        found.append(Event(FAULT, details={**rule, "probability": 0.5}))
    found.append(Event("priority", LAST_S, target="last", amount=1))
    return sorted(found, key=lambda event: (event.what == FAULT, event.at, event.what not in FIRST))


def _has_pods(event: Event) -> bool:
    return event.what in ("pods", *JOBS) and event.details.get("scheduler") != OF_OTHERS


def _ranked(random: Random, event: Event) -> Event:
    """Return the pods of an event with a priority, and without an end. Those of the lowest come early."""
    details = {name: value for name, value in event.details.items() if name != "seconds"}
    level = random.choice(LEVELS)
    if level:
        details["priority"] = level
    if random.random() < 0.15:
        details["port"] = random.choice(PORTS)
    at = round(event.at / 3, 1) if level == "low" else event.at
    return Event(event.what, at, target=event.target, details=details)


def _loose(random: Random, others: Sequence[Event]) -> Iterator[Event]:
    """Yield pods that ask for a host port and nothing else."""
    named = {each.details["scheduler"] for each in others if "scheduler" in each.details} - {OF_OTHERS}
    mine = {"scheduler": named.pop()} if named else {}  # all have the same
    for number in range(random.choice((0, 1, 2))):
        details = {"pods": random.choice((1, 2)), "port": random.choice(PORTS), **mine}
        yield Event("pods", round(random.uniform(0.5, 6.0), 1), target=f"loose{number}", details=details)


def _budgets(random: Random, jobs: Sequence[Event]) -> Iterator[Event]:
    for job in random.sample(jobs, min(len(jobs), random.choice((0, 1, 2)))):
        yield Event("budget", job.at, target=job.target, amount=random.randrange(1, int(job.details["pods"])))
