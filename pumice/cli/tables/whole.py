"""Tables of which nothing is cut off: a word that is longer than its column goes on in the next line."""

from __future__ import annotations

from typing import Any

from rich.table import Table


class WholeTable(Table):
    """Names of resources, nodes and jobs differ at their ends, which rich would leave out."""

    def add_column(self, *header: Any, **options: Any) -> None:
        """Add a column whose long words go on in the next line."""
        super().add_column(*header, **{"overflow": "fold", **options})
