# SPDX-License-Identifier: Apache-2.0
"""Queues: defaults and rules of Volcano's webhooks (`webhooks/admission/queues`); single fields: its CRD."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from pumice.cluster.api.admission.amounts import amount_problems, exceeds
from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.refusals import Cause, forbidden_field, invalid_value, missing, unsupported
from pumice.core.errors import QuantityError
from pumice.core.go_numbers import parse_float
from pumice.core.objects.metadata import Object, annotations_of, section
from pumice.core.objects.queue import AMOUNTS, amount_of
from pumice.core.quantity import Quantity, quantity_of

# --- Parents and children
# Source: Volcano's queue webhook.

MOST_DEPTH: Final = 5
"""Levels below the root, as in Volcano's webhook's default."""


def tree_problems(queue: Object, lookup: Lookup, old: Object | None) -> list[Cause]:
    """Return the problems of the parent (when new or changed) and of amounts along the tree."""
    if queue["metadata"]["name"] == "root":
        return []
    spec = section(queue, "spec")
    before = section(old, "spec") if old is not None else None
    found: list[Cause] = []
    if before is None or before.get("parent") != spec.get("parent"):
        found = parent_problems(queue, lookup)
    # an update that moves nothing is not judged by what has become of its relatives
    if found:
        return found
    try:
        if before is not None and before.get("parent") == spec.get("parent") and not _changed(before, spec):
            return []
        return _limit_problems(queue, lookup)
    except QuantityError:  # named by the check of the queue itself
        return []


def _changed(before: Object, after: Object) -> list[str]:
    """Return the parts whose amounts differ; 1 and 1000m are the same (Semantic.DeepEqual)."""
    return [part for part in AMOUNTS if not _equal(amount_of(before, part), amount_of(after, part))]


def _equal(one: Object, other: Object) -> bool:
    same = one.keys() == other.keys()
    return same and all(not quantity_of(one[name]).compare(quantity_of(other[name])) for name in one)


def parent_problems(queue: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of the parent: it must exist, be another queue, not be below this one, and not be too
    deep.
    """
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
    # only leaf queues take jobs: a queue with pods cannot become a parent
    pods = section(section(above, "status"), "allocated").get("pods", "0")
    if not lookup.children(parent) and quantity_of(pods).sign() > 0:
        why = f"queue {parent} cannot be the parent queue of queue {name} because it has allocated Pods: {pods}"
        return [invalid_value("spec.parent", parent, why)]
    return []


def _ancestors(queue: Object, lookup: Lookup) -> Iterator[Object]:
    """Yield the queues from the parent up to below the root, at most as many as the greatest depth."""
    # bounded: parents in a circle must not stop the api
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
        # the stored queue of this name counts as it is to be, and not twice
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
    # a queue's own capability covers what is below it
    if own is not None and quantity_of(own).sign() > 0:
        return own
    if depth > MOST_DEPTH:
        return "0"
    below = (_subtree_capability(c, resource, lookup, depth + 1) for c in lookup.children(queue["metadata"]["name"]))
    return max(below, key=_order, default="0")


def _order(amount: object) -> int:
    return quantity_of(amount).milli_value()


def _sum_problems(parent: Object, children: Iterable[Object]) -> list[Cause]:
    """Return a problem when the children's guaranteed or deserved sum exceeds the parent's (an absent amount is 0)."""
    found: list[Cause] = []
    above = section(parent, "spec")
    for part in ("guarantee", "deserved"):
        limit = amount_of(above, part)
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
        for resource, amount in amount_of(section(child, "spec"), part).items():
            quantity = quantity_of(amount)
            totals[resource] = totals[resource].plus(quantity) if resource in totals else quantity
    return totals


def state_problems(queue: Object, what: str) -> list[Cause]:
    """Return a problem where the queue takes no Jobs and PodGroups: one whose controller has not opened it yet, too."""
    name, state = queue["metadata"]["name"], section(queue, "status").get("state") or ""
    if state == "Open":
        return []
    why = f"can only submit {what} to queue with state `Open`, queue `{name}` status is `{state}`"
    return [invalid_value("spec.queue", name, why)]


HIERARCHY: Final = "volcano.sh/hierarchy"
WEIGHTS: Final = "volcano.sh/hierarchy-weights"
PROTECTED: Final = ("default", "root")
# the schema has Closing and Unknown too, which only the controller of queues writes
_STATES: Final = ("Open", "Closed")


def initial_status(queue: Object) -> None:
    """Reset the status: a new queue is open, unless its author closes it; the scheduler writes the allocated
    amounts.
    """
    queue["status"] = {"state": section(queue, "status").get("state") or "Open"}


