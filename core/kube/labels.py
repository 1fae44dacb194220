"""Node labels as columns.

One int32 code per node and label key, so that a selector is one lookup per distinct value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from core.kube.rows import CodeArray, NodeRows

ABSENT = -1


@dataclass(frozen=True, slots=True)
class LabelColumn:
    """One key over node rows.

    `codes` int32 [N] with ABSENT (-1) where the node lacks it, `values[code]` the text, `index` its reverse.
    """

    codes: CodeArray
    values: tuple[str, ...]
    index: dict[str, int]


def label_column(nodes: NodeRows, key: str) -> LabelColumn:
    """The column of a key, built once until a node's spec changes. Codes number the values in row order."""
    memo_key = ("label", key)
    column: LabelColumn | None = nodes.memo.get(memo_key)
    if column is None:
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
        column = nodes.memo[memo_key] = LabelColumn(codes, tuple(index), index)
    return column
