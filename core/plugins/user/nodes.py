"""Stand-ins for a user's filters and scorers: the same questions, and an answer of the right shape whatever happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pumice.core.session.points.by_rows import RowCheck, RowScore, each
from pumice.core.session.points.nodes import Reads, Volatility
from pumice.core.session.reasons import FitFailure

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.objects.pod import Task
    from pumice.core.plugins.user.failures import PluginFailures
    from pumice.core.session.points.nodes import FloatArray, NodeCheck, NodeFilter, NodeScore, NodeScorer, Rows
    from pumice.core.session.reasons import IntArray
    from pumice.core.session.session import Session


T = TypeVar("T")


class WrongAnswerError(ValueError):
    """An answer of another shape or range than was asked for."""


class Guarded:
    """What stand-ins for filters and scorers have in common."""

    def __init__(self, inner: NodeFilter | NodeScorer, failures: PluginFailures) -> None:
        self.name = str(getattr(inner, "name", failures.plugin))
        self._inner: Any = inner
        self._failures = failures
        reads: object = getattr(inner, "reads", None)
        if not isinstance(reads, Reads):
            raise WrongAnswerError(
                f"{self.name} has no `reads`: expected a Reads that says what it reads of a task beside its template"
            )
        self.reads = reads._replace(
            kind=None if reads.kind is None else self._guarded("kind", reads.kind, lambda task: task.uid),
            concerns=None if reads.concerns is None else self._guarded("concerns", reads.concerns, lambda _: True),
            anew=None if reads.anew is None else self._guarded("anew", reads.anew, lambda _: True),
        )

    def _guarded(self, what: str, ask: Callable[[Any], T], instead: Callable[[Any], T]) -> Callable[[Any], T]:
        """What it reads of something; in place of what it fails to say, the answer that shares least."""

        def asked(subject: Any) -> T:
            return self._failures.attempt(what, lambda: _hashable(ask(subject)), lambda _: instead(subject))

        return asked


def _hashable(answer: T) -> T:
    hash(answer)
    return answer


class GuardedFilter(Guarded):
    """A user's NodeFilter. FitFailure is a verdict and passes through."""

    def prepare(self, session: Session, task: Task) -> GuardedCheck | None:
        """PreFilter. When it fails: nothing to say, or (`onError: fail`) no node will do."""
        failures = self._failures

        def ask() -> GuardedCheck | None:
            check = self._inner.prepare(session, task)
            return None if check is None else GuardedCheck(check, failures, session)

        def instead(sentence: str) -> None:
            if failures.refuses:
                raise FitFailure(failures.reason(sentence))

        return failures.attempt("prepare", ask, instead)


class GuardedCheck:
    """A user's NodeCheck."""

    def __init__(self, inner: NodeCheck, failures: PluginFailures, session: Session) -> None:
        self.volatility: Volatility = getattr(inner, "volatility", Volatility.GLOBAL)
        self._inner, self._failures, self._session = inner, failures, session

    def reject(self, rows: Rows, /) -> IntArray:
        """int32 [len(rows)]. A per-node filter fails node by node, others as a whole."""
        if isinstance(self._inner, RowCheck):
            return np.array([self.reject_one(row) for row in each(self._session.nodes.count, rows)], dtype=np.int32)
        count = _count(self._session, rows)
        return self._failures.attempt(
            "reject",
            lambda: self._checked(self._inner.reject(rows), count),
            lambda sentence: np.full(count, self._instead(sentence), dtype=np.int32),
        )

    def reject_one(self, row: int, /) -> int:
        """The reason number of one row."""
        return self._failures.attempt(
            "reject_one", lambda: int(self._checked(np.array([self._inner.reject_one(row)]), 1)[0]), self._instead, row
        )

    def _instead(self, sentence: str) -> int:
        if not self._failures.refuses:
            return 0
        return self._session.reasons.intern(self._failures.reason(sentence))

    def _checked(self, answer: Any, count: int) -> IntArray:
        codes = np.asarray(answer)
        if codes.shape != (count,) or codes.dtype.kind not in "iu":
            raise WrongAnswerError(f"expected {count} reason numbers, was {codes.dtype} {list(codes.shape)}")
        if count and not (codes.min() >= 0 and self._is_known(int(codes.max()))):
            raise WrongAnswerError("a reason number that Session.reasons never gave")
        return codes.astype(np.int32)

    def _is_known(self, number: int) -> bool:
        try:
            self._session.reasons.reasons(number)
        except IndexError:
            return False
        return True


class GuardedScorer(Guarded):
    """A user's NodeScorer."""

    def prepare(self, session: Session, task: Task) -> GuardedScore | None:
        """PreScore. When it fails: no contribution."""

        def ask() -> GuardedScore | None:
            score = self._inner.prepare(session, task)
            return None if score is None else GuardedScore(score, self._failures, session)

        return self._failures.attempt("prepare", ask, lambda _: None)


class GuardedScore:
    """A user's NodeScore: 0 in place of what it failed to say, or said with something that is no finite number."""

    def __init__(self, inner: NodeScore, failures: PluginFailures, session: Session) -> None:
        self.volatility: Volatility = getattr(inner, "volatility", Volatility.GLOBAL)
        self.normalised = bool(getattr(inner, "normalised", False))
        constant = getattr(inner, "constant", None)
        self.constant = None if constant is None else float(_finite(constant, ()))
        self._inner, self._failures, self._session = inner, failures, session

    def score(self, rows: Rows, /) -> FloatArray:
        """float64 [len(rows)], a new array. A per-node scorer fails node by node, others as a whole."""
        if isinstance(self._inner, RowScore):
            return np.array([self.score_one(row) for row in each(self._session.nodes.count, rows)], dtype=np.float64)
        count = _count(self._session, rows)
        return self._failures.attempt(
            "score", lambda: _finite(self._inner.score(rows), (count,)), lambda _: np.zeros(count)
        )

    def score_one(self, row: int, /) -> float:
        """The score of one row."""
        return self._failures.attempt(
            "score_one", lambda: float(_finite(self._inner.score_one(row), ())), lambda _: 0.0, row
        )

    def finish(self, raw: FloatArray, /) -> FloatArray:
        """NormalizeScore."""
        return self._failures.attempt(
            "finish", lambda: _finite(self._inner.finish(raw), raw.shape), lambda _: np.zeros(len(raw))
        )


def _count(session: Session, rows: Rows) -> int:
    return session.nodes.count if isinstance(rows, slice) else len(rows)


def _finite(answer: Any, shape: tuple[int, ...]) -> FloatArray:
    scores = np.array(answer, dtype=np.float64)
    if scores.shape != shape:
        raise WrongAnswerError(f"expected scores of shape {list(shape)}, was {list(scores.shape)}")
    if not np.isfinite(scores).all():
        raise WrongAnswerError("a score that is no finite number")
    return scores
