"""What one watch has told, held against what writers were answered: nothing missed, nothing twice, all in order.

Revisions rise in a watch, so one that does not rise is an event that came again or too late. Writers and the watch run
beside each other: an event may come before the answer that it belongs to.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

PATIENCE_S: Final = 60.0
"""After so long an event that somebody was promised counts as missed."""
MOST_SAID: Final = 20


@dataclass(slots=True)
class WatchLedger:
    """Of one watch, `name`. `problems` has the first ones in words, `count` says how many there were."""

    name: str
    revision: int = 0
    events: int = 0
    count: int = 0
    problems: list[str] = field(default_factory=list[str])
    alive: set[str] = field(default_factory=set[str])
    _awaited: dict[int, float] = field(default_factory=dict[int, float])
    _early: deque[tuple[int, float]] = field(default_factory=deque[tuple[int, float]])
    _early_set: set[int] = field(default_factory=set[int])
    _doomed: dict[str, float] = field(default_factory=dict[str, float])

    def begin(self, revision: int, uids: set[str]) -> None:
        """The watch begins after a list at that revision, which had these objects."""
        self.revision, self.alive = revision, uids

    def seen(self, kind: str, uid: str, revision: int, now: float) -> float | None:
        """An event came: the seconds since its writer was answered, None where none was yet (or it was nobody's)."""
        self.events += 1
        if revision <= self.revision:
            self._problem(f"{kind} of {uid} at {revision} came again or late, after {self.revision}")
            return None
        self.revision = revision
        self._follow(kind, uid)
        answered = self._awaited.pop(revision, None)
        if answered is not None:
            return max(0.0, now - answered)
        self._early.append((revision, now))
        self._early_set.add(revision)
        return None

    def bookmark(self, revision: int) -> None:
        """The watch says that it has told everything up to a revision."""
        self.revision = max(self.revision, revision)

    def written(self, revision: int, now: float) -> float | None:
        """A writer was answered with a revision that this watch has to show: 0.0 when it has already, None if not."""
        if revision in self._early_set:
            self._early_set.discard(revision)
            return 0.0
        if revision <= self.revision:
            self._problem(f"revision {revision} was passed over: the watch is at {self.revision}")
            return None
        self._awaited[revision] = now
        return None

    def deleted(self, uid: str, now: float) -> None:
        """A writer was told that an object is, or will be, deleted."""
        if uid in self.alive:
            self._doomed[uid] = now

    def look(self, now: float) -> None:
        """From time to time: forget what is old, and name what did not come in time."""
        while self._early and now - self._early[0][1] > PATIENCE_S:
            self._early_set.discard(self._early.popleft()[0])
        for revision, at in list(self._awaited.items()):
            if now - at <= PATIENCE_S:
                break
            del self._awaited[revision]
            self._problem(f"the event of revision {revision} was missed")
        for uid, at in list(self._doomed.items()):
            if now - at <= PATIENCE_S:
                break
            del self._doomed[uid]
            self._problem(f"{uid} was deleted, and its watch was not told")

    @property
    def settled(self) -> bool:
        """Whether nothing is awaited any more."""
        return not self._awaited and not self._doomed

    def _follow(self, kind: str, uid: str) -> None:
        if kind == "ADDED":
            if uid in self.alive:
                self._problem(f"{uid} was added twice")
            self.alive.add(uid)
            return
        if uid not in self.alive:
            self._problem(f"{kind} of {uid}, which was not there")
        if kind == "DELETED":
            self.alive.discard(uid)
            self._doomed.pop(uid, None)

    def _problem(self, words: str) -> None:
        self.count += 1
        if len(self.problems) < MOST_SAID:
            self.problems.append(f"{self.name}: {words}")
