"""What a picture of a journal is made of: the board at one of its cycles, and its cycles one after the other."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.actors.gateway.page import frames
from pumice.core.board.board import BoardReader, residents_of
from pumice.core.cycle import cards_later, open_session
from pumice.core.messages.events import ActorCrashed, ActorEvent, CycleRecord, Outcome
from pumice.core.messages.queue_tables import CardTable
from pumice.core.state.volumes import volume_rules
from pumice.questions.explain.account import NotFoundError
from pumice.questions.history.entries import StoryEntry, entry_of
from pumice.questions.measures.jobs import JobRow
from pumice.questions.measures.measures import measure
from pumice.storage import codec
from pumice.storage.journal import ACTOR, CONFIG, CYCLE, OUTCOME
from pumice.storage.sqlite import SqliteJournal

if TYPE_CHECKING:
    from pathlib import Path

    from pumice.questions.explain.scene import Scene
    from pumice.storage.journal import Stored

Plain = dict[str, Any]
MOST_EVENTS: Final = 300
"""So many of the newest starts, crashes and configurations are told."""
SHARES_CARDS: Final = "deviceshare"
KINDS: Final = (CYCLE, OUTCOME, ACTOR, CONFIG)


def board_of(scene: Scene, node: str = "") -> Plain:
    """The board as the cycle opened; of `node` the pods on it. Raises NotFoundError."""
    head = {"cycle": scene.clock.cycle, "now": scene.clock.now}
    if node:
        found = residents_of(scene.view, node)
        if not found.known:
            raise NotFoundError(f"cycle {scene.clock.cycle} knew no node {node!r}")
        return {**head, "residents": [msgspec.to_builtins(each) for each in found.pods]}
    read = BoardReader().read(scene.view, 0)
    assert read.layout is not None
    return {**head, **frames.whole(read.layout, read.columns(read.layout), read), "cards": frames.cards(_cards(scene))}


def _cards(scene: Scene) -> CardTable:
    """Those that pods share, as the cycle found them: an open session counts them."""
    if scene.config.plugin(SHARES_CARDS) is None:
        return CardTable()
    snapshot = scene.view.snapshot(volume_rules(scene.config))
    session = open_session(snapshot, scene.config, scene.clock, scene.carry, scene.options, ask=scene.ask())
    return cards_later(session)()


async def course_of(db: Path) -> Plain:
    """Every cycle (number, moment, decisions), how decisions ended, which actors crashed how often, what befell actors
    and configurations, and when the journal `ended` (seconds since the epoch).
    """
    cycles, outcomes, crashes = list[list[float]](), Counter[str](), Counter[str]()
    events = deque[StoryEntry](maxlen=MOST_EVENTS)
    async with await SqliteJournal.open(db, read_only=True) as journal:
        after = 0
        while batch := await journal.read(after, KINDS):
            for stored in batch:
                if stored.kind == CYCLE:
                    record = codec.decode(stored.payload, CycleRecord)
                    cycles.append([record.cycle, record.now, record.decisions])
                elif stored.kind == OUTCOME:
                    outcomes[type(codec.decode(stored.payload, Outcome)).__name__] += 1
                else:
                    events.append(entry_of(stored))
                    crashes.update(_crashed(stored))
            after = batch[-1].sequence
        head = await journal.head()
        last = await journal.read(head.sequence - 1)
    return {
        "cycles": cycles,
        "outcomes": dict(sorted(outcomes.items())),
        "crashes": dict(sorted(crashes.items())),
        "events": [{"at": each.at, "kind": each.kind, "text": each.text} for each in events],
        "records": head.sequence,
        "ended": last[-1].at if last else 0.0,
    }


def _crashed(stored: Stored) -> list[str]:
    event = codec.decode(stored.payload, ActorEvent) if stored.kind == ACTOR else None
    return [event.actor] if isinstance(event, ActorCrashed) else []


async def measures_of(db: Path) -> Plain:
    """Return the measures of the run so far and over time, and its jobs, the newest first."""
    rows: list[JobRow] = []
    async with await SqliteJournal.open(db, read_only=True) as journal:
        found = await measure(journal, rows.append, shares=False)  # somebody looks again every few seconds
    plain: Plain = msgspec.to_builtins(found)
    rows.sort(key=lambda row: (-row.submitted, row.job))
    return {**plain, "jobs": [{"job": row.job, "queue": row.queue, "state": row.state} for row in rows]}
