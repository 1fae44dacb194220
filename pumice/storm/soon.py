"""What must hold one cycle after the faults have stopped, long before the system is at rest.

A bind that failed is looked at again after a while, and one that nobody answered is given up after a minute; until then
its room counts as taken, as in Volcano. All else in the cache's books is what the api has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import anyio

from core.messages.commands import CheckView
from core.messages.replies import ViewChecked
from core.state.watched import WATCHED

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.ports import CachePort
    from actors.system import System
    from core.state.view import View
    from pumice.storm.truth import Truth

GLANCE_S: Final = 0.03
"""Between two looks whether the cache knows of every change."""
MOST: Final = 3

Places = dict[str, tuple[str, str]]


async def until_idle(system: System, truth: Truth, view: Callable[[], View], period_s: float) -> list[str]:
    """Wait until the system is at rest. Returns what was wrong one cycle (`period_s`) on, in words.

    `view`: the one that the cache has now.
    """
    problems: list[str] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_agree_soon, system, truth, view, period_s, problems)
        await system.until_idle()
        tasks.cancel_scope.cancel()
    return problems


async def _agree_soon(
    system: System, truth: Truth, view: Callable[[], View], period_s: float, problems: list[str]
) -> None:
    """As soon as the cache has heard of everything: its books, but for what is in doubt."""
    cache = cast("CachePort", system.switchboard.mailboxes["cache"])
    await anyio.sleep(period_s)
    while True:
        version = view().version
        checked = await cache.ask_for(CheckView(), ViewChecked)
        behind = not system.store.tables.changed_since(checked.revision).isdisjoint(WATCHED)
        if not behind and view().version == version:
            break
        await anyio.sleep(GLANCE_S)
    problems += checked.problems
    problems += misplaced(places_of(view()), places_in(truth), checked.in_doubt)


def misplaced(ours: Places, theirs: Places, in_doubt: tuple[str, ...]) -> list[str]:
    """Pods (key: uid and node) that the cache has elsewhere than the api has, though nothing is open about them."""
    doubtful = set(in_doubt)
    problems: list[str] = []
    for key in sorted(ours.keys() | theirs.keys()):
        mine, true = ours.get(key), theirs.get(key)
        if mine != true and doubtful.isdisjoint(each[0] for each in (mine, true) if each is not None):
            problems.append(f"pod {key} is {_on(mine)} in the cache's books and {_on(true)} in the api's")
    return problems[:MOST]


def places_of(view: View) -> Places:
    """Pods that take up room on a node, in the scheduler's view."""
    seats = view.tasks.resides
    return {task.key: (task.uid, seats[task.row]) for task in view.tasks.by_key.values() if seats[task.row]}


def places_in(truth: Truth) -> Places:
    """Pods that take up room on a node, by what the journal says."""
    return {pod.key: (pod.uid, pod.node) for pod in truth.pods.values() if pod.on_node}


def _on(place: tuple[str, str] | None) -> str:
    return "nowhere" if place is None else f"on {place[1]} ({place[0]})"
