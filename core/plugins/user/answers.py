"""What a user's plugin may answer at each extension point, and what stands for an answer that is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

import numpy as np

from pumice.core.messages.decisions import BindContext
from pumice.core.objects.pod import Task
from pumice.core.plugins.user.nodes import WrongAnswerError
from pumice.core.session.points.votes import ValidateResult, Vote

Instead = Callable[[str], Any]  # sentence -> answer


class Answers(NamedTuple):
    """`ignored`, `refused`: what stands for the answer of a function that failed: as if not asked, and a refusal
    (`onError: fail`). `is_one`: whether something is an answer; `expected` says it in words.
    """

    ignored: Instead
    refused: Instead
    expected: str = "anything"
    is_one: Callable[[Any], bool] = lambda _: True

    def checked(self, answer: Any) -> Any:
        """The answer. Raises WrongAnswerError for what is none."""
        if not self.is_one(answer):
            raise WrongAnswerError(f"expected {self.expected}, was {type(answer).__name__}")
        return answer


def _always(answer: Any) -> Instead:
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
    def is_one(answer: Any) -> bool:
        return isinstance(answer, kinds)

    return is_one


def _each(answer: Any, kind: type) -> bool:
    """Whether that is a sequence of these alone."""
    return isinstance(answer, Sequence) and all(isinstance(each, kind) for each in cast("Sequence[object]", answer))


def _are_tasks(answer: Any) -> bool:
    return _each(answer, Task)


def _are_victims(answer: Any) -> bool:
    pair = cast("tuple[object, ...]", answer if isinstance(answer, tuple) else ())
    return len(pair) == 2 and _are_tasks(pair[0]) and isinstance(pair[1], Vote)


def _are_scores(answer: Any) -> bool:
    return isinstance(answer, Mapping) and _each([*cast("Mapping[str, object]", answer).values()], Real)


def _are_gradients(answer: Any) -> bool:
    return answer is None or _each(answer, Sequence)


def _both(answer: Any, expected: str, is_one: Callable[[Any], bool]) -> Answers:
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
    "JobStarving": _both(False, *IF),  # nobody is evicted because of an error
    "Overused": Answers(_always(False), _always(True), *IF),
    "JobValid": Answers(_always(None), _verdict, "a ValidateResult or None", _is(ValidateResult, type(None))),
    "HyperNodeOrder": _both(MappingProxyType[str, float]({}), "numbers by name", _are_scores),
    "VictimTasks": _both((), "tasks", _are_tasks),
    "SimulatesNothing": _both(False, *IF),
    "BindContext": _both(None, "a BindContext or None", _is(BindContext, type(None))),
    "JobEnqueued": Answers(_always(None), _always(None)),  # told, not asked
    HANDLER: _both(None, "a text or None", _is(str, type(None))),
}
"""Of every point that is asked through `guard`, and of event handlers."""
