"""What all filters together say of nodes. Source: Volcano `Session.PredicateFn`.

Plugins are asked in tier order, and the first that refuses a node has said all: no later plugin is asked about it. A
plugin with several filters (predicates) goes on after a plain Unschedulable and adds up the reasons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from core.session.points.nodes import Volatility

if TYPE_CHECKING:
    import numpy.typing as npt

    from core.objects.pod import Task
    from core.session.points.nodes import NodeCheck, Rows
    from core.session.reasons import IntArray
    from core.session.session import Session


class Filters:
    """The filters of one template, prepared (PreFilter; raises FitFailure).

    `by_plugin`: in tier order, those without anything to say left out; `is_global`: some answer depends on placements
    anywhere.
    """

    def __init__(self, session: Session, task: Task) -> None:
        self._table = session.reasons
        self.by_plugin: list[tuple[str, list[NodeCheck]]] = []
        for plugin, filters in session.searches.asked(session.points.predicate, task.template):
            checks = [check for each in filters if (check := each.prepare(session, task)) is not None]
            if checks:
                self.by_plugin.append((plugin, checks))
        self.is_global = Volatility.GLOBAL in [c.volatility for _, checks in self.by_plugin for c in checks]

    def reject(self, rows: Rows, count: int) -> IntArray:
        """Reason numbers of `count` rows, 0 where every plugin is content."""
        codes = np.zeros(count, dtype=np.int32)
        clean = True
        for _, checks in self.by_plugin:
            settled = None if clean else codes != 0
            for check in checks:
                answer = check.reject(rows)
                if not np.count_nonzero(answer):
                    continue
                if clean:
                    codes[:] = answer
                    clean = False
                else:
                    self._add(codes, answer if settled is None else np.where(settled, np.int32(0), answer))
        return codes

    def _add(self, codes: IntArray, answer: IntArray) -> None:
        """Put the answer behind what the same plugin's earlier filters said."""
        table, fresh = self._table, codes == 0
        further: npt.NDArray[np.bool_] = ~fresh & (answer != 0)
        for i in np.flatnonzero(further).tolist():
            if not table.is_terminal(int(codes[i])):
                codes[i] = table.join(int(codes[i]), int(answer[i]))
        codes[fresh] = answer[fresh]

    def reject_one(self, row: int) -> int:
        """Reason number of one row, 0 where it passes: what `reject` says of it."""
        table = self._table
        for _, checks in self.by_plugin:
            code = 0
            for check in checks:
                answer = check.reject_one(row)
                if answer:
                    code = table.join(code, answer) if code else answer
                    if table.is_terminal(answer):
                        return code
            if code:
                return code
        return 0
