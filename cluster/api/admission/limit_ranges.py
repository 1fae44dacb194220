# SPDX-License-Identifier: Apache-2.0
"""LimitRanges: their own defaults and rules, and their requirements on pods and claims (source: Kubernetes'
LimitRanger).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from pumice.cluster.api.admission.amounts import amount_problems, exceeds, settle_amounts
from pumice.cluster.api.admission.pod_spec import default_pod_spec, pod_spec_problems
from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.refusals import Cause, duplicate, forbidden_field, invalid_value, unsupported
from pumice.cluster.kube.quota_usage import qos_class
from pumice.core.errors import QuantityError
from pumice.core.objects.metadata import Object, containers_of, rows, section
from pumice.core.quantity import Quantity, quantity_of
from pumice.storage.codec import repack, unpack

# --- Pod specs, settled once for all pods of a template
# Pods of a job have the same spec, to the byte. Nothing but the spec decides what comes out, and all of it is looked
# up by, so what is kept is never out of date. The pods share the settled spec as it is: who writes into the spec of a
# pod takes a copy first.

_KEPT: Final = 64


def settled(spec: Object) -> tuple[Object, str]:
    """Return a spec with its defaults, which must not be changed, and its QoS class with them."""
    return _settled(repack(spec))


def own_copy(spec: Object) -> Object:
    """Return a copy of the spec that may be changed."""
    copy: Object = unpack(repack(spec))
    return copy


def problems(spec: Object) -> list[Cause]:
    """Return all problems of the spec of a pod."""
    return list(_problems(repack(spec)))


@lru_cache(maxsize=_KEPT)
def _settled(blob: bytes) -> tuple[Object, str]:
    spec: Object = unpack(blob)
    default_pod_spec(spec)
    return spec, qos_class(spec)


@lru_cache(maxsize=_KEPT)
def _problems(blob: bytes) -> tuple[Cause, ...]:
    return tuple(pod_spec_problems(unpack(blob), "spec"))


KIND: Final = "LimitRange"
NOTE: Final = "kubernetes.io/limit-ranger"
_TYPES: Final = ("Container", "PersistentVolumeClaim", "Pod")
_PARTS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_DEFAULTS: Final = ("default", "defaultRequest")

Amounts = Object


# --- LimitRanges themselves


def default(limit_range: Object, _lookup: Lookup) -> None:
    """Fill in defaults for containers: the default limit from the maximum, the default request from it, or from the
    minimum.
    """
    for item in rows(section(limit_range, "spec"), "limits"):
        for part in _PARTS:
            settle_amounts(section(item, part))
        if item.get("type") == "Container":
            item["default"] = {**section(item, "max"), **section(item, "default")}
            # as in Kubernetes' defaults, a request falls back to the limit, then to the minimum
            from_limits = {**section(item, "min"), **item["default"]}
            item["defaultRequest"] = {**from_limits, **section(item, "defaultRequest")}


def validate(limit_range: Object, _lookup: Lookup) -> list[Cause]:
    """Return the problems of a new LimitRange: known types, each once; minimum, default request, default and maximum in
    order.
    """
    found: list[Cause] = []
    seen: set[str] = set()
    for index, item in enumerate(rows(section(limit_range, "spec"), "limits")):
        path, sort = f"spec.limits[{index}]", item.get("type") or ""
        if sort not in _TYPES:
            found.append(unsupported(f"{path}.type", sort, _TYPES))
        if sort in seen:
            found.append(duplicate(f"{path}.type", sort))
        seen.add(sort)
        for part in _PARTS:
            found += amount_problems(section(item, part), f"{path}.{part}")
        if sort == "Pod":
            why = "may not be specified when `type` is 'Pod'"
            found += [forbidden_field(f"{path}.{part}", why) for part in _DEFAULTS if item.get(part)]
        found += _disorder(item, path)
    return found


def validate_update(_old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed LimitRange; the rules are those of a new one."""
    default(new, lookup)
    return validate(new, lookup)


def _disorder(item: Object, path: str) -> list[Cause]:
    found: list[Cause] = []
    for low, high in (("min", "max"), ("min", "default"), ("default", "max"), ("defaultRequest", "max")):
        below, above = section(item, low), section(item, high)
        for name, amount in below.items():
            if name in above and exceeds(amount, above[name]):
                why = f"{low} value {amount} is greater than {high} value {above[name]}"
                found.append(invalid_value(f"{path}.{low}[{name}]", amount, why))
    return found


# --- Pods and claims


def fill_in(pod: Object, lookup: Lookup) -> bool:
    """Give containers the limits and requests of their namespace's ranges; an annotation lists them.

    Whether any was given.
    """
    ranges = lookup.all(KIND, pod["metadata"]["namespace"])
    if not ranges:
        return False
    # the settled spec is shared by all pods that say the same
    filled_in, pod["spec"] = False, own_copy(pod["spec"])
    for limit_range in ranges:
        limits, requests = _container_defaults(limit_range)
        notes: list[str] = []
        for group, called in (("containers", "container"), ("initContainers", "init container")):
            for container in rows(section(pod, "spec"), group):
                notes += _fill_container(container, limits, requests, called)
        if notes:
            filled_in = True
            annotations: dict[str, str] = pod["metadata"].setdefault("annotations", {})
            annotations[NOTE] = "LimitRanger plugin set: " + "; ".join(notes)
    return filled_in


