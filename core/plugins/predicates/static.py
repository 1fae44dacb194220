"""Filters whose answer follows from node specs and pod template alone: worked out once, kept until a node changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from core.kube.rows import memo_table
from core.session.node_points import Volatility

if TYPE_CHECKING:
    from collections.abc import Hashable

    from core.kube.rows import BoolArray, NodeRows
    from core.objects.pod import Task
    from core.objects.pod_template import PodTemplate
    from core.session.node_points import Rows
    from core.session.reasons import IntArray, Reason
    from core.session.session import Session

_UNKNOWN = object()


class Question(Protocol):
    """What a static filter asks of a pod."""

    reason: Reason

    def content(self, template: PodTemplate) -> Hashable:
        """What of the template the answer depends on; None: nothing in it can be refused."""
        ...

    def refused(self, nodes: NodeRows, template: PodTemplate) -> BoolArray | None:
        """Mask [N] of the nodes that are refused, None for none of them. May raise FitFailure."""
        ...


class StaticCheck:
    """Reason numbers per row, ready made."""

    volatility = Volatility.STATIC

    def __init__(self, codes: IntArray) -> None:
        self._codes = codes
        self._at = codes.data

    def reject(self, rows: Rows) -> IntArray:
        """Reason number per row, int32 [len(rows)]; for all rows a view that must not be written to."""
        return self._codes[rows]

    def reject_one(self, row: int) -> int:
        """The reason number of one row."""
        return int(self._at[row])


class StaticFilter:
    """A filter around a Question."""

    reads_labels = False

    def __init__(self, question: Question) -> None:
        self.name = question.reason.plugin
        self._question = question

    def prepare(self, session: Session, task: Task) -> StaticCheck | None:
        """The ready answer for the task's template; None when no node is refused.

        Raises FitFailure when the question does.
        """
        template, table = task.template, memo_table(session.nodes, self.name)
        mask = table.get(template, _UNKNOWN)
        if mask is _UNKNOWN:
            mask = table[template] = self._mask(session.nodes, template, table)
        if mask is None:
            return None
        return StaticCheck(mask * np.int32(session.reasons.intern(self._question.reason)))

    def _mask(self, nodes: NodeRows, template: PodTemplate, table: dict[Any, Any]) -> BoolArray | None:
        """Who is refused, None for nobody; templates of one content share it."""
        content = self._question.content(template)
        if content is None:
            return None
        if content not in table:
            mask = self._question.refused(nodes, template)
            table[content] = mask if mask is not None and mask.any() else None
        kept: BoolArray | None = table[content]
        return kept
