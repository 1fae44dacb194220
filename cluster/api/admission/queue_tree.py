"""A queue among its relatives: parents that exist, limits that a child keeps to (source: Volcano's queue webhook)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from pumice.cluster.api.admission.amounts import exceeds
from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.fields import section
from pumice.cluster.api.refusals import Cause, invalid_value, missing
from pumice.core.errors import QuantityError
from pumice.core.objects.metadata import Object
from pumice.core.quantity import Quantity, quantity_of

MOST_DEPTH: Final = 5
"""Levels below the root, as in Volcano's webhook's default."""

_LIMITS: Final = ("capability", "deserved", "guarantee")


def tree_problems(queue: Object, lookup: Lookup, old: Object | None) -> list[Cause]:
    """Problems with the parent (when new or changed) and with amounts along the tree."""
    if queue["metadata"]["name"] == "root":
        return []
    spec = section(queue, "spec")
    before = section(old, "spec") if old is not None else None
    found: list[Cause] = []
    if before is None or before.get("parent") != spec.get("parent"):
        found = parent_problems(queue, lookup)
    if found or (before is not None and all(before.get(part) == spec.get(part) for part in ("parent", *_LIMITS))):
        return found
    try:
        return _limit_problems(queue, lookup)
    except QuantityError:  # named by the check of the queue itself
        return []


def parent_problems(queue: Object, lookup: Lookup) -> list[Cause]:
    """Problems with where it stands: the parent is there, is another one, and not below it, nor too deep."""
    name, parent = queue["metadata"]["name"], section(queue, "spec").get("parent") or "root"
    if parent == "root":
        return []
    if parent == name:
        return [invalid_value("spec.parent", parent, f"queue {name} cannot use itself as parent")]
    above = lookup.get("Queue", "", parent)
    if above is None:
        return [missing("spec.parent", parent, f'queue "{parent}" does not exist')]
    depth = 1
    for ancestor in _ancestors(queue, lookup):
        depth += 1
        if depth > MOST_DEPTH or ancestor["metadata"]["name"] == name:
            why = f"queue {name} exceeds the maximum allowed depth of {MOST_DEPTH}"
            return [invalid_value("spec.parent", parent, why)]
    pods = section(section(above, "status"), "allocated").get("pods", "0")
    if not lookup.children(parent) and quantity_of(pods).sign() > 0:
        why = f"queue {parent} cannot be the parent queue of queue {name} because it has allocated Pods: {pods}"
        return [invalid_value("spec.parent", parent, why)]
    return []


def _ancestors(queue: Object, lookup: Lookup) -> Iterator[Object]:
    """From the parent up to below the root; ends where the tree does, or after more than the greatest depth."""
    for _ in range(MOST_DEPTH + 1):
        parent = section(queue, "spec").get("parent") or "root"
        found = None if parent == "root" else lookup.get("Queue", "", parent)
        if found is None:
            return
        yield found
        queue = found


def _limit_problems(queue: Object, lookup: Lookup) -> list[Cause]:
    name, spec = queue["metadata"]["name"], section(queue, "spec")
    found: list[Cause] = []
    for resource, amount in section(spec, "capability").items():
        limit = _nearest_capability(queue, resource, lookup)
        if limit is not None and exceeds(amount, limit):
            why = f"queue {name} capability[{resource}]={amount} exceeds its ancestor's capability={limit}"
            found.append(invalid_value(f"spec.capability[{resource}]", amount, why))
    parent = lookup.get("Queue", "", spec.get("parent") or "root")
    if parent is not None and parent["metadata"]["name"] != "root":
        family = [child for child in lookup.children(parent["metadata"]["name"]) if child["metadata"]["name"] != name]
        found += _sum_problems(parent, [*family, queue])
    if children := lookup.children(name):
        found += _smaller_than_children(queue, children, lookup) + _sum_problems(queue, children)
    return found


def _nearest_capability(queue: Object, resource: str, lookup: Lookup) -> Any:
    for ancestor in _ancestors(queue, lookup):
        limit = section(section(ancestor, "spec"), "capability").get(resource)
        if limit is not None and quantity_of(limit).sign() > 0:
            return limit
    return None


def _smaller_than_children(queue: Object, children: Iterable[Object], lookup: Lookup) -> list[Cause]:
    found: list[Cause] = []
    for resource, amount in section(section(queue, "spec"), "capability").items():
        largest = max((_subtree_capability(child, resource, lookup, 0) for child in children), key=_order)
        if exceeds(largest, amount):
            why = f"capability[{resource}]={amount} is smaller than its descendants' max capability={largest}"
            found.append(invalid_value(f"spec.capability[{resource}]", amount, why))
    return found


def _subtree_capability(queue: Object, resource: str, lookup: Lookup, depth: int) -> Any:
    own = section(section(queue, "spec"), "capability").get(resource)
    if own is not None and quantity_of(own).sign() > 0:
        return own
    if depth > MOST_DEPTH:
        return "0"
    below = (_subtree_capability(c, resource, lookup, depth + 1) for c in lookup.children(queue["metadata"]["name"]))
    return max(below, key=_order, default="0")


def _order(amount: Any) -> int:
    return quantity_of(amount).milli_value()


def _sum_problems(parent: Object, children: Iterable[Object]) -> list[Cause]:
    """What children are guaranteed, or deserve, together is no more than the parent's (an absent one is nothing)."""
    found: list[Cause] = []
    above = section(parent, "spec")
    for part in ("guarantee", "deserved"):
        limit = _part(above, part)
        for resource, total in _totals(children, part).items():
            if total.compare(quantity_of(limit.get(resource, "0"))) > 0:
                why = (
                    f"sum of children's {part} ({resource} {total.canonical()}) exceeds "
                    f"queue {parent['metadata']['name']}'s {part} limit ({limit.get(resource, '0')})"
                )
                found.append(invalid_value(f"spec.{part}", total.canonical(), why))
    return found


def _totals(children: Iterable[Object], part: str) -> dict[str, Quantity]:
    totals: dict[str, Quantity] = {}
    for child in children:
        for resource, amount in _part(section(child, "spec"), part).items():
            quantity = quantity_of(amount)
            totals[resource] = totals[resource].plus(quantity) if resource in totals else quantity
    return totals


def _part(spec: dict[str, Any], part: str) -> dict[str, Any]:
    held = section(spec, part)
    return section(held, "resource") if part == "guarantee" else held
