"""What a job asks for when it wants to be admitted, and what is left of it: in the units people write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from core.plugins.overcommit import DEFAULT_FACTOR, FACTOR_KEY
from core.plugins.resourcequota import ResourceQuotas
from core.session.demand import admitted, outstanding, over_all, without_gated
from pumice.units import amount

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.resources import Resource
    from core.session.session import Session
    from core.state.jobs import Job

Amounts = dict[str, float]
KEYS: Final = {"cpu": "milli_cpu", "memory": "memory_bytes"}


def amounts(resource: Resource) -> Amounts:
    """What it consists of: cpu in milli-cores, memory in bytes, scalars as the scheduler counts them."""
    return {"cpu": resource.milli_cpu, "memory": resource.memory, **(resource.scalars or {})}


def of_cluster(session: Session) -> tuple[Amounts, Amounts]:
    """What overcommit had to give when the cycle opened: left, and of how much in all."""
    arguments = [one.arguments for tier in session.config.tiers for one in tier.plugins if one.name == "overcommit"]
    factor = float(arguments[0].get(FACTOR_KEY, DEFAULT_FACTOR)) if arguments else DEFAULT_FACTOR
    total = amounts(session.total.clone().multi(factor if factor >= 1 else DEFAULT_FACTOR))
    columns, dims = session.snapshot.jobs, session.dims
    inqueue, running = admitted(columns)
    charged = without_gated(columns, dims, columns.minimum * inqueue, inqueue) + outstanding(columns, dims, running)
    taken = amounts(over_all(session, charged))
    used = amounts(dims.resource(np.add.reduce(session.nodes.used, axis=1).tolist()))
    return {name: value - taken.get(name, 0.0) - used.get(name, 0.0) for name, value in total.items()}, total


def of_queue(gauges: Mapping[str, float], resources: Mapping[str, float]) -> tuple[Amounts, Amounts]:
    """What a queue had to give, by the amounts that proportion and capacity tell of it."""

    def told(what: str, name: str) -> float:
        return float(gauges.get(f"{what}_{KEYS.get(name, f'scalar_resources:{name}')}", 0.0))

    total = {name: told("real_capacity", name) for name in resources}
    taken = {name: told("allocated", name) + told("inqueue", name) - told("elastic", name) for name in resources}
    return {name: total[name] - taken[name] for name in resources}, total


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
        if value > left.get(name, 0.0) + 0.1 and value > 0
    ]
    return "; ".join(short)


def _number(name: str, listed: Amounts) -> str:
    return amount(name, listed.get(name, 0.0)).removesuffix(f" {name}")
