"""What a table is made of: columns, and per kind a printer that turns an object into cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import Struct

from pumice.core.objects.metadata import Object

Include = Literal["Metadata", "Object", "None"]
"""What a row carries beside its cells: the object's metadata, all of it, or nothing."""

Cells = Callable[[Object, float], list[Any]]
"""The cells of one object at a moment (seconds since the epoch), one per column."""

NONE: Final = "<none>"
UNSET: Final = "<unset>"
UNKNOWN: Final = "<unknown>"


class TableColumn(Struct, frozen=True, gc=False):
    """One column; `priority` 0 is always shown, 1 with `-o wide` only."""

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""

    def definition(self) -> dict[str, Any]:
        """The TableColumnDefinition of a column."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


class Printer(Struct, frozen=True, gc=False):
    """How a kind is printed. `conditions` gives a row's conditions (pods that have ended have one)."""

    columns: tuple[TableColumn, ...]
    cells: Cells
    conditions: Callable[[Object], list[dict[str, str]]] | None = None


NAME: Final = TableColumn("Name", format="name", description="The object's name, unique in its namespace.")
AGE: Final = TableColumn("Age", description="Time since the object was created.")
CONTAINERS: Final = TableColumn("Containers", priority=1, description="Names of the template's containers.")
IMAGES: Final = TableColumn("Images", priority=1, description="Images of the template's containers.")
SELECTOR: Final = TableColumn("Selector", priority=1, description="Which pods belong to it, by label.")


def text(name: str, description: str = "", *, wide: bool = False) -> TableColumn:
    """A column of strings."""
    return TableColumn(name, priority=int(wide), description=description)


def number(name: str, description: str = "") -> TableColumn:
    """A column of integers."""
    return TableColumn(name, "integer", description=description)


def flag(name: str, description: str = "") -> TableColumn:
    """A column of booleans."""
    return TableColumn(name, "boolean", description=description)
