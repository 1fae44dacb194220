"""Tables of which nothing is cut off: a word that is longer than its column goes on in the next line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console


class WholeTable(Table):
    """Names of resources, nodes and jobs differ at their ends, which rich would leave out."""

    def add_column(self, *header: Any, **options: Any) -> None:
        """Add a column whose long words go on in the next line."""
        super().add_column(*header, **{"overflow": "fold", **options})


def show_lines(console: Console, rows: Sequence[Sequence[str]]) -> None:
    """A line a row, whatever the width of the terminal: the columns but for the last stand below each other."""
    widths = [max(cell_len(cell) for cell in column) for column in zip(*(row[:-1] for row in rows), strict=True)]
    for row in rows:
        cells = [cell + " " * (width - cell_len(cell)) for cell, width in zip(row[:-1], widths, strict=True)]
        console.print("  ".join((*cells, row[-1])).replace("\n", " ").rstrip(), markup=False, soft_wrap=True)
