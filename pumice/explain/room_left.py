"""What a job asks for when it wants to be admitted, and what is left of it: in the units people write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from core.plugins.overcommit import Overcommit
from core.plugins.resourcequota import ResourceQuotas
from core.resources import MIN_RESOURCE
from pumice.units import amount

if TYPE_CHECKING:
    from core.resources import Resource
    from core.session.session import Session
    from core.state.jobs import Job

Amounts = dict[str, float]
KEYS: Final = {"cpu": "milli_cpu", "memory": "memory_bytes"}


def amounts(resource: Resource) -> Amounts:
    """What it consists of: cpu in milli-cores, memory in bytes, scalars as the scheduler counts them."""
    return {"cpu": resource.milli_cpu, "memory": resource.memory, **(resource.scalars or {})}


def at_refusal(session: Session, job: Job) -> str:
    """What the cluster, or a queue, had too little of when overcommit, proportion or capacity refused the job, others
    admitted before it; "" when none of them did.
    """
    refused, minimum = session.fit.too_little.get(job.row), job.pod_group.min_resources
    if refused is None or minimum is None:
        return ""
    left = refused.most.clone().sub_without_assert(refused.wanted.clone().sub_without_assert(minimum))
    if refused.queue:
        told = sentence(amounts(minimum), amounts(left), amounts(refused.most))
        return told and told + ("" if refused.queue == job.pod_group.queue else f" in queue {refused.queue}")
    plugin = session.plugins.get("overcommit")
    factor = plugin.factor if isinstance(plugin, Overcommit) else 1.0
    return sentence(amounts(minimum), amounts(left), amounts(session.total.clone().multi(factor)))


def of_namespace(session: Session, job: Job) -> str:
    """What the quotas of its namespace have too little of, as `sentence` says it, and which quota it is."""
    plugin = session.plugins.get("resourcequota")
    if not isinstance(plugin, ResourceQuotas):
        return ""
    return "; ".join(
        f"asks {short.asked.canonical()} {short.resource}, {short.left.canonical()} left of {short.hard.canonical()}"
        f" in quota {short.quota}"
        for short in plugin.shortages(job)
    )


def sentence(asked: Amounts, left: Amounts, total: Amounts) -> str:
    """ "asks 54 cpu, 24 left of 60", for each resource of which there is too little; "" if there was enough."""
    short = [
        f"asks {amount(name, value)}, {_number(name, left)} left of {_number(name, total)}"
        for name, value in asked.items()
        if value > left.get(name, 0.0) + MIN_RESOURCE and value > 0
    ]
    return "; ".join(short)


def _number(name: str, listed: Amounts) -> str:
    return amount(name, listed.get(name, 0.0)).removesuffix(f" {name}")
