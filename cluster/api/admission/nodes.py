# SPDX-License-Identifier: Apache-2.0
"""Nodes: allocatable from capacity, amounts, taints."""

from __future__ import annotations

from pumice.cluster.api.admission.amounts import amount_problems, settle_amounts
from pumice.cluster.api.admission.pod_spec import EFFECTS
from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.names import label_value_problem, qualified_name_problem
from pumice.cluster.api.refusals import Cause, duplicate, invalid_value, unsupported
from pumice.core.objects.metadata import Object, annotations_of, rows, section
from pumice.core.objects.node_devices import ANNOTATION, read_devices


def default(node: Object, _lookup: Lookup) -> None:
    """Write amounts as texts; all of the capacity is allocatable by default."""
    status: Object = node.setdefault("status", {})
    for part in ("capacity", "allocatable"):
        if status.get(part):
            settle_amounts(status[part])
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def validate(node: Object, _lookup: Lookup) -> list[Cause]:
    """Return the problems of amounts and taints."""
    status = section(node, "status")
    found: list[Cause] = []
    for part in ("capacity", "allocatable"):
        found += amount_problems(section(status, part), f"status.{part}")
    found += _taint_problems(rows(section(node, "spec"), "taints"))
    problem = _devices_problem(node)
    return found if problem is None else [*found, problem]


def _taint_problems(taints: list[Object]) -> list[Cause]:
    """Return the problems of taints: a key is a label's, and stands once with an effect."""
    found: list[Cause] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        path, key, effect = f"spec.taints[{index}]", taint["key"], taint["effect"]
        if problem := qualified_name_problem(key):
            found.append(invalid_value(f"{path}.key", key, problem))
        if problem := label_value_problem(taint.get("value") or ""):
            found.append(invalid_value(f"{path}.value", taint["value"], problem))
        if effect not in EFFECTS:
            found.append(unsupported(f"{path}.effect", effect, EFFECTS))
        if (key, effect) in seen:
            found.append(duplicate(path, f"{key}:{effect}", "taints must be unique by key and effect pair"))
        seen.add((key, effect))
    return found


def _devices_problem(node: Object) -> Cause | None:
    """Return the problem of the devices that the node agents are to report, or None."""
    text = annotations_of(node).get(ANNOTATION)
    try:
        if text is not None:
            read_devices(text)
    except ValueError as error:
        return invalid_value(f"metadata.annotations[{ANNOTATION}]", text, str(error))
    return None


def validate_update(_old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed node; the rules are those of a new one."""
    return validate(new, lookup)
