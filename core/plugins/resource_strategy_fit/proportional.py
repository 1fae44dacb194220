"""Keeps cpu and memory beside idle scarce resources free. Source: Volcano `plugins/resource-strategy-fit`
(`checkNodeResourceIsProportional`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pumice.core.session.points.columns import Clause, ColumnCheck
from pumice.core.session.points.nodes import TEMPLATE_ONLY
from pumice.core.session.reasons import Code, Reason
from pumice.core.state.scalars import CellColumn, cells_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.objects.pod import Task
    from pumice.core.plugins.resource_strategy_fit.arguments import IdleShare
    from pumice.core.resources import Resource
    from pumice.core.session.points.batches import BoolArray
    from pumice.core.session.points.columns import At, RowReader, V
    from pumice.core.session.session import Session

CPU, MEMORY = 0, 1
MEGA = 1000


class ScarceResource(NamedTuple):
    """What is kept for one resource: what is idle of it, where nodes have it, the shares and the reason's number."""

    idle: CellColumn
    named: CellColumn
    share: IdleShare
    code: int


class LeavesTooLittle(NamedTuple):
    """Less cpu or memory would be left on the node than its idle scarce resource needs beside it."""

    kept: ScarceResource
    cpu: CellColumn
    memory: CellColumn
    request: Resource

    def __call__(self, read: RowReader[V], /) -> Callable[[At], bool | BoolArray]:
        """(how columns are read) -> (where) -> whether it holds."""
        idle, named, cpu, memory = (read.of(each) for each in (self.kept.idle, self.kept.named, self.cpu, self.memory))
        share, own_cpu, own_memory = self.kept.share, self.request.milli_cpu, self.request.memory

        def refuses(at: At) -> bool | BoolArray:
            scarce = idle[at]
            short = (cpu[at] - own_cpu < scarce * share.cpu) | (
                memory[at] - own_memory < scarce * share.memory * MEGA * MEGA
            )
            where: bool | BoolArray = short & (named[at] != 0)
            return where

        return refuses


class Proportional:
    """The filter. Tasks that ask for one of the scarce resources pass everywhere."""

    name = "resource-strategy-fit"
    reads = TEMPLATE_ONLY

    def __init__(self, shares: dict[str, IdleShare]) -> None:
        self._shares = shares
        self._kept: list[ScarceResource] | None = None

    def prepare(self, session: Session, task: Task) -> ColumnCheck | None:
        """None where nothing is to be kept from this task. The first resource by name is the reason."""
        request = task.template.request
        if any((request.scalars or {}).get(name, 0.0) > 0.0 for name in self._shares):
            return None
        if self._kept is None:
            self._kept = self._find(session)
        nodes = session.nodes
        cpu, memory = (CellColumn(nodes.idle[each], nodes.idle_at[each]) for each in (CPU, MEMORY))
        clauses = [Clause(LeavesTooLittle(kept, cpu, memory, request), kept.code) for kept in self._kept]
        return ColumnCheck(clauses) if clauses else None

    def _find(self, session: Session) -> list[ScarceResource]:
        nodes = session.nodes
        rows = {name: row for row, name in enumerate(session.dims.names[: len(nodes.idle)]) if row > MEMORY}
        found: list[ScarceResource] = []
        for name, share in self._shares.items():
            if name in rows:
                idle = CellColumn(nodes.idle[rows[name]], nodes.idle_at[rows[name]])
                named = [name in (spec.allocatable.scalars or ()) for spec in nodes.specs]
                text = f"proportional of resource {name} check failed"
                code = session.reasons.intern(Reason("resource-strategy-fit", Code.UNRESOLVABLE, text))
                found.append(ScarceResource(idle, cells_of(np.array(named, dtype=np.bool_)), share, code))
        return found
