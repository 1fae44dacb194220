# SPDX-License-Identifier: Apache-2.0
"""Plugins that users wrote, kept from harming a cycle: their exceptions are caught, named and replaced by an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

import numpy as np

from pumice.config.arguments import PluginArguments
from pumice.core.messages.decisions import NOWHERE, BindContext
from pumice.core.objects.pod import Task
from pumice.core.plugins.failures import PluginFailures, PluginQuestion, Tell
from pumice.core.session.points.all_points import lifted_filters, lifted_scorers
from pumice.core.session.points.earlier_forms import rule_of
from pumice.core.session.points.nodes import TEMPLATE_ONLY, Reads
from pumice.core.session.points.orders import JobColumn, QueueKey, TaskKey, comparing, comparing_keys
from pumice.core.session.points.point import Point
from pumice.core.session.points.rules import A, ByNode, ColumnRule, numbers
from pumice.core.session.points.victims import Mask
from pumice.core.session.points.votes import ValidateResult, Vote
from pumice.core.session.reasons import FitFailure

if TYPE_CHECKING:
    from pumice.core.plugins.plugin import Plugin, PluginBuilder
    from pumice.core.session.points.all_points import Handler
    from pumice.core.session.points.nodes import FloatArray, NodeFilter, NodeScorer, Rows
    from pumice.core.session.points.rules import Check, Score
    from pumice.core.session.reasons import IntArray
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

# --- Stand-ins for filters and scorers

T = TypeVar("T")


class WrongAnswerError(ValueError):
    """An answer of a wrong shape or range."""


class Guarded:
    """The common part of the stand-ins for filters and scorers."""

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
        """Return what the plugin reads of something; where it fails, the answer that shares least."""

        def asked(subject: object) -> T:
            return self._failures.attempt(what, lambda: _hashable(ask(subject)), lambda _: instead(subject))

        return asked


def _hashable(answer: T) -> T:
    # An answer that cannot be hashed fails here, where failures are answered for.
    hash(answer)
    return answer


class GuardedFilter(Guarded):
    """A user's NodeFilter. FitFailure is a verdict and passes through."""

    def prepare(self, session: Session, task: Task) -> Check | None:
        """Run PreFilter. When it fails: no opinion, or (`onError: fail`) a refusal of every node."""
        failures = self._failures

        def ask() -> Check | None:
            given = self._inner.prepare(session, task)
            return None if given is None else guarded_check(rule_of(given, "reject"), failures, session)

        return failures.attempt("prepare", ask, _no_node(failures))


def _no_node(failures: PluginFailures) -> Callable[[str], None]:
    def instead(sentence: str) -> None:
        if failures.refuses:
            raise FitFailure(failures.reason(sentence))

    return instead


def _asked_each_time(rule: ColumnRule[A]) -> ColumnRule[A]:
    """Return the rule without caches: failures of a user's plugin are counted by question."""
    rule.is_static = False
    return rule


def guarded_check(inner: Check, failures: PluginFailures, session: Session) -> Check:
    """Return a user's filter, prepared for a task."""
    ask = inner.pre_filter
    pre_filter = None if ask is None else lambda: failures.attempt("pre_filter", ask, _no_node(failures))
    codes = GuardedCodes(inner, failures, session)
    return _asked_each_time(ColumnRule(codes, inner.volatility, pre_filter=pre_filter))


class GuardedCodes:
    """The reason numbers of a user's filter."""

    def __init__(self, inner: Check, failures: PluginFailures, session: Session) -> None:
        self._inner, self._failures, self._session = inner, failures, session

    def __call__(self, rows: Rows, /) -> IntArray:
        """Return int32 [len(rows)]. A per-node function fails node by node, others as a whole."""
        if isinstance(self._inner.answer, ByNode):
            return np.array([self.one(row) for row in numbers(self._session.nodes.count, rows)], dtype=np.int32)
        count = _count(self._session, rows)
        return self._failures.attempt(
            "reject",
            lambda: self._checked(self._inner.many(rows), count),
            lambda sentence: np.full(count, self._instead(sentence), dtype=np.int32),
        )

    def one(self, row: int, /) -> int:
        """Return the reason number of one row."""
        ask = _one_of(self._inner)
        return self._failures.attempt(
            "reject_one", lambda: int(self._checked(np.array([ask(row)]), 1)[0]), self._instead, row
        )

    def _instead(self, sentence: str) -> int:
        if not self._failures.refuses:
            return 0
        return self._session.reasons.intern(self._failures.reason(sentence))

    def _checked(self, answer: object, count: int) -> IntArray:
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

    def prepare(self, session: Session, task: Task) -> Score | None:
        """Run PreScore. When it fails: no contribution."""

        def ask() -> Score | None:
            given = self._inner.prepare(session, task)
            return None if given is None else guarded_score(rule_of(given, "score"), self._failures, session)

        return self._failures.attempt("prepare", ask, lambda _: None)


