"""Stand-ins for a user's functions at the extension points, and for the session while the plugin registers them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pumice.core.messages.failed_answers import NOWHERE
from pumice.core.plugins.user.answers import HANDLER, INSTEAD
from pumice.core.plugins.user.nodes import GuardedFilter, GuardedScorer
from pumice.core.session.points.node_points import lifted_filters, lifted_scorers
from pumice.core.session.points.orders import JobColumn, TaskKey, comparing, comparing_keys
from pumice.core.session.points.point import Point
from pumice.core.session.points.victims import Mask
from pumice.core.session.points.votes import Vote
from pumice.core.session.reasons import FitFailure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.plugins.user.failures import PluginFailures
    from pumice.core.session.points.binding import Handler
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job


def guard(point: str, function: Callable[..., Any], failures: PluginFailures) -> Callable[..., Any]:
    """The function with its failures answered for, answers of a wrong kind among them."""
    answers = INSTEAD[point]
    instead = answers.refused if failures.refuses else answers.ignored

    def asked(*subject: Any, **named: Any) -> Any:
        row = next((each for each in subject if isinstance(each, int)), NOWHERE)  # the only numbers are nodes' rows
        return failures.attempt(point, lambda: answers.checked(function(*subject, **named)), instead, row)

    return asked


def guard_check(function: Callable[..., Any], failures: PluginFailures) -> Callable[..., Any]:
    """PrePredicate: its verdict is an exception."""

    def instead(sentence: str) -> None:
        if failures.refuses:
            raise FitFailure(failures.reason(sentence))

    def asked(task: Task) -> None:
        failures.attempt("PrePredicate", lambda: function(task), instead)

    return asked


def plain(rule: JobColumn | TaskKey | Mask[Any] | Callable[..., Any], session: Session) -> Any:
    """A rule given by columns as one of single jobs and tasks: what a user's plugin says may change at any moment."""
    match rule:
        case JobColumn():

            def compare(left: Job, right: Job) -> int:
                return comparing(rule.read())(left, right)

            return compare
        case TaskKey():
            return comparing_keys(rule.of)
        case Mask():

            def evictable(subject: Any, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
                return rule.on_node(subject, candidates, session.residents.batch(candidates))

            return evictable
        case _:
            return rule


def guarded_rule(point: str, given: Any, failures: PluginFailures, session: Session) -> Any:
    """Whatever a plugin registers at a point, guarded."""
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

    def add(self, plugin: str, rule: Any) -> None:
        """Register, under the plugin's own name whatever it says."""
        self._points.register(self._point, rule)

    def __call__(self, *subject: Any, **named: Any) -> Any:
        """Ask all who are consulted."""
        ask: Any = self._point
        return ask(*subject, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._point, name)


class GuardedPoints:
    """`Session.points` as a user's plugin sees it. Nothing is registered before `settle`."""

    def __init__(self, session: Session, failures: PluginFailures) -> None:
        self._session = session
        self._failures = failures
        self._registrations: list[Callable[[], None]] = []

    def register(self, point: Point[Any], rule: Any) -> None:
        """Register at a point."""
        given = guarded_rule(point.name, rule, self._failures, self._session)
        self._registrations.append(lambda: point.add(self._failures.plugin, given))

    def handle(self, allocate: Handler | None = None, deallocate: Handler | None = None) -> None:
        """Register event handlers. One that fails refuses nothing: what it was told of has happened. An objection is
        told under the plugin's name.
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
            self._session.points.unforeseeable = True
        for register in self._registrations:
            register()

    def __getattr__(self, name: str) -> Any:
        point = self._session.points.by_attribute().get(name)
        return getattr(self._session.points, name) if point is None else GuardedPoint(point, self)


class GuardedSession:
    """The session as a user's plugin sees it when it opens: it reads everything, and registers through guards."""

    def __init__(self, session: Session, failures: PluginFailures) -> None:
        self._session = session
        self.points = GuardedPoints(session, failures)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)
