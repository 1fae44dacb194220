"""Keeps cpu and memory beside idle scarce resources free. Source: Volcano `plugins/resource-strategy-fit`
(`checkNodeResourceIsProportional`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from core.session.points.nodes import TEMPLATE_ONLY, Volatility
from core.session.reasons import Code, Reason

if TYPE_CHECKING:
    from core.objects.pod import Task
    from core.plugins.resource_strategy_fit.arguments import IdleShare
    from core.session.points.nodes import Rows
    from core.session.reasons import IntArray
    from core.session.session import Session

CPU, MEMORY = 0, 1
MEGA = 1000


class ScarceResource:
    """What is kept for one resource: its idle column, where nodes have it, the shares and the reason's number."""

    def __init__(self, session: Session, name: str, dimension: int, share: IdleShare) -> None:
        text = f"proportional of resource {name} check failed"
        self.code = session.reasons.intern(Reason("resource-strategy-fit", Code.UNRESOLVABLE, text))
        self.idle, self.idle_at = session.nodes.idle[dimension], session.nodes.idle_at[dimension]
        self.share = share
        self.named = np.array(
            [name in (spec.allocatable.scalars or ()) for spec in session.nodes.specs], dtype=np.bool_
        )


class ProportionalCheck:
    """Refuses a node on which less cpu or memory would be left than the idle scarce resource needs beside it."""

    volatility = Volatility.ROW

    def __init__(self, session: Session, task: Task, kept: list[ScarceResource]) -> None:
        self._kept = kept
        nodes, request = session.nodes, task.template.request
        self._cpu, self._memory = nodes.idle[CPU], nodes.idle[MEMORY]
        self._cpu_at, self._memory_at = nodes.idle_at[CPU], nodes.idle_at[MEMORY]
        self._own_cpu, self._own_memory = request.milli_cpu, request.memory

    def reject(self, rows: Rows) -> IntArray:
        """Reason number per row, int32 [len(rows)]: that of the first resource by name."""
        cpu, memory = self._cpu[rows] - self._own_cpu, self._memory[rows] - self._own_memory
        codes = np.zeros(len(cpu), dtype=np.int32)
        for kept in reversed(self._kept):
            idle = kept.idle[rows]
            short = (cpu < idle * kept.share.cpu) | (memory < idle * kept.share.memory * MEGA * MEGA)
            codes[short & kept.named[rows]] = kept.code
        return codes

    def reject_one(self, row: int) -> int:
        """Reason number of one row, 0 where it passes: what `reject` says of it."""
        cpu, memory = self._cpu_at[row] - self._own_cpu, self._memory_at[row] - self._own_memory
        for kept in self._kept:
            idle = kept.idle_at[row]
            short = cpu < idle * kept.share.cpu or memory < idle * kept.share.memory * MEGA * MEGA
            if short and kept.named[row]:
                return kept.code
        return 0


class Proportional:
    """The filter. Tasks that ask for one of the scarce resources pass everywhere."""

    name = "resource-strategy-fit"
    reads = TEMPLATE_ONLY

    def __init__(self, shares: dict[str, IdleShare]) -> None:
        self._shares = shares
        self._kept: list[ScarceResource] | None = None

    def prepare(self, session: Session, task: Task) -> ProportionalCheck | None:
        """None where nothing is to be kept from this task."""
        scalars = task.template.request.scalars or {}
        if any(scalars.get(name, 0.0) > 0.0 for name in self._shares):
            return None
        if self._kept is None:
            self._kept = self._find(session)
        return ProportionalCheck(session, task, self._kept) if self._kept else None

    def _find(self, session: Session) -> list[ScarceResource]:
        rows = {name: row for row, name in enumerate(session.dims.names[: len(session.nodes.idle)]) if row > MEMORY}
        return [
            ScarceResource(session, name, rows[name], share) for name, share in self._shares.items() if name in rows
        ]
