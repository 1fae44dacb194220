"""Binds and evictions of two schedulers that began from the same state, pod by pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pumice.core.messages.decisions import Bind, Decision

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.core.messages.decisions import CycleResult
    from pumice.core.shadow.guide import Guide, OtherChoice

Deed = tuple[bool, str]
"""Whether it is a bind, and of which pod, by uid."""


class DeedDifference(NamedTuple):
    """A pod that one of the two binds or evicts and the other does not (None), or puts on another node: then `choice`
    says why, where a guide was there to hear it.
    """

    there: Decision | None
    here: Decision | None
    choice: OtherChoice | None = None

    @property
    def pod(self) -> Decision:
        """Whose it is."""
        found = self.there or self.here
        assert found is not None
        return found


def deed_of(decision: Decision) -> Deed:
    """What it does, wherever."""
    return isinstance(decision, Bind), decision.uid


def wishes_of(decisions: Iterable[Decision]) -> dict[str, str]:
    """By uid, the nodes that a guide goes by."""
    return {each.uid: each.node for each in decisions if isinstance(each, Bind)}


def differing(decisions: Iterable[Decision], result: CycleResult, guide: Guide | None = None) -> list[DeedDifference]:
    """`decisions` were made there, `result` came out here. Where a guide went along with another node, the node that
    would have been taken here counts.
    """
    here: tuple[Decision, ...] = (*result.binds, *result.evicts)
    theirs, ours = ({deed_of(each): each for each in some} for some in (decisions, here))
    found: list[DeedDifference] = []
    for deed in dict.fromkeys((*theirs, *ours)):
        made, mine = theirs.get(deed), ours.get(deed)
        choice = guide.choices.get(deed[1]) if guide is not None and deed[0] else None
        if choice is not None and choice.tie:
            choice = None
        if made is None or mine is None or made.node != mine.node or choice is not None:
            found.append(DeedDifference(made, mine, choice))
    return found


def ties(decisions: Iterable[Decision], result: CycleResult, guide: Guide) -> int:
    """How many pods are on the same node only because that one was as good as the one that is first by name."""
    bound = {each.uid: each.node for each in result.binds}
    made = [each for each in decisions if isinstance(each, Bind) and bound.get(each.uid) == each.node]
    return sum(each.uid in guide.choices and guide.choices[each.uid].tie for each in made)
