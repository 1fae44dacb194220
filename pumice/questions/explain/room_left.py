# SPDX-License-Identifier: Apache-2.0
"""Resources that a job requests at admission, and the remaining amounts, in the units that people write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pumice.core.plugins.overcommit import FACTOR, Overcommit
from pumice.core.plugins.resourcequota import ResourceQuotas
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.fit import ELASTIC
from pumice.questions.adviser.reasons import WaitNumber
from pumice.units import figure

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


class Shortage(NamedTuple):
    """Amounts that a job lacked to be admitted, the owner of the limit ("queue q1", "quota q", "" for the cluster), and
    a sentence, "" where nothing fell short.
    """

    numbers: tuple[WaitNumber, ...] = ()
    limit: str = ""
    sentence: str = ""


def at_refusal(session: Session, job: Job) -> Shortage:
    """Return the amounts that were too small in the cluster, or a queue, when overcommit, proportion or capacity
    refused the job after others were admitted; empty when none refused.
    """
    refused, minimum = session.fit.admission.too_little.get(job.row), job.pod_group.min_resources
    if refused is None or minimum is None:
        return Shortage()
    left = refused.most.clone().sub_without_assert(refused.wanted.clone().sub_without_assert(minimum))
    parts = [(name, amounts(part)) for name, part in refused.parts]
    if refused.queue:
        where = "" if refused.queue == job.pod_group.queue else f" in queue {refused.queue}"
        return _shortage(f"queue {refused.queue}", amounts(minimum), amounts(left), amounts(refused.most), parts, where)
    plugin = session.plugins.get("overcommit")
    factor = plugin.factor if isinstance(plugin, Overcommit) else 1.0
    whole = session.total.clone().multi(factor)
    parts.insert(0, ("in use", amounts(whole.clone().sub_without_assert(refused.most))))
    where = f", which is all nodes together × {FACTOR.name} {factor:g}" if factor != 1 else ""
    return _shortage("", amounts(minimum), amounts(left), amounts(whole), parts, where)


def of_namespace(session: Session, job: Job) -> Shortage:
    """Return what the quotas of its namespace lack."""
    plugin = session.plugins.get("resourcequota")
    if not isinstance(plugin, ResourceQuotas):
        return Shortage()
    numbers, told = list[WaitNumber](), list[str]()
    for short in plugin.shortages(job):
        limit = f"quota {short.quota}"
        figures = [each.unscaled * 10.0**each.exponent for each in (short.asked, short.left, short.hard)]
        numbers.append(WaitNumber(short.resource, figures[0], figures[2] - figures[1], figures[2], figures[1], limit))
        told.append(
            f"asks {short.asked.canonical()} {short.resource}, {short.left.canonical()} left of "
            f"{short.hard.canonical()} in {limit}"
        )
    return Shortage(tuple(numbers), numbers[0].limit if numbers else "", "; ".join(told))


def _shortage(
    limit: str, asked: Amounts, left: Amounts, total: Amounts, parts: Sequence[tuple[str, Amounts]], where: str
) -> Shortage:
    """Return each resource that falls short. `parts`: of what the difference between the two numbers consists."""
    numbers = tuple(
        WaitNumber.of(name, value, left.get(name, 0.0), total.get(name, 0.0), limit or "all nodes")
        for name, value in asked.items()
        if value > left.get(name, 0.0) + MIN_RESOURCE and value > 0
    )
    told = "; ".join(
        f"asks {each.words(each.asked)}, {each.words(each.left, bare=True)} left of "
        f"{each.words(each.allowed, bare=True)}{_taken(each.resource, parts)}"
        for each in numbers
    )
    return Shortage(numbers, limit, told and told + where)


def _taken(name: str, parts: Sequence[tuple[str, Amounts]]) -> str:
    """Return ": 80 allocated + 12 admitted but not placed", without zero parts; "" where the first is all, since the
    numbers show it already.
    """
    there = [(part, name, listed) for part, listed in parts if abs(listed.get(name, 0.0)) >= MIN_RESOURCE]
    told = [f"{'- ' if part == ELASTIC else '+ '}{_number(name, listed)} {part}" for part, name, listed in there]
    plain = [part for part, _, _ in there] in ([], [parts[0][0]]) if parts else True
    return "" if plain else f": {' '.join(told).removeprefix('+ ')}"


def _number(name: str, listed: Amounts) -> str:
    return figure(name, listed.get(name, 0.0))
