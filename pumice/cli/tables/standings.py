# SPDX-License-Identifier: Apache-2.0
"""The tree of queues with each queue's amounts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.text import Text

from pumice.cli.tables.table import WholeTable
from pumice.core.board import VOLUMES
from pumice.core.messages.queue_tables import WHOLE, reckoned
from pumice.questions.adviser.queues import QueueStanding, in_tree_order
from pumice.units import figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType

AMOUNTS: Final = ("guarantee", "deserved", "capability", "allocated", "borrowed", "pending")
LEAST: Final = ("capability", "guarantee", "pending", "borrowed")
"""Columns that are left out first where the terminal is narrow."""


@dataclass
class QueueTree:
    """A line for each queue and resource, child queues indented; amounts that no queue has are left out, and those that
    do not fit are named below.
    """

    title: str
    queues: Mapping[str, QueueStanding]
    amounts: Sequence[str] = AMOUNTS

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the tree as a table of the available width."""
        columns = [what for what in self.amounts if any(getattr(one, what) for one in self.queues.values())]
        left_out = list[str]()
        table = self._table(columns)
        for what in LEAST:
            if table.least_width() <= options.max_width:
                break
            if what in columns:
                columns.remove(what)
                left_out.append(what)
                table = self._table(columns)
        yield table
        if left_out:
            yield Text(f"Too narrow for {', '.join(left_out)} (-o json has all).")

    def _table(self, amounts: Sequence[str]) -> WholeTable:
        table = WholeTable("queue", "share", "resource", *amounts, "waiting", title=self.title)
        for depth, name in in_tree_order(self.queues):
            standing = self.queues[name]
            share = "" if standing.share is None else f"{standing.share:.3g}"
            closed = "" if standing.state in ("", "Open") else f" ({standing.state})"
            waiting = f"{standing.jobs_waiting}" if standing.jobs_waiting else ""
            resources = _resources(standing, amounts)
            shown = [_lines(standing, what, resources) for what in amounts]
            table.add_row(f"{'  ' * depth}{name}{closed}", share, "\n".join(resources), *shown, waiting)
        return table


def _resources(standing: QueueStanding, amounts: Sequence[str]) -> list[str]:
    """Return those that any of the amounts is of, except pods and the volumes that nodes can attach: these are limits
    of drivers, which no queue shares.
    """
    named = dict.fromkeys(name for what in amounts for name in getattr(standing, what))
    return [name for name in named if name != WHOLE and not name.startswith(VOLUMES)]


def _lines(standing: QueueStanding, what: str, resources: Sequence[str]) -> str:
    amounts: dict[str, float] = getattr(standing, what)
    return "\n".join(_figure(name, amounts[name]) if name in amounts else "" for name in resources)


def _figure(resource: str, value: float) -> str:
    return figure(resource, reckoned(resource, value))