def guarded_score(inner: Score, failures: PluginFailures, session: Session) -> Score:
    """Return a user's scorer, prepared for a task: 0 in place of a failed answer, or of one that is not a finite
    number.
    """
    constant, scores = inner.constant, GuardedScores(inner, failures, session)
    rule = ColumnRule(
        scores,
        inner.volatility,
        finish=None if inner.finish is None else scores.finish,
        constant=None if constant is None else float(_finite(constant, ())),
    )
    return _asked_each_time(rule)


class GuardedScores:
    """The scores of a user's scorer."""

    def __init__(self, inner: Score, failures: PluginFailures, session: Session) -> None:
        self._inner, self._failures, self._session = inner, failures, session

    def __call__(self, rows: Rows, /) -> FloatArray:
        """Return float64 [len(rows)], a new array. A per-node function fails node by node, others as a whole."""
        if isinstance(self._inner.answer, ByNode):
            return np.array([self.one(row) for row in numbers(self._session.nodes.count, rows)], dtype=np.float64)
        count = _count(self._session, rows)
        return self._failures.attempt(
            "score", lambda: _finite(self._inner.many(rows), (count,)), lambda _: np.zeros(count)
        )

    def one(self, row: int, /) -> float:
        """Return the score of one row."""
        ask = _one_of(self._inner)
        return self._failures.attempt("score_one", lambda: float(_finite(ask(row), ())), lambda _: 0.0, row)

    def finish(self, raw: FloatArray, /) -> FloatArray:
        """Run NormalizeScore."""
        finish: Any = self._inner.finish
        return self._failures.attempt("finish", lambda: _finite(finish(raw), raw.shape), lambda _: np.zeros(len(raw)))


def _one_of(inner: ColumnRule[Any]) -> Callable[[int], Any]:
    # Not by what is kept of all nodes: a node that fails must not decide for the others.
    answer: Any = inner.answer
    return answer.one if isinstance(answer, ByNode) else inner.one


def _count(session: Session, rows: Rows) -> int:
    return session.nodes.count if isinstance(rows, slice) else len(rows)


def _finite(answer: object, shape: tuple[int, ...]) -> FloatArray:
    scores = np.array(answer, dtype=np.float64)
    if scores.shape != shape:
        raise WrongAnswerError(f"expected scores of shape {list(shape)}, was {list(scores.shape)}")
    if not np.isfinite(scores).all():
        raise WrongAnswerError("a score that is not a finite number")
    return scores


# --- Valid answers, and what stands for others

Instead = Callable[[str], Any]  # sentence -> answer


class Answers(NamedTuple):
    """The answers that stand in for failures. `ignored`: as if the function were not asked; `refused`: a refusal
    (`onError: fail`). `is_one`: tells whether a value is an answer; `expected`: its description.
    """

    ignored: Instead
    refused: Instead
    expected: str = "anything"
    is_one: Callable[[Any], bool] = lambda _: True

    def checked(self, answer: object) -> Any:
        """Return the answer. Raises WrongAnswerError for a value that is not one."""
        if not self.is_one(answer):
            raise WrongAnswerError(f"expected {self.expected}, was {type(answer).__name__}")
        return answer


def _always(answer: object) -> Instead:
    def instead(_: str) -> Any:
        return answer

    return instead


def _no_victims(vote: Vote) -> Instead:
    def instead(_: str) -> tuple[list[Task], Vote]:
        return [], vote

    return instead


def _verdict(sentence: str) -> ValidateResult:
    return ValidateResult("PluginFailed", sentence)


def _is(*kinds: type) -> Callable[[Any], bool]:
    def is_one(answer: object) -> bool:
        return isinstance(answer, kinds)

    return is_one


def _each(answer: object, kind: type) -> bool:
    """Return whether the value is a sequence of these alone."""
    return isinstance(answer, Sequence) and all(isinstance(each, kind) for each in cast("Sequence[object]", answer))


def _are_tasks(answer: object) -> bool:
    return _each(answer, Task)


def _are_victims(answer: object) -> bool:
    pair = cast("tuple[object, ...]", answer if isinstance(answer, tuple) else ())
    return len(pair) == 2 and _are_tasks(pair[0]) and isinstance(pair[1], Vote)


def _are_scores(answer: object) -> bool:
    return isinstance(answer, Mapping) and _each([*cast("Mapping[str, object]", answer).values()], Real)


def _are_gradients(answer: object) -> bool:
    return answer is None or _each(answer, Sequence)


def _both(answer: object, expected: str, is_one: Callable[[Any], bool]) -> Answers:
    return Answers(_always(answer), _always(answer), expected, is_one)


