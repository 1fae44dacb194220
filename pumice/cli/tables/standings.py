"""The tree of queues with what each has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table

from core.messages.queue_gauges import WHOLE, reckoned
from pumice.adviser.queues import QueueStanding, in_tree_order
from pumice.units import amount

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

AMOUNTS: Final = ("guarantee", "deserved", "capability", "allocated", "borrowed", "pending")


def tree(title: str, queues: Mapping[str, QueueStanding], amounts: Sequence[str] = AMOUNTS) -> Table:
    """A row a queue, those below another one set in; amounts that no queue has are left out."""
    columns = [what for what in amounts if any(getattr(one, what) for one in queues.values())]
    table = Table("queue", "share", *columns, "jobs", title=title)
    for depth, name in in_tree_order(queues):
        standing = queues[name]
        share = "" if standing.share is None else f"{standing.share:.3g}"
        shown = [_amounts(standing, what) for what in columns]
        closed = "" if standing.state in ("", "Open") else f" ({standing.state})"
        waiting = f"{standing.jobs_waiting} waiting" if standing.jobs_waiting else ""
        table.add_row(f"{'  ' * depth}{name}{closed}", share, *shown, waiting)
    return table


def _amounts(standing: QueueStanding, what: str) -> str:
    amounts: dict[str, float] = getattr(standing, what)
    told = [amount(name, reckoned(name, value)) for name, value in amounts.items() if name != WHOLE]
    return ", ".join(told)
