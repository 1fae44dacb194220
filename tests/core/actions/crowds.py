"""Full clusters with somebody at the door: random ones for properties, and the actions run on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

import msgspec
from hypothesis import strategies as st

from pumice.core.cycle import run_action
from tests.core.plugins.world import configuration, open_world
from tests.kit import gang, node, pod, priority_class, queue

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.config.schema import SchedulerConfig
    from pumice.core.objects.metadata import Object
    from pumice.core.session.session import Session

TIERS = (["priority", "gang", "conformance"], ["drf", "predicates", "nodeorder"])
PREEMPTABLE = {"volcano.sh/preemptable": "true"}
CLASSES = {"low": 10, "mid": 100, "high": 1000}
CREATED = "2026-01-01T0{}:00:00Z"


def with_arguments(config: SchedulerConfig, action: str, **arguments: Any) -> SchedulerConfig:
    """The configuration with arguments for an action."""
    return msgspec.structs.replace(config, configurations={**config.configurations, action: arguments})


def classes() -> list[Object]:
    """Three priority classes."""
    return [priority_class(name, value) for name, value in CLASSES.items()]


def running(name: str, nodes: Sequence[str], *, group: str = "low", least: int = 1, **each: Any) -> list[Object]:
    """A running job whose pods may be evicted down to `least`."""
    each = {"annotations": PREEMPTABLE, "priority": CLASSES[group], "priority_class": group, **each}
    return gang(name, pods=len(nodes), min_member=least, nodes=nodes, phase="Running", **each)


def waiting(name: str, pods: int, *, group: str = "high", **each: Any) -> list[Object]:
    """An admitted job that waits."""
    each = {"priority": CLASSES[group], "priority_class": group, **each}
    return gang(name, pods=pods, phase="Inqueue", **each)


def evictions(session: Session) -> list[str]:
    """Names of the evicted pods, in the order of eviction."""
    return [evict.name for evict in session.evicts]


def after(action: str, config: SchedulerConfig, *parts: Object | list[Object]) -> Session:
    """The session in which the action has run."""
    session = open_world(config, *parts)
    run_action(session, action)
    return session


@st.composite
def crowds(draw: st.DrawFn, queues: Iterable[str] = ("q",)) -> list[Object]:
    """A few nodes, running jobs of all kinds on them, and jobs that wait."""
    names = [f"n{i}" for i in range(draw(st.integers(1, 5)))]
    named = list(queues)
    objects: list[Object] = [node(name, cpu=draw(st.sampled_from(["4", "8"])), memory="16Gi") for name in names]
    objects += [queue(name) for name in named] + classes()
    for i in range(draw(st.integers(1, 6))):
        where = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4))
        objects += running(
            f"r{i}",
            where,
            group=draw(st.sampled_from(["low", "mid"])),
            least=draw(st.integers(0, len(where))),
            queue=draw(st.sampled_from(named)),
            cpu=draw(st.sampled_from(["500m", "1", "2"])),
            memory=draw(st.sampled_from(["1Gi", "3Gi"])),
            created=CREATED.format(draw(st.integers(0, 3))),
        )
    for i in range(draw(st.integers(1, 3))):
        objects += waiting(
            f"w{i}",
            draw(st.integers(1, 3)),
            group=draw(st.sampled_from(["mid", "high"])),
            queue=draw(st.sampled_from(named)),
            cpu=draw(st.sampled_from(["1", "2", "3"])),
            created=CREATED.format(4),
        )
    return objects if draw(st.integers(0, 3)) == 0 else [*map(told_apart, objects)]


def told_apart(obj: Object) -> Object:
    """With a uid as an API server gives it: its first bytes tell it from others, which the order by columns needs."""
    obj["metadata"]["uid"] = str(uuid5(NAMESPACE_URL, obj["metadata"]["uid"]))
    return obj


def spare(name: str, where: str) -> Object:
    """A pod of no job, for what nobody may evict."""
    return pod(name, node=where, cpu="1")


PLAIN = configuration(*TIERS)
