"""The mean that LeastAllocated and MostAllocated take over cpu and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from core.plugins.nodeorder.shares import Taken
    from core.session.points.nodes import FloatArray, Rows


def mean_percent(
    cpu: Taken, memory: Taken, cpu_percent: FloatArray, memory_percent: FloatArray, rows: Rows, weight: float
) -> FloatArray:
    """weight * floor(mean over the resources the node has), written into `cpu_percent`.

    Equal weights, so that is Go's integer division.
    """
    total: FloatArray = np.add(cpu_percent, memory_percent, out=cpu_percent)
    if cpu.everywhere and memory.everywhere:
        np.multiply(total, 0.5, out=total)
    else:
        parts = cpu.capacity.present[rows].astype(np.float64) + memory.capacity.present[rows]
        np.divide(total, np.maximum(parts, 1.0), out=total)
    np.floor(total, out=total)
    return total if weight == 1.0 else np.multiply(total, weight, out=total)


def mean_percent_one(cpu: Taken, memory: Taken, cpu_percent: float, memory_percent: float, row: int) -> float:
    """The mean of one row, without the weight."""
    total = cpu_percent + memory_percent
    return float(total * 0.5 // 1.0) if cpu.amount_at[row] and memory.amount_at[row] else total
