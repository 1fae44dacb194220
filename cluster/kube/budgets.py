# SPDX-License-Identifier: Apache-2.0
"""Disruptions that a PodDisruptionBudget allows now (source: Kubernetes' disruption controller)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from pumice.cluster.kube.statuses import timestamp
from pumice.core.kube.selectors import NOTHING, LabelSelector, SelectorError, label_selector
from pumice.core.objects.metadata import (
    Object,
    controlling_owner,
    has_condition,
    labels_of,
    parse_time,
    section,
)
from pumice.core.texts import whole_number

# --- Numbers that may be given in per cent (source: Kubernetes' `intstr.GetScaledValueFromIntOrPercent`)


def scaled_value(amount: object, whole: int, *, up: bool = True) -> int:
    """Return a number as it is, a percentage of the whole rounded up or down, and 0 for all else."""
    if isinstance(amount, int):
        return amount
    per_cent = (whole_number(amount.removesuffix("%")) or 0) if isinstance(amount, str) else 0
    # in whole numbers: a division of floats could round a whole result up
    return -(-whole * per_cent // 100) if up else whole * per_cent // 100


# --- Budgets

# Kubernetes' `DeletionTimeout` (`pkg/controller/disruption/disruption.go`).
STALE_S: Final = 120.0
"""Seconds after a granted eviction from which a pod that still exists counts again."""

ALLOWED: Final = "DisruptionAllowed"


class Scale(Struct, frozen=True, gc=False):
    """The controller of a pod and its desired number of pods."""

    uid: str
    replicas: int


ScaleOf = Callable[[Object], Scale | None]
"""The scale behind a pod; None when its controller has no scale."""


def _rows(holder: Object, name: str) -> list[Object]:
    return holder.get(name) or []


def selector_of(budget: Object) -> LabelSelector:
    """Return the budget's selector. {} selects every pod of the namespace; an absent or unreadable one selects none."""
    try:
        return label_selector(section(budget, "spec").get("selector"))
    except SelectorError:
        return NOTHING


def covers(selector: LabelSelector, pod: Object) -> bool:
    """Return whether a budget's selector selects the pod."""
    return selector.matches(labels_of(pod))


def is_ready(pod: Object) -> bool:
    """Return whether the pod's condition Ready is True."""
    return has_condition(pod, "Ready")


def budget_status(budget: Object, pods: Sequence[Object], scale_of: ScaleOf, now: float) -> Object:
    """Return the status as of `now` (seconds since the epoch); `pods` are those that the budget covers."""
    old = section(budget, "status")
    disrupted = _disrupted(section(old, "disruptedPods"), pods, now)
    healthy = sum(
        "deletionTimestamp" not in pod["metadata"] and pod["metadata"]["name"] not in disrupted and is_ready(pod)
        for pod in pods
    )
    expected, desired, problem = _wanted(section(budget, "spec"), pods, scale_of)
    allowed = max(healthy - desired, 0) if expected > 0 and not problem else 0
    status: Object = {
        "observedGeneration": budget["metadata"].get("generation", 1),
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
    }
    if disrupted:
        status["disruptedPods"] = disrupted
    status["conditions"] = _conditions(_rows(old, "conditions"), allowed, problem, status["observedGeneration"], now)
    return status


def _wanted(spec: Object, pods: Sequence[Object], scale_of: ScaleOf) -> tuple[int, int, str]:
    """Return expected pods, healthy pods wanted, and why they cannot be counted ("" when they can)."""
    most, least = spec.get("maxUnavailable"), spec.get("minAvailable")
    # a whole number needs no total: so pods without a scale can be protected, too
    if most is None and isinstance(least, int):
        return len(pods), least, ""
    if most is None and least is None:
        return 0, 0, ""
    scales: dict[str, int] = {}
    for pod in pods:
        if controlling_owner(pod) is None:
            continue
        scale = scale_of(pod)
        # without a total no disruption is allowed (`failSafe` of Kubernetes' disruption controller)
        if scale is None:
            return 0, 0, f'found no controllers for pod "{pod["metadata"]["name"]}"'
        # each controller counts once, however many of its pods are covered
        scales[scale.uid] = scale.replicas
    expected = sum(scales.values())
    if most is not None:
        return expected, max(expected - scaled_value(most, expected), 0), ""
    return expected, scaled_value(least, expected), ""


def _disrupted(noted: Object, pods: Sequence[Object], now: float) -> dict[str, str]:
    """Return the granted evictions whose pod is still leaving."""
    here = {pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}
    return {name: at for name, at in noted.items() if name in here and _seconds(at) + STALE_S >= now}


def _seconds(text: str) -> float:
    try:
        return parse_time(text)
    except ValueError:
        return 0.0  # another client wrote it; an unreadable time is long past


def _conditions(old: Sequence[Object], allowed: int, problem: str, generation: int, now: float) -> list[Object]:
    reason = "SyncFailed" if problem else "SufficientPods" if allowed else "InsufficientPods"
    condition: Object = {
        "type": ALLOWED,
        "status": "True" if allowed else "False",
        "reason": reason,
        "message": problem,
        "observedGeneration": generation,
        "lastTransitionTime": timestamp(now),
    }
    before = next((each for each in old if each.get("type") == ALLOWED), None)
    if before is not None and before.get("status") == condition["status"]:
        condition["lastTransitionTime"] = before.get("lastTransitionTime", condition["lastTransitionTime"])
    return [condition, *(each for each in old if each.get("type") != ALLOWED)]
