"""Small clusters by number: what may stand in them is drawn, and the same number gives the same cluster."""

from __future__ import annotations

import os
import random
from typing import Any

from pumice.cluster.kernel.fork import Fork
from pumice.config.schema import SchedulerConfig
from pumice.core.configuration import parse_scheduler_config
from pumice.core.messages.events import ConfigLoaded
from pumice.core.objects.metadata import Object
from tests.kit.jobs import gang, job_task, vcjob
from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.kit.queues import queue

CLUSTERS = int(os.environ.get("PUMICE_TEST_CLUSTERS", "25"))
"""200 and more on request (`nox -s answers`)."""
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
    return parse_scheduler_config(text, source="test")


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
    return _fork(cluster(number), config_text(number))


def _fork(objects: list[Object], text: str) -> Fork:
    return Fork(tuple(objects), BEGAN, parsed(text), ConfigLoaded("", text, "test"))


CONTESTED = """\
actions: "{actions}"
tiers:
- plugins: [{{name: priority}}, {{name: gang{gang}}}, {{name: conformance}}]
- plugins: [{{name: {first}}}, {{name: drf}}, {{name: predicates}}, {{name: {shares}}}, {{name: {order}}}]
configurations: [{{name: pumice, arguments: {{schedulePeriod: 130ms}}}}]
"""


def _contested_config(number: int) -> str:
    """Everybody takes from everybody: preemption and reclaiming, in either order."""
    if number % 2:
        actions = "enqueue, allocate, preempt, reclaim, backfill"
        return CONTESTED.format(actions=actions, gang="", first="overcommit", shares="proportion", order="nodeorder")
    actions, gang_too = "enqueue, allocate, backfill, reclaim, preempt", ", enablePreemptable: false"
    return CONTESTED.format(actions=actions, gang=gang_too, first="overcommit", shares="capacity", order="binpack")


def contested(number: int) -> Fork:
    """Volcano Jobs of three priorities in two queues, more than there is room for, whose tasks are restarted when one
    of their pods is evicted: controllers answer to the very news that a cycle is decided by.
    """
    chance = random.Random(number)
    objects: list[Object] = [node(f"n{place}", cpu=str(chance.choice((4, 8)))) for place in range(chance.randint(2, 4))]
    objects += [priority_class("low", 1), priority_class("high", 100)]
    objects += [queue("q1", weight=chance.randint(1, 3)), queue("q2", weight=chance.randint(1, 4))]
    for place in range(chance.randint(4, 7)):
        size, lasts = chance.randint(1, 6), f"{chance.randint(700, 3000) * 10 + 7 + place}ms"
        task = job_task(replicas=size, cpu=str(chance.randint(1, 3)), duration=lasts)
        marks = task["template"].setdefault("metadata", {}).setdefault("annotations", {})
        marks["pumice.dev/termination"] = f"{1011 + 17 * place}ms"
        job = vcjob(f"j{place}", task, queue=chance.choice(("q1", "q2")))
        job["spec"]["minAvailable"] = chance.randint(1, size)
        job["spec"]["policies"] = [{"event": "PodEvicted", "action": "RestartTask"}]
        if (name := chance.choice(("", "low", "high"))) != "":
            job["spec"]["priorityClassName"] = name
        objects.append(job)
    return _fork(objects, _contested_config(number))