def pod_problem(pod: Object, lookup: Lookup) -> str | None:
    """Return how a pod breaks the ranges of its namespace, or None."""
    items = _items(pod, lookup)
    # most namespaces have no ranges: then nothing is summed
    if not items:
        return None
    spec = section(pod, "spec")
    found: list[str] = []
    for item in items:
        if item.get("type") == "Container":
            for container in containers_of(spec):
                resources = section(container, "resources")
                found += _outside(item, section(resources, "requests"), section(resources, "limits"))
        elif item.get("type") == "Pod":
            found += _outside(item, _total(spec, "requests"), _total(spec, "limits"))
    return _together(found)


def claim_problem(claim: Object, lookup: Lookup) -> str | None:
    """Return how a claim breaks the ranges of its namespace, or None."""
    requests = section(section(section(claim, "spec"), "resources"), "requests")
    found: list[str] = []
    for item in _items(claim, lookup):
        if item.get("type") == "PersistentVolumeClaim":
            found += _too_little(item, requests, {})
            for name, most in section(item, "max").items():
                if problem := _above(item, name, most, requests, "request"):
                    found.append(problem)
    return _together(found)


def _items(obj: Object, lookup: Lookup) -> list[Object]:
    found = lookup.all(KIND, obj["metadata"]["namespace"])
    if not found:
        return []
    return [item for limit_range in found for item in rows(section(limit_range, "spec"), "limits")]


def _container_defaults(limit_range: Object) -> tuple[Amounts, Amounts]:
    limits: Amounts = {}
    requests: Amounts = {}
    for item in rows(section(limit_range, "spec"), "limits"):
        if item.get("type") == "Container":
            limits |= section(item, "default")
            requests |= section(item, "defaultRequest")
    return limits, requests


def _fill_container(container: Object, limits: Amounts, requests: Amounts, called: str) -> list[str]:
    notes: list[str] = []
    for part, what, amounts in (("requests", "request", requests), ("limits", "limit", limits)):
        given = section(section(container, "resources"), part)
        added = {name: amount for name, amount in amounts.items() if name not in given}
        if added:
            container["resources"] = {**section(container, "resources"), part: {**given, **added}}
            notes.append(f"{', '.join(sorted(added))} {what} for {called} {container.get('name') or ''}")
    return notes


def _outside(item: Object, requests: Amounts, limits: Amounts) -> list[str]:
    found = _too_little(item, requests, limits)
    for name, most in section(item, "max").items():
        problem = _above(item, name, most, limits, "limit")
        if problem is None and name in requests and exceeds(requests[name], most):
            problem = f"maximum {name} usage per {item['type']} is {most}, but request is {requests[name]}"
        found += [problem] if problem else []
    for name, ratio in section(item, "maxLimitRequestRatio").items():
        problem = _ratio_problem(
            f"{name} max limit to request ratio per {item['type']} is {ratio}", name, ratio, requests, limits
        )
        found += [problem] if problem else []
    return found


def _too_little(item: Object, requests: Amounts, limits: Amounts) -> list[str]:
    found: list[str] = []
    for name, least in section(item, "min").items():
        head = f"minimum {name} usage per {item['type']} is {least}"
        # as LimitRanger has it: a minimum demands that there is a request
        if name not in requests:
            found.append(f"{head}.  No request is specified")
        elif exceeds(least, requests[name]):
            found.append(f"{head}, but request is {requests[name]}")
        elif name in limits and exceeds(least, limits[name]):
            found.append(f"{head}, but limit is {limits[name]}")
    return found


def _above(item: Object, name: str, most: Any, amounts: Amounts, what: str) -> str | None:
    head = f"maximum {name} usage per {item['type']} is {most}"
    if name not in amounts:
        # two spaces, as in LimitRanger's message
        return f"{head}.  No {what} is specified"
    return f"{head}, but {what} is {amounts[name]}" if exceeds(amounts[name], most) else None


def _ratio_problem(head: str, name: str, ratio: object, requests: Amounts, limits: Amounts) -> str | None:
    for amounts, what in ((requests, "request"), (limits, "limit")):
        if name not in amounts or not quantity_of(amounts[name]).sign():
            return f"{head}, but no {what} is specified or {what} is 0"
    request, limit, most = (quantity_of(each).milli_value() for each in (requests[name], limits[name], ratio))
    given = limit / request
    # `most` is in thousandths, the ratio is not. Six digits, as Go's `%f` writes them.
    return f"{head}, but provided ratio is {given:f}" if given * 1000 > most else None


def _total(spec: Object, part: str) -> Amounts:
    """Return the requests of a pod: the sum of its containers and sidecars, or its largest init container."""
    running, starting = rows(spec, "containers"), rows(spec, "initContainers")
    sidecars = [each for each in starting if each.get("restartPolicy") == "Always"]
    total = _sum(section(section(each, "resources"), part) for each in [*running, *sidecars])
    for container in starting:
        for name, amount in section(section(container, "resources"), part).items():
            if (quantity := _readable(amount)) and (name not in total or quantity.compare(total[name]) > 0):
                total[name] = quantity
    return {name: quantity.canonical() for name, quantity in total.items()}


def _sum(parts: Iterable[Amounts]) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for amounts in parts:
        for name, amount in amounts.items():
            if quantity := _readable(amount):
                total[name] = total[name].plus(quantity) if name in total else quantity
    return total


def _readable(amount: object) -> Quantity | None:
    try:
        return quantity_of(amount)
    except QuantityError:
        return None


def _together(found: list[str]) -> str | None:
    return f"[{', '.join(found)}]" if len(found) > 1 else found[0] if found else None