HANDLER: Final = "handler"
ORDER: Final = _both(0, "a number", _is(Real))
IF: Final = "True or False", _is(bool, np.bool_)
TEST: Final = Answers(_always(True), _always(False), *IF)
VOTE: Final = Answers(_always(Vote.ABSTAIN), _always(Vote.REJECT), "a Vote", _is(Vote))
VICTIMS: Final = Answers(_no_victims(Vote.ABSTAIN), _no_victims(Vote.REJECT), "(tasks, Vote)", _are_victims)
OBJECTION: Final = Answers(_always(None), str, "a text or None", _is(str, type(None)))
GRADIENT: Final = _both(None, "lists of domains or None", _are_gradients)
INSTEAD: Final[dict[str, Answers]] = {
    **dict.fromkeys(("JobOrder", "QueueOrder", "VictimQueueOrder", "TaskOrder", "SubJobOrder"), ORDER),
    **dict.fromkeys(("JobReady", "SubJobReady", "Preemptive", "Allocatable", "SimulateAllocatable"), TEST),
    **dict.fromkeys(("JobPipelined", "SubJobPipelined", "JobEnqueueable"), VOTE),
    **dict.fromkeys(("Preemptable", "Reclaimable", "UnifiedEvictable"), VICTIMS),
    **dict.fromkeys(("SimulatePredicate", "SimulateAddTask", "SimulateRemoveTask"), OBJECTION),
    **dict.fromkeys(("HyperNodeGradientForJob", "HyperNodeGradientForSubJob"), GRADIENT),
    "JobStarving": _both(False, *IF),  # an error evicts no task
    "Overused": Answers(_always(False), _always(True), *IF),
    "JobValid": Answers(_always(None), _verdict, "a ValidateResult or None", _is(ValidateResult, type(None))),
    "HyperNodeOrder": _both(MappingProxyType[str, float]({}), "numbers by name", _are_scores),
    "VictimTasks": _both((), "tasks", _are_tasks),
    "SimulatesNothing": _both(False, *IF),
    "BindContext": _both(None, "a BindContext or None", _is(BindContext, type(None))),
    "JobEnqueued": Answers(_always(None), _always(None)),  # informed, not asked
    HANDLER: _both(None, "a text or None", _is(str, type(None))),
}
"""Of every point that is asked through `guard`, and of event handlers."""


def guard(point: str, function: Callable[..., Any], failures: PluginFailures) -> Callable[..., Any]:
    """Return the function with its failures replaced, wrong answers among them."""
    answers = INSTEAD[point]
    instead = answers.refused if failures.refuses else answers.ignored

    def asked(*subject: Any, **named: Any) -> Any:
        row = next((each for each in subject if isinstance(each, int)), NOWHERE)  # the only numbers are nodes' rows
        return failures.attempt(point, lambda: answers.checked(function(*subject, **named)), instead, row)

    return asked


def guard_check(function: Callable[..., Any], failures: PluginFailures) -> Callable[..., Any]:
    """Guard PrePredicate, whose verdict is an exception."""

    def instead(sentence: str) -> None:
        if failures.refuses:
            raise FitFailure(failures.reason(sentence))

    def asked(task: Task) -> None:
        failures.attempt("PrePredicate", lambda: function(task), instead)

    return asked


