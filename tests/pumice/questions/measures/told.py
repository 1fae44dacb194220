"""A journal told by hand: what happened at which second."""

from __future__ import annotations

from typing import Any

from pumice.core.messages.decisions import Evict
from pumice.core.messages.events import Mutation
from pumice.questions.measures.jobs import JobRow
from pumice.questions.measures.lives import Lives
from pumice.questions.measures.measures import Measures, Measuring
from pumice.storage import codec
from pumice.storage.journal import API, DECISION, GENESIS, OUTCOME, Stored

BEGAN = 1000.0


class Told:
    """Hears of what happened at which second; the rows of jobs that ended stand in `rows`."""

    def __init__(self) -> None:
        self.rows: list[JobRow] = []
        self.measuring = Measuring(BEGAN, self.rows.append)
        self.lives = Lives(self.measuring.listeners())
        self._sequence = 0

    def __call__(self, second: float, obj: dict[str, Any], event: str = "MODIFIED") -> None:
        meta = obj["metadata"]
        where = (obj["kind"], meta.get("namespace", ""), meta["name"])
        self._store(second, API, codec.encode(Mutation(1, event, *where, codec.pack(obj))))

    def decides(self, second: float, message: Any) -> None:
        kind = DECISION if isinstance(message, Evict) else OUTCOME
        self._store(second, kind, codec.encode(message))

    def _store(self, second: float, kind: str, payload: bytes) -> None:
        self._sequence += 1
        self.lives.follow(Stored(self._sequence, kind, payload, 0, BEGAN + second, GENESIS))

    def end(self, second: float) -> Measures:
        return self.measuring.end(BEGAN + second)


def on(obj: dict[str, Any], where: str, phase: str = "Running") -> dict[str, Any]:
    """The pod on a node, in a phase."""
    return {**obj, "spec": {**obj["spec"], "nodeName": where}, "status": {"phase": phase}}
