"""Node labels as columns.

One int32 code per node and label key, so that a selector is one lookup per distinct value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pumice.core.state.derived import derived
from pumice.core.state.sources import NODES

if TYPE_CHECKING:
    from pumice.core.kube.rows import CodeArray
    from pumice.core.state.sources import NodeSpecs

ABSENT = -1


@dataclass(frozen=True, slots=True)
class LabelColumn:
    """One key over node rows.

    `codes` int32 [N] with ABSENT (-1) where the node lacks it, `values[code]` the text, `index` its reverse.
    """

    codes: CodeArray
    values: tuple[str, ...]
    index: dict[str, int]


@derived(NODES)
def label_column(nodes: NodeSpecs, key: str) -> LabelColumn:
    """The column of a key. Codes number the values in row order."""
    index: dict[str, int] = {}
    codes = np.fromiter(
        (
            ABSENT if (value := spec.labels.get(key)) is None else index.setdefault(value, len(index))
            for spec in nodes.specs
        ),
        dtype=np.int32,
        count=nodes.count,
    )
    codes.flags.writeable = False
    return LabelColumn(codes, tuple(index), index)
