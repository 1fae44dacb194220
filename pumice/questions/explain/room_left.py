"""Resources that a job asks for at admission, and the rest that is left: in the units people write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.core.plugins.overcommit import FACTOR, Overcommit
from pumice.core.plugins.resourcequota import ResourceQuotas
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.fit import ELASTIC
from pumice.units import amount, figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.resources import Resource
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

Amounts = dict[str, float]
KEYS: Final = {"cpu": "milli_cpu", "memory": "memory_bytes"}


def amounts(resource: Resource) -> Amounts:
    """Return the amounts of a resource: cpu in milli-cores, memory in bytes, scalars as the scheduler counts them."""
    return {"cpu": resource.milli_cpu, "memory": resource.memory, **(resource.scalars or {})}


def at_refusal(session: Session, job: Job) -> str:
    """Return what the cluster, or a queue, had too little of when overcommit, proportion or capacity refused the job,
    others admitted before it; "" when none of them did.
    """
    refused, minimum = session.fit.too_little.get(job.row), job.pod_group.min_resources
    if refused is None or minimum is None:
        return ""
    left = refused.most.clone().sub_without_assert(refused.wanted.clone().sub_without_assert(minimum))
    parts = [(name, amounts(part)) for name, part in refused.parts]
    if refused.queue:
        told = sentence(amounts(minimum), amounts(left), amounts(refused.most), parts)
        return told and told + ("" if refused.queue == job.pod_group.queue else f" in queue {refused.queue}")
    plugin = session.plugins.get("overcommit")
    factor = plugin.factor if isinstance(plugin, Overcommit) else 1.0
    whole = session.total.clone().multi(factor)
    parts.insert(0, ("in use", amounts(whole.clone().sub_without_assert(refused.most))))
    told = sentence(amounts(minimum), amounts(left), amounts(whole), parts)
    return told and told + (f", which is all nodes together × {FACTOR.name} {factor:g}" if factor != 1 else "")


def of_namespace(session: Session, job: Job) -> str:
    """Return the resources that the quotas of its namespace lack, as `sentence` says it, and the quota."""
    plugin = session.plugins.get("resourcequota")
    if not isinstance(plugin, ResourceQuotas):
        return ""
    return "; ".join(
        f"asks {short.asked.canonical()} {short.resource}, {short.left.canonical()} left of {short.hard.canonical()}"
        f" in quota {short.quota}"
        for short in plugin.shortages(job)
    )


def sentence(asked: Amounts, left: Amounts, total: Amounts, parts: Sequence[tuple[str, Amounts]] = ()) -> str:
    """ "asks 54 cpu, 24 left of 60", for each resource that falls short; "" if there was enough. `parts`:
    of what the difference between the two numbers consists.
    """
    short = [
        f"asks {amount(name, value)}, {_number(name, left)} left of {_number(name, total)}{_taken(name, parts)}"
        for name, value in asked.items()
        if value > left.get(name, 0.0) + MIN_RESOURCE and value > 0
    ]
    return "; ".join(short)


def _taken(name: str, parts: Sequence[tuple[str, Amounts]]) -> str:
    """ ": 80 allocated + 12 admitted but not placed", without parts that are nothing; "" where the first is all: then
    the numbers speak for themselves.
    """
    there = [(part, name, listed) for part, listed in parts if abs(listed.get(name, 0.0)) >= MIN_RESOURCE]
    told = [f"{'- ' if part == ELASTIC else '+ '}{_number(name, listed)} {part}" for part, name, listed in there]
    plain = [part for part, _, _ in there] in ([], [parts[0][0]]) if parts else True
    return "" if plain else f": {' '.join(told).removeprefix('+ ')}"


def _number(name: str, listed: Amounts) -> str:
    return figure(name, listed.get(name, 0.0))
