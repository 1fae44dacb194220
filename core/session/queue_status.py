"""What each queue has allocated, itself and through its children, as the API's quantities.

Source: Volcano `updateQueueStatus`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from core.errors import QuantityError
from core.life.task import IS_ALLOCATED, TaskStatus
from core.messages.decisions import QueueStatus
from core.quantity import format_bytes, format_milli, format_whole, parse_quantity

if TYPE_CHECKING:
    from core.objects.queue import Queue
    from core.session.session import Session

ROOT = "root"


def queue_statuses(session: Session) -> list[QueueStatus]:
    """The queues whose status.allocated changed, in name order."""
    names = list(session.queues)
    amounts = _rolled_up(session, _allocated_by_queue(session, len(names)), names)
    present = _rolled_up(session, _named_by_queue(session, len(names)), names)
    written: list[QueueStatus] = []
    for name in names:
        allocated = _texts(session.dims.names, amounts[name], present[name])
        if not _same(session.queues[name], allocated):
            written.append(QueueStatus(name, allocated))
    return written


def _allocated_by_queue(session: Session, count: int) -> list[list[float]]:
    """Sum of the jobs' allocated by queue row, each in job order."""
    columns, order = session.snapshot.jobs, session.snapshot.jobs.order
    queue = columns.queue[order]
    lines = [np.bincount(queue, weights=line[order], minlength=count) for line in columns.allocated]
    return np.array(lines).T.tolist() if count else []


def _named_by_queue(session: Session, count: int) -> list[list[float]]:
    """How many allocated tasks there are by queue row: their pods' dimension is named even where it sums to 0."""
    columns, order = session.snapshot.jobs, session.snapshot.jobs.order
    tasks = np.add.reduce(columns.counts[[s for s in TaskStatus if IS_ALLOCATED[s]]][:, order])
    by_queue = np.bincount(columns.queue[order], weights=tasks, minlength=count)
    return [[number] for number in by_queue.tolist()]


def _rolled_up(session: Session, by_row: list[list[float]], names: list[str]) -> dict[str, list[float]]:
    """Add each queue's amounts to its parents up to the root, where there is a root."""
    total = {name: list(by_row[row]) for row, name in enumerate(names)}
    if ROOT not in session.queues:
        return total
    for row, name in enumerate(names):
        for ancestor in _ancestors(session.queues, name):
            total[ancestor] = [a + b for a, b in zip(total[ancestor], by_row[row], strict=True)]
    return total


def _ancestors(queues: dict[str, Queue], name: str) -> list[str]:
    """Parents up to the root; a missing or circular one ends the walk.

    A job in the root itself counts twice there, as in Volcano.
    """
    path: list[str] = []
    parent = queues[name].parent or ROOT
    while parent in queues and parent not in path:
        path.append(parent)
        if parent == ROOT:
            break
        parent = queues[parent].parent or ROOT
    return path


def _texts(dimensions: list[str], amounts: list[float], tasks: list[float]) -> dict[str, str]:
    texts = {"cpu": format_milli(int(amounts[0])), "memory": format_bytes(int(amounts[1]))}
    if tasks[0]:
        texts["pods"] = format_whole(int(amounts[2]))
    for name, amount in list(zip(dimensions, amounts, strict=False))[3:]:
        if amount:
            texts[name] = format_milli(int(amount))
    return texts


def _same(queue: Queue, allocated: dict[str, str]) -> bool:
    if queue.allocated == allocated:
        return True
    if set(queue.allocated) != set(allocated):
        return False
    try:
        return all(
            parse_quantity(str(queue.allocated[n])).compare(parse_quantity(text)) == 0 for n, text in allocated.items()
        )
    except QuantityError:
        return False
