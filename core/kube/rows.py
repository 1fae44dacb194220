"""What this package needs to know of the session's nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from core.objects.node import NodeSpec

BoolArray = npt.NDArray[np.bool_]
CodeArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float64]

_BOUND = 1024  # answers kept per table: at 50,000 nodes a mask is 50 kB


class NodeRows(Protocol):
    """Nodes as rows in name order; `memo` lives until any node's spec changes."""

    @property
    def count(self) -> int:
        """Number of rows."""
        ...

    @property
    def names(self) -> list[str]:
        """Node names by row."""
        ...

    @property
    def specs(self) -> list[NodeSpec]:
        """Node specs by row."""
        ...

    @property
    def row(self) -> dict[str, int]:
        """Row by node name."""
        ...

    @property
    def memo(self) -> dict[Any, Any]:
        """Whatever is derived from the specs."""
        ...


def memo_table(nodes: NodeRows, name: str) -> dict[Any, Any]:
    """The bounded table `name` of the nodes' memo.

    It starts afresh when it has grown large, so that many templates cost no memory.
    """
    table: dict[Any, Any] | None = nodes.memo.get(name)
    if table is None or len(table) >= _BOUND:
        table = nodes.memo[name] = {}
    return table
