"""Processes that wrote a journal one after the other: when one ended, and when the next one went on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pumice.core.messages.events import ActorEvent, ActorStarted
from pumice.storage import codec
from pumice.storage.journal import ACTOR, CONFIG, OUTCOME, Stored

FIRST: Final = "recorder"
"""An actor that starts once in the life of a process."""
AT_A_START: Final = (CONFIG, OUTCOME)
"""Kinds of records that a process may write before its actors start."""


@dataclass(frozen=True, slots=True)
class NextProcess:
    """A process ended and another one went on from its journal (seconds since the epoch)."""

    down_at: float
    up_at: float


class ProcessReader:
    """Follows a journal. `last_at`: when a process that runs was heard of last; None before the first."""

    def __init__(self) -> None:
        self.last_at: float | None = None

    def follow(self, stored: Stored) -> NextProcess | None:
        """The next record; the restart that it is the first sign of."""
        event = codec.decode(stored.payload, ActorEvent) if stored.kind == ACTOR else None
        if isinstance(event, ActorStarted):
            down_at, begins = self.last_at, event.actor == FIRST
            if begins:
                self.last_at = stored.at
            return NextProcess(down_at, stored.at) if begins and down_at is not None else None
        if stored.kind not in AT_A_START:
            self.last_at = stored.at
        return None
