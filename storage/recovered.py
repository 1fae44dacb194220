"""Where a journal leaves off, as a fold over its records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, assert_never

from pumice.core.messages.decisions import Bind, Decision, Evict
from pumice.core.messages.events import ConfigLoaded, CycleRecord, Mutation
from pumice.storage import journal as kinds

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.storage.contents import Content
    from pumice.storage.journal import Stored


@dataclass
class Recovered:
    """Where the journal left off.

    `sequence` is its newest record, `revision` the api's, `cycle`, `now` and `carry` the newest cycle's. `config` is
    the one in force (a refused one does not count). `unresolved` are the decisions without an outcome: sequence number
    → (cycle, decision). `mutations` counts those handed out, `records` all that were read.
    """

    sequence: int = 0
    revision: int = 0
    cycle: int = 0
    now: float = 0.0
    carry: dict[str, Any] = field(default_factory=dict[str, Any])
    config: ConfigLoaded | None = None
    unresolved: dict[int, tuple[int, Decision]] = field(default_factory=dict[int, "tuple[int, Decision]"])
    mutations: int = 0
    records: int = 0

    @property
    def config_digest(self) -> str:
        """The digest of the configuration in force, "" when there is none."""
        return self.config.digest if self.config else ""

    @property
    def config_text(self) -> str | None:
        """The text of the configuration in force."""
        return self.config.text if self.config else None

    def note(self, stored: Stored, content: Content | None, restore: Callable[[Mutation], None]) -> None:
        """Take in the next record, and what is in it. A mutation goes to `restore`, one that was written twice only
        once.
        """
        self.sequence = stored.sequence
        self.records += 1
        match content:
            case Mutation():
                self._note_mutation(content, restore)
            case CycleRecord():
                self.cycle, self.now, self.carry = content.cycle, content.now, content.carry
            case Bind() | Evict():
                self.unresolved[stored.sequence] = (self.cycle, content)
            case ConfigLoaded():
                self.config = self.config if content.error else content
            case None:
                if stored.kind == kinds.OUTCOME:
                    self.unresolved.pop(stored.cause, None)
            case _:
                assert_never(content)

    def _note_mutation(self, mutation: Mutation, restore: Callable[[Mutation], None]) -> None:
        if mutation.revision > self.revision:
            self.revision = mutation.revision
            self.mutations += 1
            restore(mutation)
