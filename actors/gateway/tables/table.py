"""Objects as a `meta.k8s.io/v1` Table: what `kubectl get` prints.

printer = printer_of("Foo.example.com", columns)
definitions(printer); row(printer, obj, now, "Metadata")
"""

from __future__ import annotations

from typing import Any, Final

from pumice.actors.gateway.tables.ages import since
from pumice.actors.gateway.tables.column import Include, Printer
from pumice.core.objects.metadata import Object, section

_UNREADABLE: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)


def definitions(printer: Printer) -> list[dict[str, Any]]:
    """The columns, as TableColumnDefinitions."""
    return [column.definition() for column in printer.columns]


def row(printer: Printer, obj: Object, now: float, include: Include = "Metadata") -> dict[str, Any]:
    """One object as a TableRow, ages as of `now` (seconds since the epoch).

    An object of a kind whose types nobody checks may not be what its printer expects: then its name and age are shown.
    """
    try:
        made: dict[str, Any] = {"cells": printer.cells(obj, now)}
        if printer.conditions and (conditions := printer.conditions(obj)):
            made["conditions"] = conditions
    except _UNREADABLE:
        made = {"cells": [_fallback(column.name, obj, now) for column in printer.columns]}
    if include == "Object":
        made["object"] = obj
    elif include == "Metadata":
        made["object"] = partial(obj)
    return made


def _fallback(column: str, obj: Object, now: float) -> str | None:
    metadata = section(obj, "metadata")
    if column == "Name":
        return str(metadata.get("name", ""))
    return since(metadata.get("creationTimestamp"), now) if column in ("Age", "AGE") else None


def partial(obj: Object) -> dict[str, Any]:
    """The object's metadata alone, as a PartialObjectMetadata."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": section(obj, "metadata")}
