"""The extender's filter and scorer: each node is asked about by itself, the scores of all candidates at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.core.plugins.extender.calls import NAME
from pumice.core.plugins.extender.replies import PREDICATE, PRIORITIZE, ExtenderError
from pumice.core.session.points.by_rows import RowsCheck, each
from pumice.core.session.points.nodes import Reads, Volatility
from pumice.core.session.points.ready import WholeScore
from pumice.core.session.reasons import Code, Reason

if TYPE_CHECKING:
    from collections.abc import Hashable

    import numpy.typing as npt

    from pumice.core.objects.pod import Task
    from pumice.core.plugins.extender.bodies import Bodies
    from pumice.core.plugins.extender.calls import Calls, Reply
    from pumice.core.plugins.extender.settings import ExtenderSettings
    from pumice.core.session.points.nodes import FloatArray, Rows
    from pumice.core.session.reasons import IntArray
    from pumice.core.session.session import Session

_KNOWN: Final = {code.value for code in Code}


def _reads(settings: ExtenderSettings) -> Reads:
    """Nobody knows what an extender goes by: each pod that it hears of is asked about anew, every time."""

    def kind(task: Task) -> Hashable:
        return object() if settings.is_interested(task) else None

    return Reads(kind=kind)


class ExtenderFilter:
    """`predicate`."""

    name = NAME

    def __init__(self, settings: ExtenderSettings, bodies: Bodies, calls: Calls) -> None:
        self.reads = _reads(settings)
        self.settings, self.bodies, self.calls = settings, bodies, calls

    def prepare(self, session: Session, task: Task) -> ExtenderCheck | None:
        """For one task; None when the extender is not interested."""
        return ExtenderCheck(self, session, task) if self.settings.is_interested(task) else None


class ExtenderCheck(RowsCheck):
    """For one task."""

    volatility = Volatility.MOMENT

    def __init__(self, owner: ExtenderFilter, session: Session, task: Task) -> None:
        self._owner, self._session, self._task = owner, session, task

    def reject(self, rows: Rows, /) -> IntArray:
        """Reason numbers, 0 where the extender is content: int32 [len(rows)]."""
        owner, task = self._owner, self._owner.bodies.task(self._task)
        asked = [{"task": task, "node": owner.bodies.node(row)} for row in each(self._session.nodes.count, rows)]
        replies = owner.calls.ask_all("predicate", asked, PREDICATE)
        return np.array(list(map(self._code, replies)), dtype=np.int32)

    def _code(self, reply: Reply) -> int:
        if isinstance(reply, ExtenderError):
            return 0 if self._owner.settings.ignorable else self._refusal(Code.ERROR, str(reply))
        text, code = reply.get("status", ""), reply.get("code", 0)
        if not text:
            return 0
        return self._refusal(Code(code) if code in _KNOWN and code else Code.ERROR, text)

    def _refusal(self, code: Code, text: str) -> int:
        return self._session.reasons.intern(Reason(NAME, code, text))


class ExtenderScorer:
    """`prioritize`."""

    name = NAME

    def __init__(self, settings: ExtenderSettings, bodies: Bodies, calls: Calls) -> None:
        self.reads = _reads(settings)
        self.settings, self.bodies, self.calls = settings, bodies, calls

    def prepare(self, session: Session, task: Task) -> ExtenderScore | None:
        """For one task; None when the extender is not interested."""
        return ExtenderScore(self, session, task) if self.settings.is_interested(task) else None


class ExtenderScore(WholeScore):
    """For one task. The extender hears of the candidates only."""

    volatility = Volatility.MOMENT

    def __init__(self, owner: ExtenderScorer, session: Session, task: Task) -> None:
        super().__init__(session.nodes.count)
        self._owner, self._session, self._task = owner, session, task
        self._told: tuple[tuple[int, bytes], FloatArray] | None = None

    def of(self, rows: npt.NDArray[np.intp]) -> FloatArray:
        """The extender's scores; -inf everywhere when there are none: then no node is the best. Who only wants to know
        what was said (a report) is told what the choice was told.
        """
        state = len(self._session.nodes.touched), rows.tobytes()
        if self._told is None or self._told[0] != state:
            self._told = state, self._ask(rows.tolist())
        return self._told[1].copy()

    def _ask(self, rows: list[int]) -> FloatArray:
        owner = self._owner
        body = {"task": owner.bodies.task(self._task), "nodes": [owner.bodies.node(row) for row in rows]}
        try:
            reply = owner.calls.ask("prioritize", body, PRIORITIZE)
        except ExtenderError:
            return np.full(len(rows), 0.0 if owner.settings.ignorable else -np.inf)
        if reply.get("errorMessage") or "nodeScore" not in reply:
            return np.full(len(rows), -np.inf)
        scores: dict[str, float] = reply["nodeScore"]
        return np.array([scores.get(self._session.nodes.names[row], 0.0) for row in rows])
