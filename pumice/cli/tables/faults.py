"""How often each kind of fault struck, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.cli.tables.whole import WholeTable

if TYPE_CHECKING:
    from rich.console import Console


def show_faults(console: Console, injected: dict[str, int], title: str = "") -> None:
    """How often each kind of fault struck."""
    table = WholeTable("fault", "injected", title=title)
    for kind, count in injected.items():
        table.add_row(kind, str(count))
    console.print(table)
