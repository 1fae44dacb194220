# SPDX-License-Identifier: Apache-2.0
"""The facts about the session's nodes that this package needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pumice.core.objects.node import NodeSpec
    from pumice.core.state.derived import DerivedColumns

BoolArray = npt.NDArray[np.bool_]
CodeArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float64]


class NodeRows(Protocol):
    """Nodes as rows in name order: those of a session, or the source of a column."""

    @property
    def count(self) -> int:
        """Return the number of rows."""
        ...

    @property
    def names(self) -> list[str]:
        """Return the node names by row."""
        ...

    @property
    def specs(self) -> list[NodeSpec]:
        """Return the node specs by row."""
        ...

    @property
    def row(self) -> dict[str, int]:
        """Return the row by node name."""
        ...

    @property
    def derived(self) -> DerivedColumns:
        """Return the values derived from the specs."""
        ...
