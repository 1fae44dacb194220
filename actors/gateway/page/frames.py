# SPDX-License-Identifier: Apache-2.0
"""The board as the page reads it: whole, or as changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from pumice.core.messages.queue_tables import QueuesMeasured, readable, standing_amounts
from pumice.core.objects.metadata import Object

if TYPE_CHECKING:
    import numpy.typing as npt

    from pumice.core.messages.boards import BoardLayout, BoardRead
    from pumice.core.messages.events import CycleMeasured
    from pumice.core.messages.queue_tables import CardTable

PARTS: Final = ("used", "releasing", "assumed", "nominated")
"""Amounts by node; what is being bound is called assumed here, as `binding` is how many such pods there are."""


def whole(layout: BoardLayout, amounts: npt.NDArray[np.float64], read: BoardRead) -> Object:
    """Return everything: amounts by part and resource, one number a node, nodes in name order."""
    return {
        "resources": layout.resources,
        "nodes": layout.nodes,
        "groups": layout.groups,
        "group": layout.group,
        "cordoned": list(layout.cordoned),
        "ready": list(layout.ready),
        "allocatable": layout.columns().tolist(),
        **dict(zip(PARTS, amounts.tolist(), strict=True)),
        **counts(read),
    }


def change(before: npt.NDArray[np.float64], after: npt.NDArray[np.float64], read: BoardRead) -> Object:
    """Return the changes. `rows`: of the nodes that differ, and their amounts."""
    # The axes are part, resource and node.
    rows = np.flatnonzero((before != after).any(axis=(0, 1)))
    parts = dict(zip(PARTS, after[:, :, rows].tolist(), strict=True)) if rows.size else {}
    return {"rows": rows.tolist(), **parts, **counts(read)}


def counts(read: BoardRead) -> Object:
    """Return the counts of pods, jobs, binds and evictions."""
    return {"pods": read.pods, "jobs": read.jobs, "binding": read.binding, "evicting": read.evicting}


def cycle(measured: CycleMeasured) -> Object:
    """Return one cycle's times in seconds, and what came out."""
    return {
        "cycle": measured.cycle,
        "now": measured.now,
        "total_s": measured.total_s,
        "open_s": measured.open_s,
        "close_s": measured.close_s,
        "actions": measured.actions,
        "plugins": {f"{point} {name}": s for point, each in measured.plugins.items() for name, s in each.items()},
        "bound": measured.attempts.get("scheduled", 0),
        "unschedulable": measured.attempts.get("unschedulable", 0),
        "victims": measured.victims,
    }


def queues(measured: QueuesMeasured) -> Object:
    """Return for each queue its amounts, and its share where a plugin reckons one."""
    return {name: standing_amounts(gauges) for name, gauges in readable(measured.tables).by_queue().items()}


def cards(table: CardTable) -> Object:
    """Return for each node name of the card, pods that share it, MiB and cores (per cent) in use, MiB that there
    are."""
    found: dict[str, list[list[Any]]] = {}
    if table.cards:
        for node, card, numbers in zip(table.nodes, table.cards, table.columns().T.tolist(), strict=True):
            found.setdefault(node, []).append([card, *numbers])
    return found


def event(kind: str, data: Object) -> bytes:
    """Return one server-sent event; JSON has no line ends of its own."""
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), msgspec.json.encode(data))
