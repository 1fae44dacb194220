"""Binds that failed: the cache looks at each such pod again, sooner the less often it has failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from pumice.core.messages.events import BindRefused, BindTimedOut, Bound
from pumice.core.messages.operations import BeganAnew, ForgotBind

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.messages.events import Outcome
    from pumice.core.messages.operations import ViewOperation
    from pumice.proof.storm.invariants.truth import StormTruth

FIRST_S: Final = 0.005
LONGEST_S: Final = 1000.0
SLACK_S: Final = 120.0
"""For an api and a journal that are slow: looking means asking, and what was seen is told with the next cycle."""
DOUBLINGS: Final = 4
"""Asking may fail too, which counts as one more failure: so many are allowed for."""


class Failure(NamedTuple):
    """`by`: when the pod must have been looked at (event-loop time, seconds); `revision`: what the journal had by then,
    which whoever looks sees.
    """

    pod: str
    uid: str
    by: float
    revision: int


class Failures:
    """What has failed and was not looked at since."""

    def __init__(self) -> None:
        self._open: dict[str, Failure] = {}
        self._counts: dict[str, int] = {}

    def outcome(self, outcome: Outcome, clock: Callable[[], float], revision: int) -> None:
        """A bind ended, when the journal had come to `revision`. `clock` (event-loop time, seconds) is asked only of
        what failed.
        """
        if isinstance(outcome, Bound):
            self._open.pop(outcome.uid, None)
            self._counts.pop(outcome.uid, None)
        elif isinstance(outcome, BindRefused | BindTimedOut):
            uid = outcome.uid
            count = self._counts[uid] = self._counts.get(uid, 0) + 1
            delay = min(FIRST_S * 2.0 ** min(count - 1 + DOUBLINGS, 60), LONGEST_S)
            self._open[uid] = Failure(f"{outcome.namespace}/{outcome.name}", uid, clock() + delay + SLACK_S, revision)

    def operation(self, operation: ViewOperation, truth: StormTruth) -> str:
        """The cache has looked; or it has crashed, and lists everything. What is wrong with that, in words."""
        match operation:
            case BeganAnew():
                self._open.clear()
                self._counts.clear()
            case ForgotBind():
                failure = self._open.pop(operation.uid, None)
                bound = truth.bound_at.get(operation.uid, 0)
                if failure is not None and operation.revision < bound <= failure.revision:
                    return f"pod {failure.pod} was bound at {bound}, and taken for not bound at {operation.revision}"
            case _:
                pass
        return ""

    def overdue(self, truth: StormTruth, now: float) -> Iterator[str]:
        """Those that nobody looked at though they still wait, in words."""
        for failure in [each for each in self._open.values() if each.by < now]:
            pod = truth.pods.get(failure.pod)
            if pod is None or pod.uid != failure.uid or pod.node or pod.ended or pod.deleting:
                del self._open[failure.uid]  # the watch has told
            else:
                yield f"pod {failure.pod} could not be bound, and nobody looked at it for {SLACK_S:g} s too long"
