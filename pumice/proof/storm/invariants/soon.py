"""What must hold one cycle after the faults have stopped, long before the system is at rest.

The cache hears of everything in time: what it has not heard of though it was told, and though nobody it needs was away,
it must know a few seconds later. Then its books are what the api has, but for binds that have not come true: one that
failed is looked at again after a while, and one that nobody answered is given up after a minute; until then its room
counts as taken, as in Volcano. Which ones these are the journal says, not the cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import anyio

from pumice.actors.errors import ActorFailedError
from pumice.actors.runtime.asking import expected
from pumice.core.messages.commands import CheckView, Get
from pumice.core.messages.replies import ViewChecked
from pumice.core.state.watched import WATCHED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.actors.system.ports import CachePort
    from pumice.actors.system.system import System
    from pumice.core.state.view import View
    from pumice.proof.storm.invariants.monitor import Monitor
    from pumice.proof.storm.invariants.truth import StormTruth

GLANCE_S: Final = 0.03
"""Between two looks whether the cache knows of every change."""
MOST_GLANCES: Final = 100
"""Three seconds, in which the cache may be behind what the api has told: a broken watch is read again after 0.02 s."""
MOST: Final = 3

Places = dict[str, tuple[str, str]]


async def until_idle(
    system: System, monitor: Monitor, view: Callable[[], View], period_s: float, problems: list[str]
) -> None:
    """Wait until the system is at rest. `problems` gets what was wrong one cycle (`period_s`) on, in words.

    `view`: the one that the cache has now.
    """
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_agree_soon, system, monitor, view, period_s, problems)
        await system.until_idle()
        tasks.cancel_scope.cancel()


async def _agree_soon(
    system: System, monitor: Monitor, view: Callable[[], View], period_s: float, problems: list[str]
) -> None:
    """Compare books with the cache once it has heard of everything, but for binds that have not come true."""
    await anyio.sleep(period_s)
    checked = await _caught_up(system, view)
    if checked is None:
        problems.append(f"the cache does not hear of what the api told {MOST_GLANCES * GLANCE_S:g} s ago and more")
    else:
        problems += checked.problems
        problems += misplaced(places_of(view()), places_in(monitor.truth), may_hold(monitor))


async def _caught_up(system: System, view: Callable[[], View]) -> ViewChecked | None:
    """What the cache says of itself when it has heard of everything; None when it does not hear of something."""
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
    """The revision of the newest change that the cache must hear of."""
    return max((at for kind, at in system.store.tables.kind_revisions.items() if kind in WATCHED), default=0)


async def _answer_of(system: System) -> ViewChecked | None:
    """What the cache says of itself. Waits while it or the api, from which it lists, is away: crashed, or writing.

    None: one of them crashed over it.
    """
    cache = cast("CachePort", system.switchboard.mailboxes["cache"])
    try:
        await system.api.ask(Get("Namespace", "", "default"))
        return expected(await cache.ask(CheckView()), ViewChecked)
    except ActorFailedError:
        return None


def may_hold(monitor: Monitor) -> dict[str, str]:
    """Nodes by uid of pods whose bind this process decided and which have not come to be bound."""
    mine = {uid: each for uid, each in monitor.decided.items() if each.life == monitor.lives}
    return {uid: each.bind.node for uid, each in mine.items() if uid not in monitor.truth.bound_at}


def misplaced(ours: Places, theirs: Places, open_binds: Mapping[str, str]) -> list[str]:
    """Pods (key: uid and node) that the cache has elsewhere than the api has.

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
    """Pods that take up room on a node, in the scheduler's view."""
    homes = view.tasks.resides
    return {task.key: (task.uid, homes[task.row]) for task in view.tasks.by_key.values() if homes[task.row]}


def places_in(truth: StormTruth) -> Places:
    """Pods that take up room on a node, by what the journal says."""
    return {pod.key: (pod.uid, pod.node) for pod in truth.pods.values() if pod.on_node}


def _on(place: tuple[str, str] | None) -> str:
    return "nowhere" if place is None else f"on {place[1]} ({place[0]})"
