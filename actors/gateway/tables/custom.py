"""Kinds that say themselves how they are printed: a CRD's additionalPrinterColumns, Volcano's own kinds among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from pumice.actors.gateway.tables.ages import since
from pumice.actors.gateway.tables.column import NAME, Printer, TableColumn
from pumice.actors.gateway.tables.json_path import Effort, JsonPathError, find
from pumice.actors.gateway.tables.words import name_of
from pumice.core.objects.metadata import Object

_CREATED: Final = ".metadata.creationTimestamp"
AGE_ONLY: Final = ({"name": "Age", "type": "date", "jsonPath": _CREATED},)
"""The columns of a definition that names none."""


def custom_printer(columns: Sequence[Mapping[str, Any]] | None) -> Printer:
    """Name, then the columns of a definition (`name`, `type`, `jsonPath`, `priority` ...) in their order."""
    wanted = list(columns or AGE_ONLY)
    paths = [(str(one.get("type", "")), str(one.get("jsonPath", ""))) for one in wanted]

    def cells(obj: Object, now: float) -> list[Any]:
        effort = Effort()
        return [name_of(obj), *(_cell(of, path, obj, now, effort) for of, path in paths)]

    return Printer((NAME, *map(_column, wanted)), cells)


def _column(given: Mapping[str, Any]) -> TableColumn:
    path = given.get("jsonPath", "")
    return TableColumn(
        str(given.get("name", "")),
        str(given.get("type", "")),
        str(given.get("format") or ""),
        int(given.get("priority") or 0),
        str(given.get("description") or f"What is at {path}."),
    )


def _cell(column_type: str, path: str, obj: Object, now: float, effort: Effort) -> Any:
    """The first result as the column's type has it; null where there is none or it is of another type."""
    try:
        found = find(path, obj, effort)
    except JsonPathError:
        return None
    if not found or found[0] is None:
        return "<no value>" if found and column_type == "string" else None
    value = found[0]
    match column_type:
        case "string":
            return _printed(value)
        case "integer":
            return int(value) if _numeric(value) else None
        case "number":
            return float(value) if _numeric(value) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return since(value, now) if isinstance(value, str) else None
        case _:
            return None


def _numeric(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _printed(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return msgspec.json.encode(value, order="sorted").decode()


def _columns(*given: tuple[str, str, str, int]) -> Printer:
    return custom_printer([dict(zip(("name", "type", "jsonPath", "priority"), one, strict=True)) for one in given])


SERVERS: Final[dict[str, Printer]] = {
    "APIService": _columns(
        ("Service", "string", ".spec.service.name", 0),
        ("Available", "string", '.status.conditions[?(@.type=="Available")].status', 0),
        ("Age", "date", _CREATED, 0),
    ),
    "FlowSchema": _columns(
        ("PriorityLevel", "string", ".spec.priorityLevelConfiguration.name", 0),
        ("MatchingPrecedence", "integer", ".spec.matchingPrecedence", 0),
        ("DistinguisherMethod", "string", ".spec.distinguisherMethod.type", 0),
        ("Age", "date", _CREATED, 0),
    ),
    "PriorityLevelConfiguration": _columns(
        ("Type", "string", ".spec.type", 0),
        ("NominalConcurrencyShares", "integer", ".spec.limited.nominalConcurrencyShares", 0),
        ("Age", "date", _CREATED, 0),
    ),
}
"""Kinds by key that are about API servers themselves."""

VOLCANO: Final[dict[str, Printer]] = {
    "Job": _columns(
        ("STATUS", "string", ".status.state.phase", 0),
        ("minAvailable", "integer", ".status.minAvailable", 0),
        ("RUNNINGS", "integer", ".status.running", 0),
        ("AGE", "date", _CREATED, 0),
        ("QUEUE", "string", ".spec.queue", 1),
    ),
    "PodGroup": _columns(
        ("STATUS", "string", ".status.phase", 0),
        ("minMember", "integer", ".spec.minMember", 0),
        ("RUNNINGS", "integer", ".status.running", 0),
        ("AGE", "date", _CREATED, 0),
        ("QUEUE", "string", ".spec.queue", 1),
    ),
    "Queue": _columns(("PARENT", "string", ".spec.parent", 0)),
    "JobFlow": _columns(("Status", "string", ".status.state.phase", 0), ("Age", "date", _CREATED, 0)),
    "HyperNode": _columns(
        ("Tier", "string", ".spec.tier", 0),
        ("TierName", "string", ".spec.tierName", 0),
        ("NodeCount", "integer", ".status.nodeCount", 0),
        ("Age", "date", _CREATED, 0),
    ),
    "NodeShard": _columns(("AGE", "date", _CREATED, 0)),
}
"""Volcano's kinds by key; those not named here have no columns of their own."""
