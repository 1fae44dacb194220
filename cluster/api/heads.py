"""How far the api has come, for each set of kinds that somebody asks about."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet


class Heads:
    """`newest`: the newest revision that watchers may see."""

    def __init__(self, newest: int = 0) -> None:
        self.newest = newest
        self._of: dict[tuple[str, ...], int] = {}
        self._asking: dict[str, list[tuple[str, ...]]] = {}

    def published(self, revision: int, changed: AbstractSet[str] | None = None) -> None:
        """Watchers may see everything up to `revision`; new are `changed`, kinds and parts of them (None: perhaps all).

        A revision that is not newer changes nothing.
        """
        if revision > self.newest:
            self.newest = revision
            if changed is None:
                self._of = dict.fromkeys(self._of, revision)
                return
            for topic in changed:
                for kinds in self._asking.get(topic, ()):
                    self._of[kinds] = revision

    def of(self, kinds: tuple[str, ...]) -> int:
        """The newest revision at which something of these kinds may have changed; () means all kinds."""
        if kinds and kinds not in self._of:
            self._of[kinds] = self.newest
            for topic in kinds:
                self._asking.setdefault(topic, []).append(kinds)
        return self._of[kinds] if kinds else self.newest
