"""A queue's amounts out of its gauges, as people read them: cpu in cores, memory in bytes, all else in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.core.resources.amounts import MEMORY, PODS
from pumice.core.resources.names import is_counted_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

Amounts = dict[str, float]
SCALARS: Final = "scalar_resources:"
WHOLE: Final = PODS
"""What every pod takes one of, and nobody borrows."""
PLAIN: Final = {"milli_cpu": "cpu", "memory_bytes": "memory"}
UNLIMITED: Final = 2.0**62
"""From here on Volcano means no limit at all."""
LIMITS: Final = {"guarantee": "guarantee", "deserved": "deserved", "capability": "real_capacity"}
"""What of a queue is called how among its gauges."""


def told(resource: str, value: float) -> float:
    """An amount as the scheduler counts it in cores, bytes or pieces."""
    return value if _as_it_is(resource) else value / 1000


def reckoned(resource: str, value: float) -> float:
    """Back from `told`."""
    return value if _as_it_is(resource) else value * 1000


def _as_it_is(resource: str) -> bool:
    return resource == MEMORY or is_counted_whole(resource)


def gauged(gauges: Mapping[str, float], what: str) -> Amounts:
    """One of a queue's amounts; zeroes and what is not limited left out."""
    found: Amounts = {}
    for gauge, value in gauges.items():
        resource = gauge.removeprefix(f"{what}_")
        if resource == gauge or not 0 < value < UNLIMITED:
            continue
        name = PLAIN.get(resource, resource.removeprefix(SCALARS))
        found[name] = told(name, value)
    return found


def borrowed(allocated: Mapping[str, float], deserved: Mapping[str, float]) -> Amounts:
    """What is allocated beyond what is deserved, pods left out."""
    more = {name: value - deserved.get(name, 0.0) for name, value in allocated.items()}
    return {name: value for name, value in more.items() if value > 0 and name != WHOLE}


def standing_amounts(gauges: Mapping[str, float]) -> dict[str, Any]:
    """All that the gauges say: `share` is None where no plugin reckons one."""
    said = {name: gauged(gauges, gauge) for name, gauge in LIMITS.items()}
    allocated, deserved = gauged(gauges, "allocated"), said["deserved"]
    more = borrowed(allocated, deserved) if deserved else {}
    return {"share": gauges.get("share"), **said, "allocated": allocated, "borrowed": more}
