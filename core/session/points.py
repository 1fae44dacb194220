"""Every extension point and how the plugins' answers are merged. Source: Volcano `framework/session_plugins.go`
(reference section 3).

A plugin registers at most one function per point under its name (VictimTasks takes several). A function is consulted
once for each place where the configuration lists its plugin with the point's flag on, in tier order. The merge rule is
in each method's docstring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from core.session.batches import BatchPoints
from core.session.binding import merged
from core.session.listed import FLAGS, Listed, listed_plugins
from core.state.derived import itself

if TYPE_CHECKING:
    from config.schema import SchedulerConfig
    from core.messages.decisions import BindContext
    from core.objects.pod import Task
    from core.objects.queue import Queue
    from core.session.listed import Tiers
    from core.state.derived import DerivedColumns
    from core.state.jobs import Job


class Vote(IntEnum):
    """A plugin's vote."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class Verdict(NamedTuple):
    """Why a job is not valid."""

    reason: str
    message: str


Compare = Callable[[Any, Any], int]  # negative: the first comes first
JobTest = Callable[["Job"], bool]
JobVote = Callable[["Job"], Vote]
Evictable = Callable[["Task", "Sequence[Task]"], "tuple[list[Task], Vote]"]
Victims = Callable[["Sequence[Task]"], "list[Task]"]
# Trials of a preemption, one node at a time. `state` belongs to one trial on one node and starts empty; a plugin keeps
# its part under its own name and starts it from the session as it stands. The session itself must not change.
SimulateChange = Callable[["dict[str, Any]", "Task", "Task", int], "str | None"]  # (state, preemptor, task, node's row)
SimulateAllocatableTest = Callable[["dict[str, Any]", "Queue", "Task"], bool]  # (state, queue, preemptor)
SimulatePredicateTest = Callable[["dict[str, Any]", "Task", int], "str | None"]  # (state, preemptor, node's row)
QueueTest = Callable[["Queue"], bool]
AllocatableTest = Callable[["Queue", "Task"], bool]
PreemptiveTest = Callable[["Queue", "Sequence[Task]"], bool]


class Handler(Protocol):
    """An event handler: called with the task and its node's row after a placement or before its undoing; a text is an
    error.
    """

    def __call__(self, task: Task, node: int) -> str | None: ...


class Registered(dict[tuple[str, str], Any]):
    """(point, plugin) -> its function, beside who is consulted at all."""

    def __init__(self, listed: Listed) -> None:
        super().__init__()
        self._listed = listed

    def tiers(self, point: str) -> Tiers:
        """The plugins consulted at a point, tier by tier; tiers without one are left out. KeyError for no point."""
        tiers = [tuple([name for name in tier if (point, name) in self]) for tier in self._listed[point]]
        return tuple([tier for tier in tiers if tier])

    def flat(self, point: str) -> tuple[Any, ...]:
        """The functions consulted at a point, in tier order. KeyError for no point."""
        asked = [(point, name) for tier in self._listed[point] for name in tier]
        return tuple([self[key] for key in asked if key in self])


class Consulted(dict[str, tuple[Any, ...]]):
    """Point -> its enabled functions in tier order, found when somebody first asks."""

    def __init__(self, registered: Registered) -> None:
        super().__init__()
        self._registered = registered

    def __missing__(self, point: str) -> tuple[Any, ...]:
        found = self[point] = self._registered.flat(point)
        return found


