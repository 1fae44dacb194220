"""The numbers of all queues under the names of Volcano's metrics, in the order in which capacity sets them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from core.session.gauges import GaugeColumns

if TYPE_CHECKING:
    from core.plugins.capacity.ledger import Ledger


def gauges(ledger: Ledger) -> dict[str, dict[str, float]]:
    """Gauges by queue as the session opened. Flat queues without jobs show what their spec says, and no share."""
    kept, demand, names = ledger.kept, ledger.demand, ledger.names
    rows = np.arange(len(names)) if ledger.hierarchical else np.flatnonzero(demand.present)
    columns = GaugeColumns(ledger.dims, len(rows))
    for metric, (amounts, named) in (
        ("deserved", kept.deserved),
        ("allocated", (demand.allocated, demand.allocated != 0.0)),
        ("request", (demand.request, demand.request != 0.0)),
        ("capacity", kept.capability),
        ("real_capacity", kept.real),
    ):
        columns.put(metric, amounts[:, rows], named[:, rows])
    columns.number("share", ledger.shares[rows])
    shown = columns.by([names[row] for row in rows.tolist()])
    return {name: shown[name] if name in shown else dict(kept.idle[row]) for row, name in enumerate(names)}
