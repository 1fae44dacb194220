"""Queues: defaults and rules of Volcano's CRD and webhooks (`webhooks/admission/queues`)."""

from __future__ import annotations

from typing import Any, Final

from pumice.cluster.api.admission.amounts import amount_problems, exceeds
from pumice.cluster.api.admission.queue_tree import tree_problems
from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.fields import annotations_of, section
from pumice.cluster.api.refusals import Cause, forbidden_field, invalid_value, unsupported
from pumice.core.objects.metadata import Object

HIERARCHY: Final = "volcano.sh/hierarchy"
WEIGHTS: Final = "volcano.sh/hierarchy-weights"
PROTECTED: Final = ("default", "root")
_STATES: Final = ("Open", "Closed")


def initial_status(queue: Object) -> None:
    """A new queue is open, unless its author closes it; what it has allocated is for the scheduler to say."""
    queue["status"] = {"state": section(queue, "status").get("state") or "Open"}


def default(queue: Object, lookup: Lookup) -> None:
    """Weight 1, reclaimable, dequeue strategy traverse, parent root; a hierarchy starts at the root."""
    del lookup
    meta, spec = queue["metadata"], queue.setdefault("spec", {})
    if not spec.get("weight"):
        spec["weight"] = 1
    spec.setdefault("reclaimable", meta["name"] != "root")
    spec.setdefault("dequeueStrategy", "traverse")
    if meta["name"] != "root" and not spec.get("parent"):
        spec["parent"] = "root"
    annotations = annotations_of(queue)
    path, weights = annotations.get(HIERARCHY), annotations.get(WEIGHTS)
    if path and weights and not path.startswith("root"):
        annotations[HIERARCHY], annotations[WEIGHTS] = f"root/{path}", f"1/{weights}"


def validate(queue: Object, lookup: Lookup) -> list[Cause]:
    """Everything about a new queue."""
    state = section(queue, "status").get("state")
    found = [] if state in _STATES else [unsupported("status.state", state, _STATES)]
    return found + _own_problems(queue, lookup) + tree_problems(queue, lookup, None)


def validate_update(old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Root's resources are fixed; the tree is looked at again when the parent or an amount changed."""
    name, spec, before = new["metadata"]["name"], section(new, "spec"), section(old, "spec")
    if name == "root":
        changed = [part for part in ("capability", "deserved", "guarantee") if spec.get(part) != before.get(part)]
        return [forbidden_field(f"spec.{part}", "the root queue's resources cannot be modified") for part in changed]
    return _own_problems(new, lookup) + tree_problems(new, lookup, old)


def forbid_delete(queue: Object, lookup: Lookup) -> str | None:
    """The system's queues stay, and so does one with children. One with pods in it goes (Volcano's webhook looks at
    these only with --enable-queue-allocated-pods-check).
    """
    name: str = queue["metadata"]["name"]
    if name in PROTECTED:
        return f"`{name}` queue can not be deleted"
    if children := [child["metadata"]["name"] for child in lookup.children(name)]:
        return f"queue {name} can not be deleted because it has {len(children)} child queues: {', '.join(children)}"
    return None


def _own_problems(queue: Object, lookup: Lookup) -> list[Cause]:
    spec = section(queue, "spec")
    found: list[Cause] = []
    if not 1 <= (weight := spec.get("weight") or 1) <= 65535:
        found.append(invalid_value("spec.weight", weight, "must be between 1 and 65535"))
    if (priority := spec.get("priority") or 0) < 0:
        found.append(invalid_value("spec.priority", priority, "must be greater than or equal to 0"))
    if (strategy := spec.get("dequeueStrategy") or "traverse") not in ("fifo", "traverse"):
        found.append(unsupported("spec.dequeueStrategy", strategy, ("fifo", "traverse")))
    return found + _amounts(spec) + _hierarchy(queue, lookup)


def _amounts(spec: dict[str, Any]) -> list[Cause]:
    """guarantee <= deserved <= capability, wherever both sides are named."""
    capability, deserved, guarantee = _limits(spec)
    found = amount_problems(capability, "spec.capability")
    found += amount_problems(deserved, "spec.deserved")
    found += amount_problems(guarantee, "spec.guarantee.resource")
    for name, amount in guarantee.items():
        if name not in deserved or exceeds(amount, deserved[name]):
            why = f"deserved[{name}] must be >= guarantee[{name}]={amount}"
            found.append(invalid_value(f"spec.deserved[{name}]", deserved.get(name), why))
    for name, amount in deserved.items():
        if name in capability and exceeds(amount, capability[name]):
            why = f"deserved[{name}]={amount} must be <= capability[{name}]={capability[name]}"
            found.append(invalid_value(f"spec.deserved[{name}]", amount, why))
    return found


def _limits(spec: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Capability, deserved, guarantee."""
    return section(spec, "capability"), section(spec, "deserved"), section(section(spec, "guarantee"), "resource")


def _hierarchy(queue: Object, lookup: Lookup) -> list[Cause]:
    annotations = annotations_of(queue)
    path, weights = annotations.get(HIERARCHY, ""), annotations.get(WEIGHTS, "")
    if not path and not weights:
        return []
    if len(path.split("/")) != len(weights.split("/")):
        why = f"{HIERARCHY} must have the same length with {WEIGHTS}"
        return [invalid_value(f"metadata.annotations[{HIERARCHY}]", path, why)]
    for weight in weights.split("/"):
        if _weight(weight) <= 0:
            why = f"{weight!r} in the {weights} must be a number larger than 0"
            return [invalid_value(f"metadata.annotations[{WEIGHTS}]", weights, why)]
    for other in lookup.queues():
        theirs = annotations_of(other).get(HIERARCHY, "")
        if other["metadata"]["name"] != queue["metadata"]["name"] and theirs.startswith(f"{path}/"):
            why = f"{path} is not allowed to be in the sub path of {theirs} of queue {other['metadata']['name']}"
            return [invalid_value(f"metadata.annotations[{HIERARCHY}]", path, why)]
    return []


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