class Points:
    """The functions the plugins registered, and their merged answers."""

    def __init__(self, config: SchedulerConfig, derived: DerivedColumns | None = None) -> None:
        self._empty_vetoes = "empty-answer-vetoes" in config.pumice.fix
        self._stays_empty = "intersection-stays-empty" in config.pumice.fix
        self._registered = Registered(Listed(config) if derived is None else listed_plugins(derived, itself(config)))
        self._tiers: dict[str, tuple[tuple[Any, ...], ...]] = {}
        self._flat = Consulted(self._registered)
        self.task_keys: dict[str, Callable[[Task], Any]] = {}
        self.job_keys: dict[str, Callable[[Job], Any]] = {}
        self.batches = BatchPoints()
        self.unforeseeable = False  # whether a function stands somewhere that may tell any two tasks apart
        self._rejected: tuple[str, Any] = ("", None)  # the last vote against its subject: point and function
        self.on_allocate: list[Handler] = []
        self.on_deallocate: list[Handler] = []

    # --- registration

    def add(self, point: str, plugin: str, function: Any) -> None:
        """Register `function` of `plugin` at `point` (a key of FLAGS); a second registration replaces the first."""
        if point not in FLAGS:
            raise KeyError(point)
        self._registered[point, plugin] = function
        if self._flat or self._tiers:  # somebody has asked already
            self._tiers.pop(point, None)
            self._flat.pop(point, None)

    def handle(self, allocate: Handler | None = None, deallocate: Handler | None = None) -> None:
        """Register event handlers; all are called, in order of registration."""
        if allocate is not None:
            self.on_allocate.append(allocate)
        if deallocate is not None:
            self.on_deallocate.append(deallocate)

    def tiers(self, point: str) -> tuple[tuple[Any, ...], ...]:
        """The enabled functions of a point, tier by tier; tiers without one are left out."""
        found = self._tiers.get(point)
        if found is None:
            functions, named = self._registered, self._registered.tiers(point)
            found = self._tiers[point] = tuple([tuple([functions[point, name] for name in tier]) for tier in named])
        return found

    def tiers_of_names(self, point: str) -> Tiers:
        """The plugins behind `tiers`."""
        return self._registered.tiers(point)

    @property
    def mends_empty_answers(self) -> bool:
        """Whether a fix changes what an empty answer does to the tiers."""
        return self._empty_vetoes or self._stays_empty

    def flat(self, point: str) -> tuple[Any, ...]:
        """The enabled functions of a point in tier order."""
        return self._flat[point]

    def enabled_names(self, point: str) -> tuple[str, ...]:
        """The plugins consulted at a point, in tier order."""
        return tuple([name for tier in self.tiers_of_names(point) for name in tier])

    @property
    def rejecter(self) -> str:
        """The plugin that decided the last vote against its subject."""
        point, ask = self._rejected
        return next(name for (at, name), function in self._registered.items() if at == point and function is ask)

    # --- merge rules

    def first_nonzero(self, point: str, left: Any, right: Any) -> int:
        """The orders: the first plugin that tells the two apart decides; 0 when none does."""
        for compare in self._flat[point]:
            order: int = compare(left, right)
            if order:
                return order
        return 0

    def all_agree(self, point: str, *subject: Any) -> bool:
        """JobReady, SubJobReady, Allocatable, SimulateAllocatable, Preemptive:

        AND over all tiers, True with no plugin.
        """
        for test in self._flat[point]:  # noqa: SIM110 - asked for every task, several times
            if not test(*subject):
                return False
        return True

    def any_true(self, point: str, *subject: Any) -> bool:
        """Overused: OR over all tiers, False with no plugin."""
        for test in self._flat[point]:  # noqa: SIM110 - as above
            if test(*subject):
                return True
        return False

    def vote(self, point: str, subject: Any) -> bool:
        """JobPipelined, SubJobPipelined, JobEnqueueable: a Reject decides at once, a Permit at the end of its tier;
        else True.
        """
        for tier in self.tiers(point):
            permitted = False
            for ask in tier:
                answer = ask(subject)
                if answer < 0:
                    self._rejected = point, ask
                    return False
                permitted = permitted or answer > 0
            if permitted:
                return True
        return True

    def first_tier_agrees(self, point: str, subject: Any) -> bool:
        """JobStarving: AND within the first tier that has a plugin; later tiers are not asked. False with no plugin."""
        tiers = self.tiers(point)
        return bool(tiers) and all(test(subject) for test in tiers[0])

    def first_failing(self, point: str, subject: Any) -> Verdict | None:
        """JobValid: the first verdict; None when all are content."""
        for check in self._flat[point]:
            verdict: Verdict | None = check(subject)
            if verdict is not None:
                return verdict
        return None

    def first_answer(self, point: str, *subject: Any) -> Any:
        """BestNode, TargetJob, gradients: the first plugin with an answer; None when there is none."""
        for ask in self._flat[point]:
            answer = ask(*subject)
            if answer is not None:
                return answer
        return None

    def first_error(self, point: str, *subject: Any) -> str | None:
        """SimulateAddTask, SimulateRemoveTask, SimulatePredicate: the first plugin's text; None when all succeed."""
        for ask in self._flat[point]:
            error: str | None = ask(*subject)
            if error is not None:
                return error
        return None

    def bind_context(self, task: Task) -> BindContext | None:
        """BindContext: every plugin is asked what the bind of a placed task is to carry; all of it is carried."""
        said = [context for ask in self._flat["BindContext"] if (context := ask(task)) is not None]
        return merged(said) if said else None

    def call_all(self, point: str, *subject: Any) -> None:
        """JobEnqueued, ReservedNodes: every plugin is told."""
        for tell in self._flat[point]:
            tell(*subject)

    def tiered_intersection(self, point: str, subject: Any, candidates: Sequence[Task]) -> list[Task]:
        """Preemptable, Reclaimable, UnifiedEvictable: the plugins of a tier must agree, the first tier with victims
        decides.

        An empty answer ends its tier without victims (fix empty-answer-vetoes: it ends the search); an intersection
        that becomes empty is started anew by the next plugin (fix intersection-stays-empty: it is not).
        """
        for tier in self.tiers(point):
            victims: list[Task] | None = None
            for ask in tier:
                answer, ballot = ask(subject, candidates)
                if ballot == Vote.ABSTAIN:
                    continue
                if not answer:
                    if self._empty_vetoes:
                        return []
                    victims = None
                    break
                # Go's nil and an emptied slice are the same to the next plugin.
                starts = victims is None or not (victims or self._stays_empty)
                victims = list(answer) if victims is None or starts else _intersection(victims, answer)
            if victims:
                return victims
        return []

    def first_tier_union(self, point: str, candidates: Sequence[Task]) -> list[Task]:
        """VictimTasks: union inside a tier, the first tier with a victim decides."""
        for tier in self.tiers(point):
            victims: dict[str, Task] = {}
            for functions in tier:
                for ask in functions:
                    victims.update({task.uid: task for task in ask(candidates)})
            if victims:
                return list(victims.values())
        return []


def _intersection(victims: list[Task], answer: Sequence[Task]) -> list[Task]:
    names = {task.uid for task in answer}
    return [task for task in victims if task.uid in names]
