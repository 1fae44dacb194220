# SPDX-License-Identifier: Apache-2.0
"""Invariants one cycle after the faults have stopped, long before the system is at rest; binds that failed.

The cache sees every change in time: a change that it has not noted, although it was sent, and although no actor it
needs was away, it must know a few seconds later. Then its books are what the api has, except binds that have not
succeeded: one that failed is looked at again after a while, and one without an answer is given up after a minute; until
then its room counts as taken, as in Volcano. Which ones these are the journal says, not the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

from pumice.actors.errors import ActorFailedError
from pumice.actors.runtime.mailbox import expected
from pumice.core.messages.commands import CheckView, Get
from pumice.core.messages.events import BeganAnew, BindRefused, BindTimedOut, Bound, ForgotBind
from pumice.core.messages.replies import ViewChecked
from pumice.core.objects.parts import WATCHED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.actors.system.ports import CachePort
    from pumice.actors.system.system import System
    from pumice.core.messages.events import Outcome, ViewOperation
    from pumice.core.state.view import View
    from pumice.proof.storm.invariants.monitor import Monitor
    from pumice.proof.storm.invariants.truth import StormTruth

# --- Failed binds

FIRST_S: Final = 0.005
LONGEST_S: Final = 1000.0
SLACK_S: Final = 120.0
"""Allowance for an api and a journal that are slow: looking means asking, and the result comes with the next cycle."""
DOUBLINGS: Final = 4
"""Asking may fail too, which counts as one more failure: so many are allowed for."""


class Failure(NamedTuple):
    """A failure. `by`: when the pod must have been looked at (event-loop time, seconds); `revision`: the journal's by
    then, which every reader sees.
    """

    pod: str
    uid: str
    by: float
    revision: int


class Failures:
    """Failures that the cache has not looked at since."""

    def __init__(self) -> None:
        self._open: dict[str, Failure] = {}
        self._counts: dict[str, int] = {}

    def outcome(self, outcome: Outcome, clock: Callable[[], float], revision: int) -> None:
        """Note that a bind ended, when the journal had reached `revision`. `clock` (event-loop time, seconds) is asked
        only for failures.
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
        """Note that the cache has looked, or has crashed and lists everything. Return sentences on the problems."""
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
        """Yield those that the cache has not looked at though they still wait, in words."""
        for failure in [each for each in self._open.values() if each.by < now]:
            pod = truth.pods.get(failure.pod)
            if pod is None or pod.uid != failure.uid or pod.node or pod.ended or pod.deleting:
                del self._open[failure.uid]  # the watch has delivered it
            else:
                yield f"pod {failure.pod} could not be bound, and no cycle looked at it for {SLACK_S:g} s too long"


GLANCE_S: Final = 0.03
"""Between two looks whether the cache knows of every change."""
MOST_GLANCES: Final = 100
"""Three seconds, in which the cache may be behind the api's changes: a broken watch is read again after 0.02 s."""
MOST: Final = 3

Places = dict[str, tuple[str, str]]


async def until_idle(
    system: System, monitor: Monitor, view: Callable[[], View], period_s: float, problems: list[str]
) -> None:
    """Wait until the system is at rest. `problems` gets sentences on the problems one cycle (`period_s`) later.

    `view`: the one that the cache has now.
    """
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_agree_soon, system, monitor, view, period_s, problems)
        await system.until_idle()
        tasks.cancel_scope.cancel()


async def _agree_soon(
    system: System, monitor: Monitor, view: Callable[[], View], period_s: float, problems: list[str]
) -> None:
    """Compare books with the cache once it has heard of everything, except binds that have not succeeded."""
    await anyio.sleep(period_s)
    checked = await _caught_up(system, view)
    if checked is None:
        problems.append(f"the cache does not see what the api published {MOST_GLANCES * GLANCE_S:g} s ago and more")
    else:
        problems += checked.problems
        problems += misplaced(places_of(view()), places_in(monitor.truth), may_hold(monitor))


async def _caught_up(system: System, view: Callable[[], View]) -> ViewChecked | None:
    """Return the cache's own check once it has seen all changes; None when it does not get there."""
    newest = _newest(system)
    glances = 0
    while glances < MOST_GLANCES:
        version = view().version
        checked = await _answer_of(system)
        if checked is not None:
            behind = not system.store.tables.changed_since(checked.revision).isdisjoint(WATCHED)
            if not behind and view().version == version:
                return checked
            if checked.revision >= newest:
                newest, glances = _newest(system), 0
            elif system.store.log.published >= newest:
                glances += 1
        await anyio.sleep(GLANCE_S)
    return None


def _newest(system: System) -> int:
    """Return the revision of the newest change that the cache must see."""
    return max((at for kind, at in system.store.tables.kind_revisions.items() if kind in WATCHED), default=0)


async def _answer_of(system: System) -> ViewChecked | None:
    """Return the cache's own check. Waits while the cache or the api, from which it lists, is away: crashed, or
    writing.

    None: one of them crashed over it.
    """
    cache: CachePort = system.switchboard.mailboxes["cache"]
    try:
        await system.api.ask(Get("Namespace", "", "default"))
        return expected(await cache.ask(CheckView()), ViewChecked)
    except ActorFailedError:
        return None


def may_hold(monitor: Monitor) -> dict[str, str]:
    """Return nodes by uid of pods whose bind this process decided and which are not bound yet."""
    mine = {uid: each for uid, each in monitor.decided.items() if each.life == monitor.lives}
    return {uid: each.bind.node for uid, each in mine.items() if uid not in monitor.truth.bound_at}


def misplaced(ours: Places, theirs: Places, open_binds: Mapping[str, str]) -> list[str]:
    """Return pods (key: uid and node) that the cache has elsewhere than the api has.

    `open_binds`: nodes by uid that the cache may have pods on, though the api has them nowhere.
    """
    problems: list[str] = []
    for key in sorted(ours.keys() | theirs.keys()):
        mine, true = ours.get(key), theirs.get(key)
        excused = mine is not None and true is None and open_binds.get(mine[0]) == mine[1]
        if mine != true and not excused:
            problems.append(f"pod {key} is {_on(mine)} in the cache's books and {_on(true)} in the api's")
    return problems[:MOST]


def places_of(view: View) -> Places:
    """Return pods that take up room on a node, in the scheduler's view."""
    homes = view.tasks.resides
    return {task.key: (task.uid, homes[task.row]) for task in view.tasks.by_key.values() if homes[task.row]}


def places_in(truth: StormTruth) -> Places:
    """Return pods that take up room on a node, by what the journal says."""
    return {pod.key: (pod.uid, pod.node) for pod in truth.pods.values() if pod.on_node}


def _on(place: tuple[str, str] | None) -> str:
    return "nowhere" if place is None else f"on {place[1]} ({place[0]})"
