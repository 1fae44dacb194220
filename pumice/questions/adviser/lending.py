"""Who has more than its queue deserves, and whose that is: the nearest kin's first.

A queue that has more than deserved has it from those that use less: its sisters, then what their parent keeps
undivided, then the parent's sisters, and so on up. Among equally near ones it is in proportion, since nothing says
whose is whose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pumice.core.messages.queue_gauges import WHOLE
from pumice.questions.adviser.queues import in_tree_order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.questions.adviser.queues import QueueStanding

Shares = dict[str, float]
LEAST: Final = 1e-9
"""Of what is matched: less than that part of it is what floats leave."""


class QueueLoan(NamedTuple):
    """So much of a resource (in cores, bytes or pieces). `lender`: "" for what no queue deserves."""

    lender: str
    borrower: str
    amount: float


def lending(standings: Mapping[str, QueueStanding]) -> dict[str, list[QueueLoan]]:
    """By resource, of those of which anybody has more than deserved; loans by lender and borrower."""
    names = sorted({name for one in standings.values() for name in one.borrowed if name != WHOLE})
    found = {name: loans(standings, name) for name in names}
    return {name: listed for name, listed in found.items() if listed}


def loans(standings: Mapping[str, QueueStanding], resource: str) -> list[QueueLoan]:
    """Of one resource, among the queues without others below them; an inner queue lends what it keeps undivided."""
    made: list[QueueLoan] = []
    within: dict[str, tuple[Shares, Shares, float]] = {}  # of each parent: who borrows, who lends, what they deserve
    for _, name in reversed(in_tree_order(standings)):  # children before parents
        one = standings[name]
        deserved = one.deserved.get(resource, 0.0)
        if name in within:
            borrowers, lenders, divided = within.pop(name)
            _lend(borrowers, lenders, made)
            undivided = {name: deserved - divided} if deserved > divided else Shares()
            _lend(borrowers, undivided, made)
            lenders |= undivided
        else:
            room = deserved - one.allocated.get(resource, 0.0)
            borrowers = {name: one.borrowed[resource]} if resource in one.borrowed else Shares()
            lenders = {name: room} if room > 0 else Shares()
        above = one.parent if one.parent in standings and one.parent != name else ""
        beside = within.get(above, (Shares(), Shares(), 0.0))
        within[above] = ({**beside[0], **borrowers}, {**beside[1], **lenders}, beside[2] + deserved)
    borrowers, lenders, _ = within.get("", (Shares(), Shares(), 0.0))
    _lend(borrowers, lenders, made)
    made += [QueueLoan("", borrower, amount) for borrower, amount in borrowers.items()]
    return sorted(made)


def _lend(borrowers: Shares, lenders: Shares, made: list[QueueLoan]) -> None:
    """In proportion to what each lacks and each has; who is through is taken out."""
    wanted, given = sum(borrowers.values()), sum(lenders.values())
    lent = min(wanted, given)
    if lent <= 0:
        return
    made += [
        QueueLoan(lender, borrower, lent * (room / given) * (more / wanted))
        for lender, room in lenders.items()
        for borrower, more in borrowers.items()
    ]
    for listed, total in ((borrowers, wanted), (lenders, given)):
        left = {name: value * (1 - lent / total) for name, value in listed.items()}
        listed.clear()
        listed |= {name: value for name, value in left.items() if value > LEAST * total}
