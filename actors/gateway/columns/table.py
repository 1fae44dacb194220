# SPDX-License-Identifier: Apache-2.0
"""Objects as a `meta.k8s.io/v1` Table, which `kubectl get` prints.

printer = printer_of("Foo.example.com", columns)
definitions(printer); row(printer, obj, now, "Metadata")
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import asdict

from pumice.actors.gateway.columns.words import Cell, Cells, at, counted, filled, since
from pumice.core.objects.metadata import Object, section

Include = Literal["Metadata", "Object", "None"]
"""Part of a row beside its cells: the object's metadata, all of it, or nothing."""

_UNREADABLE: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)


class TableColumn(Struct, frozen=True, gc=False):
    """One column; `priority` 0 is always shown, 1 with `-o wide` only."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


class Printer(Struct, frozen=True, gc=False):
    """Columns and the readers of their cells, one per column.

    Printers join: a kind's printer is made of such of one column, or of a few whose cells are read together.
    `conditions` gives a row's conditions (pods that have ended have one).
    """

    columns: tuple[TableColumn, ...]
    cells: Cells
    conditions: Callable[[Object], list[dict[str, str]]] | None = None


def joined(*parts: Printer, conditions: Callable[[Object], list[dict[str, str]]] | None = None) -> Printer:
    """Return the printer of all the parts' columns."""
    reads = [part.cells for part in parts]

    def cells(obj: Object, now: float) -> list[Any]:
        made: list[Any] = []
        for read in reads:
            made += read(obj, now)
        return made

    return Printer(tuple(chain.from_iterable(part.columns for part in parts)), cells, conditions)


def column(shown: TableColumn, cell: Cell) -> Printer:
    """Return the printer of one column."""
    return Printer((shown,), lambda obj, now: [cell(obj, now)])


def text(name: str, cell: str | Cell, description: str = "", *, wide: bool = False, form: str = "") -> Printer:
    """Return a column of strings; a cell may be the path of a field, which is empty where it is absent."""
    read = filled(cell) if isinstance(cell, str) else cell
    return column(TableColumn(name, "string", form, description, int(wide)), read)


def together(cells: Cells, *named: tuple[str, str], wide: bool = False) -> Printer:
    """Return columns of strings, by name and description, whose cells are read together."""
    return Printer(tuple(TableColumn(name, "string", "", told, int(wide)) for name, told in named), cells)


def number(name: str, cell: str | Cell, description: str) -> Printer:
    """Return a column of integers; a cell may be the path of a field, which is 0 where it is absent."""
    return column(TableColumn(name, "integer", "", description), counted(cell) if isinstance(cell, str) else cell)


def flag(name: str, path: str, description: str, *, absent: bool = False) -> Printer:
    """Return a column of booleans, by the path of a field; `absent` is the word for null."""
    read = at(path, lambda value: absent if value is None else bool(value))
    return column(TableColumn(name, "boolean", "", description), read)


def definitions(printer: Printer) -> list[Object]:
    """Return the columns, as TableColumnDefinitions."""
    return [asdict(column) for column in printer.columns]


def row(printer: Printer, obj: Object, now: float, include: Include = "Metadata") -> Object:
    """Return one object as a TableRow, ages as of `now` (seconds since the epoch).

    An object of a kind whose types are not checked may not be what its printer expects: then its name and age are
    shown.
    """
    try:
        made: Object = {"cells": printer.cells(obj, now)}
        if printer.conditions and (conditions := printer.conditions(obj)):
            made["conditions"] = conditions
    # One object that no schema has checked must not keep `kubectl get` from all others.
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


def partial(obj: Object) -> Object:
    """Return the object's metadata alone, as a PartialObjectMetadata."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": section(obj, "metadata")}
