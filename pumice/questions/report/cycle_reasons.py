# SPDX-License-Identifier: Apache-2.0
"""Reasons for which jobs and pods of a journal waited: some of its cycles, decided again."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Final, NamedTuple

from pumice.config.errors import PumiceError
from pumice.core.cycle import Trail, close_session, open_session, run_action
from pumice.core.messages.events import CycleRecord
from pumice.core.state.volumes import volume_rules
from pumice.questions.adviser.wait_reasons import OpeningState, ReasonFinder, WaitReasons
from pumice.questions.explain.scene import scene_of
from pumice.questions.history.rewind import Rewound
from pumice.questions.replay.plugins import demand_plugins
from pumice.questions.replay.verify import ReplayReport
from pumice.questions.replay.verify import recorded as cycles_of
from pumice.storage.journal import CYCLE
from pumice.storage.records import read_as
from pumice.storage.sqlite import open_history

if TYPE_CHECKING:
    from pathlib import Path

    from pumice.questions.explain.scene import Scene
    from pumice.storage.journal import Journal

MOST: Final = 60
"""Limit of cycles that are decided again: the first in each of so many equal intervals; all where there are fewer."""
BATCH: Final = 5_000


class CycleReasons(NamedTuple):
    """Wait reasons of jobs and pods in the cycle at the time `at`."""

    at: float
    reasons: WaitReasons


async def reasons_by_cycle(file: Path) -> list[CycleReasons]:
    """Return the wait reasons of some cycles of a journal, in order; [] where they cannot be decided again."""
    try:
        await demand_plugins(file, None, lambda sentence: None)
        async with open_history(file) as journal:
            return await _decided_again(journal)
    except PumiceError:
        return []


async def _decided_again(journal: Journal) -> list[CycleReasons]:
    chosen, found = _spread(await _moments(journal)), list[CycleReasons]()
    if not chosen:
        return []
    last, report = max(chosen), ReplayReport()
    async with aclosing(cycles_of(journal, report, first=min(chosen))) as cycles:
        async for replayer, cycle in cycles:
            if cycle.record.cycle in chosen:
                if replayer.past.view is None:
                    replayer.past.materialised()
                scene = scene_of(Rewound(cycle, replayer, "", report.position))
                found.append(CycleReasons(cycle.record.now, wait_reasons(scene)))
            if cycle.record.cycle >= last:
                break
    return found


async def _moments(journal: Journal) -> dict[int, float]:
    """Return the times of Volcano's cycles, by number."""
    found: dict[int, float] = {}
    after = (await journal.head()).cut
    while batch := await journal.read(after, (CYCLE,), BATCH):
        records = (read_as(stored, CycleRecord) for stored in batch)
        found.update((record.cycle, record.now) for record in records if not record.scheduler)
        after = batch[-1].sequence
    return found


def _spread(moments: dict[int, float]) -> set[int]:
    if len(moments) <= MOST:
        return set(moments)
    began = min(moments.values())
    width = (max(moments.values()) - began) / MOST or 1.0
    first: dict[int, int] = {}
    for cycle, at in sorted(moments.items()):
        first.setdefault(min(int((at - began) / width), MOST - 1), cycle)
    return {*first.values(), max(moments)}


def wait_reasons(scene: Scene) -> WaitReasons:
    """Decide the cycle of the scene, and return the reasons of all that waits after it."""
    ignored = scene.options.ignored_provisioners if scene.options else ()
    snapshot, trail = scene.view.snapshot(volume_rules(scene.config, ignored)), Trail((), brief=True)
    session = open_session(
        snapshot, scene.config, scene.clock, scene.carry, scene.options, trail=trail, ask=scene.ask()
    )
    opening = OpeningState.of(session)
    for action in scene.config.actions:
        run_action(session, action)
    session.action = ""
    with trail.paused():
        reasons = ReasonFinder(session, trail, opening).reasons(scene.view, scene.view.jobs.by_key)
    close_session(session)
    return reasons
