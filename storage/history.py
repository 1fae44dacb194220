# SPDX-License-Identifier: Apache-2.0
"""The recorded cycles, each with everything that it saw: a replay feeds it to the core again."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

from pumice.core.messages.decisions import Bind, Decision, Evict
from pumice.core.messages.events import ConfigLoaded, CycleRecord, Mutation, Outcome
from pumice.storage import journal as kinds
from pumice.storage.records import content, read_as

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.storage.journal import Stored
    from pumice.storage.records import Content


@dataclass(frozen=True)
class RecordedCycle:
    """One cycle as the journal has it.

    `mutations` are the changes of the api's truth that this cycle saw and the one before did not, in revision order;
    the cache's own operations on its view are in `record.operations`, with the revision they came after. `outcomes`
    came in since the cycle before. `config` is the one in force. `sequence` and `at` are those of the cycle's record.
    """

    sequence: int
    at: float
    record: CycleRecord
    decisions: tuple[Decision, ...]
    mutations: tuple[Mutation, ...]
    outcomes: tuple[Outcome, ...]
    config: ConfigLoaded | None


class CycleReader:
    """Puts cycles together, record by record. `mutations`, when given, gets those that cycles would otherwise hold."""

    def __init__(self, mutations: Callable[[Mutation], None] | None = None) -> None:
        self._on_mutation = mutations or self._keep_mutation
        self._mutations: deque[Mutation] = deque()
        self._revision = 0
        self._outcomes: list[Outcome] = []
        self.config: ConfigLoaded | None = None
        self._open: RecordedCycle | None = None
        self._decisions: list[Decision] = []

    @property
    def is_open(self) -> bool:
        """Return whether a cycle has begun and some of its decisions are to come."""
        return self._open is not None

    def follow(self, stored: Stored) -> RecordedCycle | None:
        """Read the next record, and return the cycle that it completes, if any."""
        return self.take(stored, content(stored))

    def take(self, stored: Stored, found: Content | None) -> RecordedCycle | None:
        """Follow a record that the caller has decoded already."""
        match found:
            case Mutation():
                self._on_mutation(found)
            case ConfigLoaded():
                # A refused configuration was never in force.
                self.config = self.config if found.error else found
            case CycleRecord():
                self._open, self._decisions = self._begin(stored, found), []
                return self._finished()
            case Bind() | Evict():
                if self._open is not None:
                    self._decisions.append(found)
                    return self._finished()
            case None:
                if stored.kind == kinds.OUTCOME:
                    self._outcomes.append(read_as(stored, Outcome))
            case _:
                assert_never(found)
        return None

    def _keep_mutation(self, mutation: Mutation) -> None:
        if mutation.revision > self._revision:
            self._revision = mutation.revision
            self._mutations.append(mutation)

    def _begin(self, stored: Stored, record: CycleRecord) -> RecordedCycle:
        seen: list[Mutation] = []
        # By the revision and not by the place in the journal: changes may be written before a cycle that did not see
        # them.
        while self._mutations and self._mutations[0].revision <= record.revision:
            seen.append(self._mutations.popleft())
        outcomes, self._outcomes = tuple(self._outcomes), []
        return RecordedCycle(stored.sequence, stored.at, record, (), tuple(seen), outcomes, self.config)

    def _finished(self) -> RecordedCycle | None:
        """Return the cycle when it is complete: its decisions follow it in the same transaction, as many as it says."""
        cycle = self._open
        # The record says how many follow: a journal that ends within them has no such cycle.
        if cycle is None or len(self._decisions) < cycle.record.decisions:
            return None
        decisions, self._decisions, self._open = tuple(self._decisions), [], None
        return replace(cycle, decisions=decisions)
