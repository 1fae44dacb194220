"""The tree of queues with what each has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Column, Table

from core.messages.queue_gauges import WHOLE, reckoned
from pumice.adviser.queues import QueueStanding, in_tree_order
from pumice.units import amount

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

AMOUNTS: Final = ("guarantee", "deserved", "capability", "allocated", "borrowed", "pending")


def tree(
    title: str,
    queues: Mapping[str, QueueStanding],
    amounts: Sequence[str] = AMOUNTS,
    lately: Mapping[str, str] | None = None,
) -> Table:
    """A row a queue, those below another one set in; amounts that no queue has are left out. `lately`: a line of what
    it held, by queue.
    """
    columns = [what for what in amounts if any(getattr(one, what) for one in queues.values())]
    more = (Column("lately", min_width=12),) if lately else ()
    table = Table("queue", "share", *columns, *more, "jobs", title=title)
    for depth, name in in_tree_order(queues):
        standing = queues[name]
        share = "" if standing.share is None else f"{standing.share:.3g}"
        shown = [_amounts(standing, what) for what in columns]
        closed = "" if standing.state in ("", "Open") else f" ({standing.state})"
        waiting = f"{standing.jobs_waiting} waiting" if standing.jobs_waiting else ""
        held = [lately.get(name, "")] if lately else []
        table.add_row(f"{'  ' * depth}{name}{closed}", share, *shown, *held, waiting)
    return table


def _amounts(standing: QueueStanding, what: str) -> str:
    amounts: dict[str, float] = getattr(standing, what)
    told = [amount(name, reckoned(name, value)) for name, value in amounts.items() if name != WHOLE]
    return ", ".join(told)