def plain(rule: JobColumn | TaskKey | QueueKey | Mask[Any] | Callable[..., Any], session: Session) -> Any:
    """Return a rule given by columns as one of single jobs and tasks: the answers of a user's plugin may change at any
    moment.
    """
    match rule:
        case JobColumn():

            def compare(left: Job, right: Job) -> int:
                return comparing(rule.read())(left, right)

            return compare
        case TaskKey():
            return comparing_keys(rule.of)
        case QueueKey():
            return comparing_keys(rule.of)
        case Mask():

            def evictable(subject: object, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
                return rule.on_node(subject, candidates, session.residents.batch(candidates))

            return evictable
        case _:
            return rule


def guarded_rule(point: str, given: Any, failures: PluginFailures, session: Session) -> Any:
    """Return a guard around any object that a plugin registers at a point."""
    if point == "Predicate":
        return [GuardedFilter(one, failures) for one in lifted_filters(failures.plugin, given)]
    if point in ("NodeOrder", "BatchNodeOrder"):
        return [GuardedScorer(one, failures) for one in lifted_scorers(failures.plugin, given)]
    if point == "VictimTasks":
        return [guard(point, one, failures) for one in given]
    if point == "PrePredicate":
        return guard_check(given, failures)
    return guard(point, plain(given, session), failures)


class GuardedPoint:
    """An extension point as a user's plugin sees it."""

    def __init__(self, point: Point[Any], points: GuardedPoints) -> None:
        self._point, self._points = point, points

    def add(self, plugin: str, rule: object) -> None:
        """Register, under the plugin's own name whatever it says."""
        self._points.register(self._point, rule)

    def add_in_columns(self, plugin: str, rule: object, refusals: object) -> None:
        """Register the rule alone: a guarded rule is asked job by job."""
        self.add(plugin, rule)

    def __call__(self, *subject: Any, **named: Any) -> Any:
        """Ask all consulted rules."""
        ask: Any = self._point
        return ask(*subject, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("add"):
            raise AttributeError(f"{self._point.name} of a user's plugin has no {name}: what it adds must be guarded")
        return getattr(self._point, name)


class GuardedPoints:
    """`Session.points` as a user's plugin sees it. Nothing is registered before `settle`."""

    def __init__(self, session: Session, failures: PluginFailures) -> None:
        self._session = session
        self._failures = failures
        self._registrations: list[Callable[[], None]] = []

    def register(self, point: Point[Any], rule: object) -> None:
        """Register at a point."""
        given = guarded_rule(point.name, rule, self._failures, self._session)
        self._registrations.append(lambda: point.add(self._failures.plugin, given))

    def handle(self, allocate: Handler | None = None, deallocate: Handler | None = None) -> None:
        """Register event handlers. A failing handler refuses nothing, since the event has happened. An objection is
        shown under the plugin's name.
        """
        told = [None if one is None else self._told_of(one) for one in (allocate, deallocate)]
        self._registrations.append(lambda: self._session.points.handle(*told))

    def _told_of(self, handler: Handler) -> Handler:
        guarded = guard(HANDLER, handler, self._failures)

        def tell(task: Task, node: int) -> str | None:
            said: str | None = guarded(task, node)
            return None if said is None else f"{self._failures.plugin}: {said}"

        return tell

    def settle(self) -> None:
        """Make the registrations."""
        if self._registrations:
            # A user's rule may tell any two tasks apart, so no answer is foreseen from an earlier task's.
            self._session.points.unforeseeable = True
        for register in self._registrations:
            register()

    def __getattr__(self, name: str) -> Any:
        point = self._session.points.by_attribute().get(name)
        return getattr(self._session.points, name) if point is None else GuardedPoint(point, self)


class GuardedSession:
    """The session as a user's plugin sees it when it opens: the plugin reads everything, and registers through
    guards.
    """

    def __init__(self, session: Session, failures: PluginFailures) -> None:
        self._session = session
        self.points = GuardedPoints(session, failures)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class UserPlugin:
    """A plugin that cannot harm a cycle. Argument `onError`: `ignore` (default) or `fail`, see Failures; the user's
    own builder sees it too.

    A plugin that fails while it opens registers nothing; with `onError: fail` no node will do then.
    """

    def __init__(
        self,
        name: str,
        builder: PluginBuilder,
        arguments: PluginArguments,
        tell: Tell | None = None,
        asked: PluginQuestion | None = None,
    ) -> None:
        self.name = name
        self._builder, self._arguments = builder, arguments
        self.failures = PluginFailures(name, arguments, tell, asked)
        self._plugin: Plugin | None = None

    def on_session_open(self, session: Session) -> None:
        """Build the plugin and let it register."""
        self.failures.begin(session)
        guarded_session = GuardedSession(session, self.failures)

        def open_plugin() -> None:
            plugin = self._builder(self._arguments)
            plugin.on_session_open(cast("Session", guarded_session))
            guarded_session.points.settle()
            self._plugin = plugin

        def instead(sentence: str) -> None:
            if self.failures.refuses:
                session.points.predicate.add(self.name, [Closed(session, self.failures, sentence)])

        self.failures.attempt("on_session_open", open_plugin, instead)

    def on_session_close(self, session: Session) -> None:
        """Call the plugin; its failure is then only noted."""
        plugin = self._plugin
        if plugin is not None:
            self.failures.attempt("on_session_close", lambda: plugin.on_session_close(session), lambda _: None)


class Closed:
    """Refuses every node, because its plugin did not open."""

    reads = TEMPLATE_ONLY

    def __init__(self, session: Session, failures: PluginFailures, sentence: str) -> None:
        self.name = failures.plugin
        # Any column will do: it gives the length, and is overwritten whole.
        codes = session.nodes.max_pods.astype("int32")
        codes[:] = session.reasons.intern(failures.reason(sentence))
        self._check: Check = ColumnRule(codes)

    def prepare(self, session: Session, task: Task) -> Check:
        """Return one check for every task."""
        return self._check


def guarded(
    name: str, builder: PluginBuilder, tell: Tell | None = None, asked: PluginQuestion | None = None
) -> PluginBuilder:
    """Return a builder of guarded plugins; `tell` is called with failures, `asked` holds the plugin at work."""
    return lambda arguments: UserPlugin(name, builder, arguments, tell, asked)
