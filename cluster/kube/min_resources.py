# SPDX-License-Identifier: Apache-2.0
"""Minimal resources of a gang: minResources (source: Volcano's `calcPGMinResources`, Kubernetes' quota usage)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pumice.core.objects.metadata import Object, section
from pumice.core.quantity import Quantity, quantity_of

Amounts = dict[str, Quantity]
PodSpec = Object

_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_ONE: Final = quantity_of(1)


def min_resources(tasks: Iterable[Object], least: int, priorities: Mapping[str, int]) -> dict[str, str]:
    """Return the resources of the `least` pods that count first: higher priority classes first, then the order of the
    tasks.

    `priorities` are the values of priority classes by name; an unknown class counts 0.
    """
    # `sorted` is stable: tasks of equal priority keep the order of the spec
    ordered = sorted(tasks, key=lambda task: -priorities.get(_spec(task).get("priorityClassName") or "", 0))
    minimums = sum(least_of(task) for task in ordered)
    counts = _first(ordered, least) if least < minimums else _minimums_then_rest(ordered, least)
    total: Amounts = {}
    for task, count in zip(ordered, counts, strict=True):
        if count > 0:
            total = added(total, times(pod_usage(_spec(task)), count))
    return texts(total)


def pod_min_resources(spec: PodSpec, count: int) -> dict[str, str]:
    """Return the resources that `count` equal pods need."""
    return texts(times(pod_usage(spec), count)) if count > 0 else {}


def _spec(task: Object) -> PodSpec:
    return section(section(task, "template"), "spec")


def least_of(task: Object) -> int:
    """Return the least number of pods of a role; without one, all of them."""
    least: int | None = task.get("minAvailable")
    return int(task.get("replicas") or 0) if least is None else int(least)


def _first(tasks: list[Object], least: int) -> list[int]:
    counts: list[int] = []
    for task in tasks:
        counts.append(min(least, task.get("replicas", 0)))
        least -= counts[-1]
    return counts


def _minimums_then_rest(tasks: list[Object], least: int) -> list[int]:
    counts: list[int] = []
    for task in tasks:
        counts.append(min(least_of(task), least))
        least -= counts[-1]
    for index, task in enumerate(tasks):
        more = min(least, task.get("replicas", 0) - counts[index])
        counts[index] += more
        least -= more
    return counts


def pod_usage(spec: PodSpec) -> Amounts:
    """Return the usage of one pod for a quota: itself, its requests under two names, its limits."""
    requests, limits = _pod_total(spec, "requests"), _pod_total(spec, "limits")
    # Volcano takes the sum from Kubernetes' quota evaluator, so a PodGroup's minResources count pods, too.
    usage: Amounts = {"count/pods": _ONE, "pods": _ONE}
    for name in _COMPUTE:
        if name in requests:
            usage[name] = usage[f"requests.{name}"] = requests[name]
        if name in limits:
            usage[f"limits.{name}"] = limits[name]
    for name, amount in requests.items():
        # IsExtendedResourceName in pkg/apis/core/v1/helper: names of Kubernetes' own domain are not extended resources.
        extended = "/" in name and "kubernetes.io/" not in name
        if name.startswith("hugepages-") or extended:
            usage[name] = usage[f"requests.{name}"] = amount
    return usage


def _pod_total(spec: PodSpec, part: str) -> Amounts:
    """Return Kubernetes' effective requests (or limits): containers and sidecars together, or the largest init
    container.
    """
    total: Amounts = {}
    for container in spec.get("containers") or ():
        total = added(total, _amounts(container, part))
    sidecars: Amounts = {}
    largest: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = _amounts(container, part)
        if container.get("restartPolicy") == "Always":
            # A sidecar stays: each init container behind it runs beside it, and those before it do not.
            sidecars = added(sidecars, own)
            own = sidecars
        else:
            own = added(sidecars, own)
        largest = _larger(largest, own)
    total = _larger(added(total, sidecars), largest)
    overhead = {name: quantity_of(amount) for name, amount in section(dict(spec), "overhead").items()}
    if part == "limits":  # overhead makes a limit larger, it does not make one
        overhead = {name: amount for name, amount in overhead.items() if name in total}
    return added(total, overhead)


def _amounts(container: Object, part: str) -> Amounts:
    resources: Object = container.get("resources") or {}
    amounts: Object = resources.get(part) or {}
    return {name: quantity_of(amount) for name, amount in amounts.items()}


def added(left: Amounts, right: Amounts) -> Amounts:
    """Return the sum, by name."""
    total = dict(left)
    for name, amount in right.items():
        total[name] = total[name].plus(amount) if name in total else amount
    return total


def _larger(left: Amounts, right: Amounts) -> Amounts:
    result = dict(left)
    for name, amount in right.items():
        if name not in result or amount.compare(result[name]) > 0:
            result[name] = amount
    return result


def times(amounts: Amounts, count: int) -> Amounts:
    """Return the amounts times `count`."""
    if count == 1:
        return amounts
    return {
        name: Quantity(amount.unscaled * count, amount.exponent, amount.format, amount.wide)
        for name, amount in amounts.items()
    }


def texts(amounts: Amounts) -> dict[str, str]:
    """Return canonical texts, by name."""
    return {name: amounts[name].canonical() for name in sorted(amounts)}
