"""Who takes part: pods of quality Guaranteed, by what their containers ask for.

Source: Kubernetes `apis/core/v1/helper/qos`, Volcano `cpu_mng.go` (guaranteedCPUs).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pumice.core.devices.family import containers, limits_of, requests_of, whole
from pumice.core.devices.numa.topology import CPU
from pumice.core.quantity import quantity_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.objects.pod_template import PodTemplate

COUNTED = (CPU, "memory")


class ContainerCpus(NamedTuple):
    """`cpus`: how many whole ones it asks for, 0 for none or a part of one."""

    name: str
    cpus: int


def is_guaranteed(template: PodTemplate) -> bool:
    """Whether all containers have limits of cpu and memory, and together ask for just these."""
    level: dict[str, Any] = {"resources": template.spec.get("resources") or {}}
    own = any(name in amounts for amounts in (limits_of(level), requests_of(level)) for name in COUNTED)
    each: list[dict[str, Any]] = [level] if own else [*containers(template), *containers(template, "initContainers")]
    requests, limits = _sums([requests_of(one) for one in each]), _sums([limits_of(one) for one in each])
    complete = all(all(_is_positive(limits_of(one), name) for name in COUNTED) for one in each)
    return bool(each) and complete and requests == limits


def _is_positive(amounts: dict[str, Any], name: str) -> bool:
    return name in amounts and quantity_of(amounts[name]).sign() > 0


def _sums(each: Sequence[dict[str, Any]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for amounts in each:
        for name in COUNTED:
            if _is_positive(amounts, name):
                found[name] = found.get(name, 0) + quantity_of(amounts[name]).milli_value()
    return found


def asked_by(template: PodTemplate) -> tuple[ContainerCpus, ...]:
    """What each container asks for."""
    found: list[ContainerCpus] = []
    for each in containers(template):
        requests = requests_of(each)
        found.append(ContainerCpus(str(each.get("name") or ""), (whole(requests, CPU) or 0) if CPU in requests else 0))
    return tuple(found)
