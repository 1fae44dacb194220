# SPDX-License-Identifier: Apache-2.0
"""The filters' merged answers about nodes. Source: Volcano `Session.PredicateFn`.

Plugins are asked in tier order, and the first that refuses a node has said all: no later plugin is asked about it. A
plugin with several filters (predicates) goes on after a plain Unschedulable and adds up the reasons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.core.session.points.nodes import Volatility
from pumice.core.session.reasons import Code, FitFailure, Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    BoolArray = npt.NDArray[np.bool_]

    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import NodeFilter, Rows
    from pumice.core.session.points.rules import Check
    from pumice.core.session.reasons import IntArray
    from pumice.core.session.session import Session

    Counted = dict[NodeFilter, int]


NO_STATE: Final = Reason("", Code.ERROR, "no state of PreFilter was found")


class Filters:
    """The filters of one template, prepared (PreFilter; raises FitFailure).

    `by_plugin`: in tier order, those without anything to say left out; `is_global`: some answer depends on placements
    anywhere; `is_asking`: some answer costs a question, and is good for this moment only; `pre_filters`: what of
    PreFilter each further task of the template must pass (raises FitFailure), since placements change it. `_counting`:
    the checks that go by PreFilter's counts of pods, volumes and devices, with their filters; `lasts`: whether a later
    session would prepare the same checks.
    """

    def __init__(self, session: Session, task: Task) -> None:
        self._table = session.reasons
        self.by_plugin: list[tuple[str, list[Check]]] = []
        self._counting: dict[Check, NodeFilter] = {}
        self.pre_filters: list[Callable[[], None]] = []
        self._of_one: list[list[Callable[[int], int]]] | None = None
        volatilities: list[Volatility] = []
        for plugin, filters in session.searches.asked(session.points.predicate, task.template):
            checks: list[Check] = []
            for each in filters:
                check = each.prepare(session, task)
                if check is None:
                    continue
                checks.append(check)
                volatilities.append(check.volatility)
                if check.pre_filter is not None:
                    self.pre_filters.append(check.pre_filter)
                if check.is_followed:
                    self._counting[check] = each
            if checks:
                self.by_plugin.append((plugin, checks))
        checks_last = False not in [check.lasts for _, checks in self.by_plugin for check in checks]
        self.lasts = checks_last and not (self.pre_filters or self._counting)
        self.is_asking = Volatility.MOMENT in volatilities
        self.is_global = self.is_asking or Volatility.GLOBAL in volatilities

    def reject(self, rows: Rows, count: int, among: BoolArray | None = None) -> IntArray:
        """Return the reason numbers of `count` rows, 0 where every plugin agrees. `among`: the rows that matter, for
        filters whose answers cost questions.
        """
        codes = np.zeros(count, dtype=np.int32)
        clean = True
        for _, checks in self.by_plugin:
            # Nodes that an earlier plugin refused are settled: the answers of this one do not count there.
            settled = None if clean else codes != 0
            for check in checks:
                answer = check.many(rows) if among is None else _sparing(check, rows, (codes == 0) & among)
                if not np.count_nonzero(answer):
                    continue
                if clean:
                    # The first refusals are copied whole: reasons need joining from the second filter on only.
                    codes[:] = answer
                    clean = False
                else:
                    self._add(codes, answer if settled is None else np.where(settled, np.int32(0), answer))
        return codes

    def _add(self, codes: IntArray, answer: IntArray) -> None:
        """Put the answer behind what the same plugin's earlier filters said."""
        fresh = codes == 0
        further: npt.NDArray[np.bool_] = ~fresh & (answer != 0)
        for i in np.flatnonzero(further).tolist():
            codes[i] = self._joined(int(codes[i]), int(answer[i]))
        codes[fresh] = answer[fresh]

    def _joined(self, code: int, answer: int) -> int:
        """Return a plugin's answer about a node that it has refused, after one more of its filters has refused it."""
        return code if self._table.is_terminal(code) else self._table.join(code, answer)

    def reject_one(self, row: int) -> int:
        """Return the reason number of one row, 0 where it passes, equal to that of `reject`."""
        table, of_one = self._table, self._of_one
        if of_one is None:
            # Looked up once: every placement asks them.
            of_one = self._of_one = [[check.one for check in checks] for _, checks in self.by_plugin]
        for checks in of_one:
            code = 0
            for ask in checks:
                answer = ask(row)
                if answer:
                    code = self._joined(code, answer) if code else answer
                    if table.is_terminal(answer):
                        return code
            if code:
                return code
        return 0

    def as_pre_filtered(self, row: int) -> Counted:
        """Return the answer of the checks that use PreFilter's counts about a row."""
        return {each: check.one(row) for check, each in self._counting.items()}

    def reject_by(self, counted: Counted, row: int) -> int:
        """Return the reason number of a row as `reject_one` does, with those answers of an earlier PreFilter.

        A check that is not among them had nothing to say then (Skip).
        """
        code = 0
        for _, checks in self.by_plugin:
            for check in checks:
                counting = self._counting.get(check)
                answer: int = check.one(row) if counting is None else counted.get(counting, 0)
                if answer and not (code and self._table.is_terminal(code)):
                    code = self._joined(code, answer) if code else answer
            if code:
                return code
        return 0


def reject_unasked(session: Session, task: Task, row: int) -> int:
    """Return the reason number of a row for a task for which no PreFilter was asked in this session.

    Filters that find no state of theirs fail, and with that their plugin has said all.
    """
    table = session.reasons
    for _, filters in session.points.predicate.named:
        code = 0
        for each in filters:
            if each.reads.needs_pre_filter:
                return table.join(code, table.intern(NO_STATE)) if code else table.intern(NO_STATE)
            answer = _asked_alone(each, session, task, row)
            if answer:
                code = table.join(code, answer) if code else answer
                if table.is_terminal(answer):
                    return code
        if code:
            return code
    return 0


def _asked_alone(node_filter: NodeFilter, session: Session, task: Task, row: int) -> int:
    try:
        check = node_filter.prepare(session, task)
    except FitFailure as failure:
        return session.reasons.intern(failure.reason)
    answer: int = 0 if check is None else check.one(row)
    return answer


def _sparing(check: Check, rows: Rows, wanted: BoolArray) -> IntArray:
    """Return what a check says, of the wanted rows alone where that costs questions."""
    if check.volatility is not Volatility.MOMENT:
        return check.many(rows)
    codes = np.zeros(len(wanted), dtype=np.int32)
    places = wanted.nonzero()[0]
    if len(places):
        codes[places] = check.many(places if isinstance(rows, slice) else rows[places])
    return codes
