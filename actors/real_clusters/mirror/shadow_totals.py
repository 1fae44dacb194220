"""What all comparisons of a shadow came to."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

import msgspec

from pumice.core.messages.shadow import ShadowCompared, ShadowDifference
from pumice.core.objects.metadata import Object

KEPT: Final = 100
"""So many of the newest are kept for the summary."""
COUNTS: Final = ("decisions", "same", "ties", "other_node", "only_there", "only_here")
STANDING: Final = ("groups", "other_phases", "other_conditions", "waiting", "other_reasons")


@dataclass
class ShadowTotals:
    """All comparisons of this process together; of what stands, the newest."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    newest: ShadowCompared | None = None
    differences: deque[tuple[int, ShadowDifference]] = field(
        default_factory=lambda: deque[tuple[int, ShadowDifference]](maxlen=KEPT)
    )

    def note(self, found: ShadowCompared) -> None:
        """One more."""
        for name in COUNTS:
            self.counts[name] += getattr(found, name)
        if found.groups >= 0:
            self.newest = found
        self.differences += [(found.cycle, each) for each in found.differences]

    @property
    def share(self) -> float | None:
        """Of the decisions seen, those that were the same; None: there were none."""
        decisions = self.counts["decisions"]
        return self.counts["same"] / decisions if decisions else None

    def to_dict(self) -> Object:
        """Plain data."""
        newest = self.newest
        stands = {} if newest is None else {name: getattr(newest, name) for name in STANDING}
        told = [{"cycle": cycle, **msgspec.to_builtins(each)} for cycle, each in self.differences]
        return {**self.counts, "share": self.share, **stands, "differences": told}
