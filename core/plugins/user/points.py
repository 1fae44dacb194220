"""Stand-ins for a user's functions at the extension points, and for the session while the plugin registers them."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from core.plugins.user.nodes import GuardedFilter, GuardedScorer
from core.session.listed import FLAGS
from core.session.points import Verdict, Vote
from core.session.reasons import FitFailure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.objects.pod import Task
    from core.plugins.user.failures import Failures
    from core.session.node_points import NodeFilter, NodeScorer
    from core.session.points import Handler
    from core.session.session import Session

Instead = Callable[[str], Any]  # sentence -> answer


class Answers(NamedTuple):
    """What stands for the answer of a function that failed: as if not asked, and (`onError: fail`) a refusal."""

    ignored: Instead
    refused: Instead


def _always(answer: Any) -> Instead:
    def instead(_: str) -> Any:
        return answer

    return instead


def _both(answer: Any) -> Answers:
    return Answers(_always(answer), _always(answer))


def _no_victims(vote: Vote) -> Instead:
    def instead(_: str) -> tuple[list[Task], Vote]:
        return [], vote

    return instead


def _verdict(sentence: str) -> Verdict:
    return Verdict("PluginFailed", sentence)


ORDERS: Final = ("JobOrder", "QueueOrder", "VictimQueueOrder", "TaskOrder", "SubJobOrder", "ClusterOrder")
NOTHING: Final = _both(None)
TEST: Final = Answers(_always(True), _always(False))
VOTE: Final = Answers(_always(Vote.ABSTAIN), _always(Vote.REJECT))
VICTIMS: Final = Answers(_no_victims(Vote.ABSTAIN), _no_victims(Vote.REJECT))
INSTEAD: Final[dict[str, Answers]] = {
    **dict.fromkeys(ORDERS, _both(0)),
    **dict.fromkeys(("JobReady", "SubJobReady", "Preemptive", "Allocatable", "SimulateAllocatable"), TEST),
    **dict.fromkeys(("JobPipelined", "SubJobPipelined", "JobEnqueueable"), VOTE),
    **dict.fromkeys(("Preemptable", "Reclaimable", "UnifiedEvictable"), VICTIMS),
    **dict.fromkeys(("SimulatePredicate", "SimulateAddTask", "SimulateRemoveTask"), Answers(_always(None), str)),
    "JobStarving": _both(False),  # nobody is evicted because of an error
    "Overused": Answers(_always(False), _always(True)),
    "JobValid": Answers(_always(None), _verdict),
    "HyperNodeOrder": _both(MappingProxyType[str, float]({})),
    "VictimTasks": _both(()),
}
"""Points that are not listed answer None: nothing to say."""


def guard(point: str, function: Callable[..., Any], failures: Failures) -> Callable[..., Any]:
    """The function with its failures answered for."""
    ignored, refused = INSTEAD.get(point, NOTHING)
    instead = refused if failures.refuses else ignored

    def asked(*subject: Any, **named: Any) -> Any:
        return failures.attempt(point, lambda: function(*subject, **named), instead)

    return asked


def guard_check(function: Callable[..., Any], failures: Failures) -> Callable[..., Any]:
    """PrePredicate: its verdict is an exception."""

    def instead(sentence: str) -> None:
        if failures.refuses:
            raise FitFailure(failures.reason(sentence))

    def asked(task: Task) -> None:
        failures.attempt("PrePredicate", lambda: function(task), instead)

    return asked


def guarded_answer(point: str, given: Any, failures: Failures) -> Any:
    """Whatever a plugin registers at a point, guarded."""
    if point == "Predicate":
        return [GuardedFilter(one, failures) for one in given]
    if point in ("NodeOrder", "BatchNodeOrder"):
        return [GuardedScorer(one, failures) for one in given]
    if point == "VictimTasks":
        return [guard(point, one, failures) for one in given]
    if point == "PrePredicate":
        return guard_check(given, failures)
    return guard(point, given, failures)


class GuardedPoints:
    """`Session.points` as a user's plugin sees it. Nothing is registered before `settle`.

    Sort keys for tasks are not taken: what a user's order says may change.
    """

    def __init__(self, session: Session, failures: Failures) -> None:
        self._session = session
        self._failures = failures
        self._registrations: list[Callable[[], None]] = []
        self.task_keys: dict[str, Any] = {}

    def add(self, point: str, plugin: str, function: Any) -> None:
        """Register; raises KeyError for a point that is none."""
        if point not in FLAGS:
            raise KeyError(f"no extension point {point!r}")
        given = guarded_answer(point, function, self._failures)
        self._registrations.append(lambda: self._session.points.add(point, self._failures.plugin, given))

    def handle(self, allocate: Handler | None = None, deallocate: Handler | None = None) -> None:
        """Register event handlers. One that fails refuses nothing: what it was told of has happened."""
        told = [None if one is None else guard("handler", one, self._failures) for one in (allocate, deallocate)]
        self._registrations.append(lambda: self._session.points.handle(*told))

    def settle(self) -> None:
        """Make the registrations."""
        if self._registrations:
            self._session.points.unforeseeable = True
        for register in self._registrations:
            register()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session.points, name)


class GuardedSession:
    """The session as a user's plugin sees it when it opens: it reads everything, and registers through guards."""

    def __init__(self, session: Session, failures: Failures) -> None:
        self._session = session
        self.points = GuardedPoints(session, failures)

    def add_predicate(self, plugin: str, filters: Sequence[NodeFilter]) -> None:
        """As Session.add_predicate."""
        self.points.add("Predicate", plugin, filters)

    def add_node_order(self, plugin: str, scorers: Sequence[NodeScorer]) -> None:
        """As Session.add_node_order."""
        self.points.add("NodeOrder", plugin, scorers)

    def add_batch_node_order(self, plugin: str, scorers: Sequence[NodeScorer]) -> None:
        """As Session.add_batch_node_order."""
        self.points.add("BatchNodeOrder", plugin, scorers)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)