def default(queue: Object, _lookup: Lookup) -> None:
    """Fill in weight 1 in place of 0, reclaimable, and parent root; a hierarchy starts at the root."""
    meta, spec = queue["metadata"], queue.setdefault("spec", {})
    if not spec.get("weight"):
        spec["weight"] = 1
    spec.setdefault("reclaimable", meta["name"] != "root")
    if meta["name"] != "root" and not spec.get("parent"):
        spec["parent"] = "root"
    annotations = annotations_of(queue)
    path, weights = annotations.get(HIERARCHY), annotations.get(WEIGHTS)
    # Volcano's mutating webhook does so: hierarchies of the drf plugin begin at the root
    if path and weights and not path.startswith("root"):
        annotations[HIERARCHY], annotations[WEIGHTS] = f"root/{path}", f"1/{weights}"


def validate(queue: Object, lookup: Lookup) -> list[Cause]:
    """Return all problems of a new queue."""
    return _own_problems(queue, lookup) + tree_problems(queue, lookup, None)


def validate_update(old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed queue: root's resources are fixed; the tree is checked again when the parent or
    an amount changed. A queue that is Closing is not changed, its status excepted: the webhook's states are those of
    authors (validateStateOfQueue).
    """
    name, spec, before = new["metadata"]["name"], section(new, "spec"), section(old, "spec")
    if name == "root":
        why = "the root queue's resources cannot be modified"
        return _own_problems(new, lookup) or [forbidden_field(f"spec.{part}", why) for part in _changed(before, spec)]
    return _own_problems(new, lookup) + tree_problems(new, lookup, old)


def forbid_delete(queue: Object, lookup: Lookup) -> str | None:
    """Return why a queue cannot be deleted: it is one of the system's, or has children. A queue with pods can be
    deleted (Volcano's webhook checks these only with --enable-queue-allocated-pods-check).
    """
    name: str = queue["metadata"]["name"]
    if name in PROTECTED:
        return f"`{name}` queue can not be deleted"
    if children := [child["metadata"]["name"] for child in lookup.children(name)]:
        return f"queue {name} can not be deleted because it has {len(children)} child queues: {', '.join(children)}"
    return None


def _own_problems(queue: Object, lookup: Lookup) -> list[Cause]:
    state = section(queue, "status").get("state")
    found = [] if not state or state in _STATES else [unsupported("status.state", state, _STATES)]
    return found + _amounts(section(queue, "spec")) + _hierarchy(queue, lookup)


def _amounts(spec: Object) -> list[Cause]:
    """Return problems unless guarantee <= deserved <= capability, wherever both sides are named."""
    amounts = {part: amount_of(spec, part) for part in AMOUNTS}
    paths = {part: f"spec.{part}.{inner}" if inner else f"spec.{part}" for part, inner in AMOUNTS.items()}
    found = [problem for part, amount in amounts.items() for problem in amount_problems(amount, paths[part])]
    capability, deserved, guarantee = amounts["capability"], amounts["deserved"], amounts["guarantee"]
    for name, amount in guarantee.items():
        if name not in deserved or exceeds(amount, deserved[name]):
            why = f"deserved[{name}] must be >= guarantee[{name}]={amount}"
            found.append(invalid_value(f"spec.deserved[{name}]", deserved.get(name), why))
    for name, amount in deserved.items():
        if name in capability and exceeds(amount, capability[name]):
            why = f"deserved[{name}]={amount} must be <= capability[{name}]={capability[name]}"
            found.append(invalid_value(f"spec.deserved[{name}]", amount, why))
    return found


def _hierarchy(queue: Object, lookup: Lookup) -> list[Cause]:
    annotations = annotations_of(queue)
    path, weights = annotations.get(HIERARCHY, ""), annotations.get(WEIGHTS, "")
    if not path and not weights:
        return []
    if len(path.split("/")) != len(weights.split("/")):
        why = f"{HIERARCHY} must have the same length with {WEIGHTS}"
        return [invalid_value(f"metadata.annotations[{HIERARCHY}]", path, why)]
    for weight in weights.split("/"):
        number = parse_float(weight)
        if number is None or number <= 0:
            why = f"{weight!r} in the {weights} must be a number larger than 0"
            return [invalid_value(f"metadata.annotations[{WEIGHTS}]", weights, why)]
    for other in lookup.queues():
        theirs = annotations_of(other).get(HIERARCHY, "")
        # with the slash: `root/ab` is not below `root/a`
        if other["metadata"]["name"] != queue["metadata"]["name"] and theirs.startswith(f"{path}/"):
            why = f"{path} is not allowed to be in the sub path of {theirs} of queue {other['metadata']['name']}"
            return [invalid_value(f"metadata.annotations[{HIERARCHY}]", path, why)]
    return []
