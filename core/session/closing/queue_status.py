# SPDX-License-Identifier: Apache-2.0
"""The allocated of each queue, its own and its children's, as the API's quantities.

Source: Volcano `updateQueueStatus`, `framework/session_dra_queue_status.go`.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.core.errors import QuantityError
from pumice.core.kube.devices import COUNT, DevicesByClaim
from pumice.core.life.task import ALLOCATED_STATUSES, IS_ALLOCATED, total_of
from pumice.core.messages.decisions import QueueStatus
from pumice.core.objects.metadata import Object
from pumice.core.quantity import format_bytes, format_milli, format_whole, parse_quantity
from pumice.core.state.derived import memory
from pumice.core.state.dimensions import PODS
from pumice.core.state.queue_sums import MANY, TASKS_LINE
from pumice.core.state.sources import QUEUE_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.session.session import Session

ROOT = "root"
NOTHING: Final = frozenset[str]()
ALLOCATED: Final = np.array(IS_ALLOCATED)
CLASS: Final = "deviceclass/"
NO_CLASSES: Final = "queues-name-no-device-classes"
"""The rule of earlier versions."""
NO_ZEROS: Final = "queues-name-no-zeros"
"""A former rule, under which old journals are replayed (`pumice.config.rules`)."""
NO_DEVICES: Final = Counter[str]()
Texts = tuple[tuple[list[float], frozenset[str], Counter[str]], dict[str, str]]
"""What a queue has allocated, the resources that are named even where it has none of them, and its claims' devices by
class; and how that is written.
"""
Owned = dict[str, dict[str, float]]
"""Queue -> resource -> what its pods have by their devices beyond what they asked for."""

# queues come back to the amounts that they had
_milli, _bytes = lru_cache(maxsize=4096)(format_milli), lru_cache(maxsize=4096)(format_bytes)


def queue_statuses(session: Session) -> list[QueueStatus]:
    """Return the queues whose status.allocated changed, in name order."""
    names = list(session.queues)
    told, owned = _told(session), _owned(session)
    allocated, named = _with_owned(session, _allocated_by_queue(session), names, owned), _named(session, owned)
    devices = _devices(session)
    now = allocated, named, devices, session.snapshot.queues
    if now == told.silent:
        return []
    written: list[QueueStatus] = []
    for name, amounts in _rolled_up(session, allocated, names).items():
        known = last = told.texts.get(name)
        seen = amounts, named.get(name, NOTHING), devices.get(name, NO_DEVICES)
        if known is None or known[0] != seen:
            known = told.texts[name] = seen, _texts(session.dims.names, *seen)
        said = session.queues[name].allocated
        if said == known[1]:
            continue
        # What this wrote last time is written as it would be again: other texts are other amounts.
        if (last is not None and said == last[1]) or not _same(said, known[1]):
            written.append(QueueStatus(name, dict(known[1])))
    told.silent = None if written else now
    return written


class Told:
    """What earlier sessions wrote. `texts`: the last allocated of each queue; `silent`: amounts and queues, as these
    are, of which the last one wrote nothing: most cycles change neither.
    """

    __slots__ = ("silent", "texts")

    def __init__(self) -> None:
        self.texts: dict[str, Texts] = {}
        self.silent: object = None


@memory(QUEUE_NAMES)
def _told(_names: Sequence[str]) -> Told:
    return Told()


def _allocated_by_queue(session: Session) -> list[list[float]]:
    """Return by queue row the number of allocated tasks (their pods' dimension is named even where it sums to 0), and
    the sum of the jobs' allocated by dimension, in job order.
    """
    columns, written = session.snapshot.jobs, session.jobs.written()
    if not len(columns.queue_sums) or len(written) > MANY:
        tasks = total_of(columns.counts, ALLOCATED_STATUSES).astype(np.float64)
        found: list[list[float]] = session.jobs.by_queue.sums(tasks[None], columns.allocated).T.tolist()
        return found
    # The sums of the opening, moved by the jobs that the session has changed: whole numbers, so exact.
    height = len(columns.allocated)
    amounts: list[list[float]] = columns.queue_sums[:height].T.tolist()
    found = [[tasks, *amount] for tasks, amount in zip(columns.queue_sums[TASKS_LINE].tolist(), amounts, strict=True)]
    for row in written:
        if columns.known[row]:
            of = found[int(columns.share_of[row])]
            tasks, *before = columns.shares[[TASKS_LINE, *range(height)], row].tolist()
            of[0] += int(total_of(columns.counts[:, row], ALLOCATED_STATUSES)) - tasks
            for place, (now, was) in enumerate(zip(columns.allocated[:, row].tolist(), before, strict=True), start=1):
                of[place] += now - was
    return found


def _owned(session: Session) -> Owned:
    """Return what plugins know of the devices of allocated pods: it replaces what those pods asked for."""
    found: Owned = {}
    for ask in session.tellers.owned:
        for task, amounts in ask():
            job = session.job_of(task)
            if job is not None:
                of_queue, asked = found.setdefault(job.pod_group.queue, {}), task.template.request.scalars or {}
                for name, amount in amounts.items():
                    of_queue[name] = of_queue.get(name, 0.0) + amount - asked.get(name, 0.0)
    return found


def _with_owned(session: Session, by_row: list[list[float]], names: list[str], owned: Owned) -> list[list[float]]:
    """Return the sums by queue with the owned devices."""
    if not owned:
        return by_row
    places = {name: session.dims.index(name) + 1 for amounts in owned.values() for name in amounts}
    longest = len(session.dims) + 1
    wider = [[*amounts, *[0.0] * (longest - len(amounts))] for amounts in by_row]
    for row, queue in enumerate(names):
        for name, more in owned.get(queue, {}).items():
            wider[row][places[name]] += more
    return wider


def _named(session: Session, owned: Owned) -> dict[str, frozenset[str]]:
    """Return by queue, parents included, the resources that its pods' devices name, and those asked for with 0."""
    names = {queue: frozenset(amounts) for queue, amounts in owned.items()}
    # Hardly a cluster has such a request, so the tasks are walked over only where one was seen.
    if session.dims.has_named_none and NO_ZEROS not in session.config.pumice.fix:
        for queue, zeros in _zeros(session).items():
            names[queue] = names.get(queue, NOTHING) | zeros
    found: dict[str, frozenset[str]] = {}
    for queue, named in names.items():
        for each in (queue, *(_ancestors(session.queues, queue) if ROOT in session.queues else ())):
            found[each] = found.get(each, NOTHING) | named
    return found


def _zeros(session: Session) -> dict[str, set[str]]:
    """Return by queue the scalars that its allocated tasks ask for with 0: Go's maps keep them."""
    found: dict[str, set[str]] = {}
    for task in _allocated(session):
        named = {name for name, amount in (task.template.request.scalars or {}).items() if not amount}
        job = session.job_of(task) if named else None
        if job is not None:
            found.setdefault(job.pod_group.queue, set()).update(named)
    return found


def _devices(session: Session) -> dict[str, Counter[str]]:
    """Count the devices of allocated pods' claims by queue and device class: each claim once a queue, parents included,
    however many of its pods share it.
    """
    claims = session.objects.get("ResourceClaim")
    if not claims or NO_CLASSES in session.config.pumice.fix:
        return {}
    asked, held = DevicesByClaim(claims), dict[str, set[str]]()
    for task in _allocated(session):
        mine = asked.of(task) if task.template.resource_claims else ()
        job = session.job_of(task) if mine else None
        if job is not None:
            queue = job.pod_group.queue
            for each in (queue, *(_ancestors(session.queues, queue) if ROOT in session.queues else ())):
                held.setdefault(each, set()).update(mine)
    return {queue: _by_class(asked, keys) for queue, keys in held.items()}


def _allocated(session: Session) -> list[Task]:
    tasks = session.snapshot.tasks
    placed = map(tasks.handles.__getitem__, ALLOCATED[tasks.status].nonzero()[0].tolist())
    return [task for task in placed if task is not None]


def _by_class(asked: DevicesByClaim, keys: Iterable[str]) -> Counter[str]:
    found = Counter[str]()
    for key in keys:
        for (device, dimension), number in asked.asked(key).items():
            if dimension == COUNT:
                found[CLASS + device] += number
    return found


def _rolled_up(session: Session, by_row: list[list[float]], names: list[str]) -> dict[str, list[float]]:
    """Add each queue's amounts to its parents up to the root, where a root exists."""
    total = {name: list(by_row[row]) for row, name in enumerate(names)}
    if ROOT not in session.queues:
        return total
    for row, name in enumerate(names):
        for ancestor in _ancestors(session.queues, name):
            total[ancestor] = [a + b for a, b in zip(total[ancestor], by_row[row], strict=True)]
    return total


def _ancestors(queues: dict[str, Queue], name: str) -> list[str]:
    """Yield the parents up to the root; a missing or circular one ends the walk.

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


def _texts(dimensions: list[str], amounts: list[float], named: frozenset[str], devices: Counter[str]) -> dict[str, str]:
    """Return texts of the number of tasks, then the amounts by dimension; `named` are written even where they are 0."""
    tasks, cpu, memory, pods, *scalars = amounts
    texts = {"cpu": _milli(int(cpu)), "memory": _bytes(int(memory))}
    if tasks:
        texts["pods"] = format_whole(int(pods))
    for name, amount in zip(dimensions[PODS + 1 :], scalars, strict=False):
        if amount or name in named:
            texts[name] = _milli(int(amount))
    texts.update({name: format_whole(number) for name, number in sorted(devices.items()) if number > 0})
    return texts


def _same(said: Object, allocated: dict[str, str]) -> bool:
    """Return whether the written texts and the allocated are the same quantities."""
    if said.keys() != allocated.keys():
        return False
    try:
        return all(parse_quantity(str(said[n])).compare(parse_quantity(text)) == 0 for n, text in allocated.items())
    except QuantityError:
        return False
