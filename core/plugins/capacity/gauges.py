"""The numbers of all queues under the names of Volcano's metrics, in the order in which capacity sets them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.core.messages.queue_tables import QueueTables
from pumice.core.plugins.capacity.kept import Columns

if TYPE_CHECKING:
    from pumice.core.plugins.capacity.kept import BoolArray
    from pumice.core.plugins.capacity.ledger import Ledger


def gauges(ledger: Ledger) -> QueueTables:
    """Volcano's gauges as the session opened. Flat queues without jobs show what their spec says, and no share."""
    kept, demand = ledger.kept, ledger.demand
    busy = np.ones_like(demand.present) if kept.idle is None else demand.present
    deserved, capability, real, limited = kept.deserved, kept.capability, kept.real, busy
    if kept.idle is not None:
        deserved = _either(busy, deserved, kept.idle.deserved)
        capability = _either(busy, capability, kept.idle.capability)
        real = _either(busy, real, kept.idle.real)
        limited = busy | kept.idle.limited
    tables = QueueTables(ledger.dims.names, ledger.names).put("deserved", *deserved)
    tables = tables.put("allocated", demand.allocated).put("request", demand.request)
    tables = tables.put("capacity", *capability, limited).put("real_capacity", *real)
    return tables.number("share", ledger.shares, busy)


def amounts(ledger: Ledger) -> QueueTables:
    """What Volcano has no metric for, as the session opened."""
    tables = QueueTables(ledger.dims.names, ledger.names).put("guarantee", *ledger.kept.guarantee)
    return tables.put("inqueue", ledger.demand.inqueue).put("elastic", ledger.demand.elastic)


def overused(ledger: Ledger) -> QueueTables:
    """Which queues have more than they deserve as the session closes: 1 or 0."""
    seen = ledger.present_shares() > 1.0
    busy = None if ledger.kept.idle is None else ledger.demand.present
    return QueueTables(ledger.dims.names, ledger.names).number("overused", seen, busy)


def _either(busy: BoolArray, ours: Columns, idle: Columns) -> Columns:
    return Columns(np.where(busy, ours.amounts, idle.amounts), np.where(busy, ours.named, idle.named))
