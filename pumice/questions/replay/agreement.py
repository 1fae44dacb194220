# SPDX-License-Identifier: Apache-2.0
"""Cycles of another cluster's scheduler, decided here from the recorded state: how far the two agree.

Such a cycle is known from outside, by its binds and evictions alone, and what it saw only about. So nothing is corrupt
when it comes out otherwise: what is counted is how often, and each difference is named.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from pumice.core.objects.metadata import Object
from pumice.core.shadow.standing import Deed, DeedDifference, deed_of, differing, ties
from pumice.questions.replay.compare import CycleDifference

if TYPE_CHECKING:
    from pumice.core.messages.decisions import CycleResult, Decision
    from pumice.core.shadow.guide import Guide
    from pumice.storage.history import RecordedCycle

NAMED: Final = 100
"""Number of differences that are named at most."""


class AgreementTold(msgspec.Struct, frozen=True, kw_only=True):
    """Agreement of two schedulers: see `Agreement`. `only_here`: number of decisions that the other never made;
    `share`: the part of `decisions` that is the `same`; `differences`: the first of them.
    """

    cycles: int
    decisions: int
    same: int
    ties: int
    other_node: int
    only_there: int
    only_here: int
    share: float | None
    differences: list[CycleDifference]


@dataclass
class Agreement:
    """Agreement over `cycles`: of the other's `decisions`, how many were the `same` here (`ties` of them one of several
    equally good nodes), put the pod on an `other_node`, or were not made here (`only_there`). `early`: decisions here
    in a cycle in which the other made none; `made`: all decisions of the other.
    """

    cycles: int = 0
    decisions: int = 0
    same: int = 0
    ties: int = 0
    other_node: int = 0
    only_there: int = 0
    differences: list[CycleDifference] = field(default_factory=list[CycleDifference])
    early: dict[Deed, CycleDifference] = field(default_factory=dict[Deed, CycleDifference])
    made: set[Deed] = field(default_factory=set[Deed])

    @property
    def share(self) -> float | None:
        """Return the part of the other's decisions that were the same; None without decisions."""
        return self.same / self.decisions if self.decisions else None

    @property
    def only_here(self) -> list[CycleDifference]:
        """Return the decisions that the other never made; one that it made in another cycle depends on when it
        looked."""
        return [each for deed, each in self.early.items() if deed not in self.made]

    def note(self, cycle: RecordedCycle, result: CycleResult, guide: Guide | None = None) -> None:
        """Add a cycle, and its result here beside the other's decisions, where there was a `guide`."""
        self.cycles += 1
        self.decisions += len(cycle.decisions)
        found = differences(cycle, result, guide)
        self.made |= {deed_of(each) for each in cycle.decisions}
        seen = [each for each in found if each.recorded is not None]
        self.same += len(cycle.decisions) - len(seen)
        self.ties += 0 if guide is None else ties(cycle.decisions, result, guide)
        self.other_node += sum(each.decided is not None for each in seen)
        self.only_there += sum(each.decided is None for each in seen)
        self.differences += seen[: NAMED - len(self.differences)]
        for each in found:
            if each.decided is not None and each.recorded is None:
                self.early.setdefault((each.decided["_"] == "Bind", each.decided["uid"]), each)

    def add(self, other: Agreement) -> None:
        """Add the results of later cycles."""
        for name in ("cycles", "decisions", "same", "ties", "other_node", "only_there"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.differences += other.differences[: NAMED - len(self.differences)]
        self.early = {**other.early, **self.early}
        self.made |= other.made

    def told(self) -> AgreementTold:
        """Return it as `pumice replay --verify` prints it."""
        only_here = self.only_here
        return AgreementTold(
            cycles=self.cycles,
            decisions=self.decisions,
            same=self.same,
            ties=self.ties,
            other_node=self.other_node,
            only_there=self.only_there,
            only_here=len(only_here),
            share=self.share,
            differences=[*self.differences, *only_here][:NAMED],
        )


def differences(cycle: RecordedCycle, result: CycleResult, guide: Guide | None = None) -> list[CycleDifference]:
    """Return every pod that only one of the two binds or evicts, or that they put on different nodes."""
    return [_named(cycle.record.cycle, each) for each in differing(cycle.decisions, result, guide)]


def _named(cycle: int, found: DeedDifference) -> CycleDifference:
    decided = _plain(found.here)
    if decided is not None and found.choice is not None:  # a guide went along with the other one's
        decided |= {"node": found.choice.node, "why": found.choice.words()}
    return CycleDifference(cycle, f"{found.pod.namespace}/{found.pod.name}", _plain(found.there), decided)


def _plain(decision: Decision | None) -> Object | None:
    return None if decision is None else msgspec.to_builtins(decision)
