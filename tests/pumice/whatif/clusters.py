"""Small clusters by number: what may stand in them is drawn, and the same number gives the same cluster."""

from __future__ import annotations

import random
from typing import Any

from config.load import parse_scheduler_config
from config.schema import SchedulerConfig
from core.actions import ACTIONS
from core.plugins import PLUGINS
from pumice.whatif.state import Fork
from tests.kit.jobs import gang, job_task, vcjob
from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.kit.queues import queue

Object = dict[str, Any]

BEGAN = 1_700_000_000.0
ACTIONS_OF = (
    "enqueue, allocate, backfill",
    "enqueue, allocate, preempt, backfill",
    "enqueue, allocate, preempt, reclaim, backfill",
)
CONFIG = """\
actions: "{actions}"
tiers:
- plugins: [{{name: priority}}, {{name: gang, enablePreemptable: false}}, {{name: conformance}}]
- plugins: [{{name: overcommit}}, {{name: drf}}, {{name: predicates}}, {{name: proportion}}, {{name: nodeorder}}]
configurations: [{{name: pumice, arguments: {{schedulePeriod: {period}}}}}]
"""


def config_text(number: int) -> str:
    """Actions and schedule period go with the number."""
    return CONFIG.format(actions=ACTIONS_OF[number % 3], period=("130ms", "700ms")[number % 2])


def parsed(text: str) -> SchedulerConfig:
    """As the scheduler reads it."""
    return parse_scheduler_config(text, source="test", built_plugins=PLUGINS, built_actions=ACTIONS)


def priority_class(name: str, value: int) -> Object:
    """A PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def cluster(number: int) -> list[Object]:
    """Two to five nodes, queues, gangs that run and gangs that wait, Volcano Jobs and a pod of its own.

    No pod ends or stops at the very moment of a cycle: which of the two comes first then is left to rounding.
    """
    chance = random.Random(number)
    names = [f"n{place}" for place in range(chance.randint(2, 5))]
    objects: list[Object] = [node(name, cpu=str(chance.choice((4, 6, 8)))) for name in names]
    objects += [priority_class("low", 1), priority_class("high", 1000)]
    objects += [queue("q1", weight=chance.randint(1, 3)), queue("q2", weight=1)]
    for place in range(chance.randint(2, 7)):
        classes = chance.choice(("low", "high")) if number % 3 else None
        shape: dict[str, Any] = {
            "queue": chance.choice(("q1", "q2")),
            "priority_class": classes,
            "cpu": str(chance.randint(1, 3)),
        }
        size, lasts = chance.randint(1, 4), f"{chance.randint(700, 9000) * 10 + 7 + place}ms"
        if place % 4 == 3:
            task = job_task(replicas=size, cpu=shape["cpu"], duration=lasts)
            objects.append(vcjob(f"g{place}", task, queue=shape["queue"]))
        elif place < 2:
            where = [names[(place + index) % len(names)] for index in range(size)]
            objects += gang(f"g{place}", pods=size, nodes=where, phase="Running", duration=lasts, **shape)
        else:
            objects += gang(f"g{place}", pods=size, min_member=chance.randint(1, size), duration=lasts, **shape)
    alone = pod("alone", cpu="1")
    alone["metadata"]["annotations"] = {"pumice.dev/duration": "3137ms"}
    for place, obj in enumerate(objects):
        if obj["kind"] == "Pod":
            marks = {"volcano.sh/preemptable": "true", "pumice.dev/termination": f"{311 + 17 * place}ms"}
            obj["metadata"].setdefault("annotations", {}).update(marks)
    return [*objects, alone]


def fork(number: int) -> Fork:
    """The cluster of that number."""
    return Fork(tuple(cluster(number)), BEGAN, parsed(config_text(number)))
