# SPDX-License-Identifier: Apache-2.0
"""The changes since a cycle, compared with that cycle's own writes: a cycle that sees only its own writes is a
no-op.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.core.life.pod_group import OUTSIDE
from pumice.core.life.task import TaskStatus
from pumice.core.state.tasks import NOWHERE

if TYPE_CHECKING:
    from pumice.core.messages.commands import CycleSaid
    from pumice.core.messages.decisions import CycleResult, PodGroupStatus, QueueStatus
    from pumice.core.state.tables import ViewTables
    from pumice.core.state.tasks import TaskTable

# --- Recurring moments


class Recurrence:
    """Follows cycles, and tells when a whole round of recurring changes has passed without any effect.

    Another round would be a no-op as well: so a system that only waits for that is idle.
    """

    def __init__(self) -> None:
        self._since = 0.0
        self._standing: tuple[int, ...] = ()

    def is_in_vain(self, result: CycleResult, now: float) -> bool:
        """Note a cycle's result at `now` (seconds since the epoch), and return whether a whole round had no effect."""
        recurs = result.recurs
        if recurs is None or result.binds or result.evicts or recurs.standing != self._standing:
            self._since, self._standing = now, () if recurs is None else recurs.standing
        return recurs is not None and now - self._since >= recurs.every_s


WAITING: Final[int] = TaskStatus.PENDING.value


class ChangesSinceCycle:
    """Changes since a cycle. `stirred`: a change has come that no cycle writes; `said`: the PodGroups
    ("namespace/name") and queues in which only cycles' writes have changed.
    """

    __slots__ = ("said", "stirred")

    def __init__(self, *, stirred: bool = False) -> None:
        self.stirred = stirred
        self.said: set[str] = set()

    def note(self, name: str | None) -> None:
        """Note a change of an object. `name`: "" when more than a cycle's writes has changed, its name when only these
        have, and None when not even these have.
        """
        if name:
            self.said.add(name)
        elif name is not None:
            self.stirred = True


def waits(view: ViewTables) -> bool:
    """Return whether a task of a job has no place yet, or a PodGroup has not been admitted."""
    jobs = view.jobs
    used = slice(jobs.rows.used)
    outside = (jobs.phase[used] <= OUTSIDE) & jobs.has_spec[used]
    return bool(jobs.counts[WAITING, used].any() or outside.any())


def _waits_alone(tasks: TaskTable) -> bool:
    """Return whether a pod without a job has no place yet."""
    used = slice(tasks.rows.used)
    alone = (tasks.status[used] == WAITING) & (tasks.job[used] == NOWHERE)
    return any(tasks.handles[row] is not None for row in alone.nonzero()[0].tolist())


def is_no_op(view: ViewTables, changes: ChangesSinceCycle, said: CycleSaid) -> bool:
    """Return whether all changes are writes of a cycle that did nothing else, and all have arrived; and no task waits,
    or the writes were only about queues.

    A phase that a cycle writes counts at admissions: what a job holds is reckoned otherwise once it runs. No plugin
    reads what the status of a queue says is allocated. So a cycle that admitted and placed nothing would decide
    the same again, whatever waits: of the six cycles of a small job where others wait, that spares the last.
    """
    if not said.alone or changes.stirred:
        return False
    names = {f"{each.namespace}/{each.name}" for each in said.pod_groups}.union([each.name for each in said.queues])
    if not changes.said <= names or _waits_alone(view.tasks) or (said.pod_groups and waits(view)):
        return False
    return all(_is_group(view, each) for each in said.pod_groups) and all(_is_queue(view, each) for each in said.queues)


def _is_group(view: ViewTables, said: PodGroupStatus) -> bool:
    job = view.jobs.by_key.get(f"{said.namespace}/{said.name}")
    spec = None if job is None else job.spec
    now = spec and (spec.phase, spec.conditions, spec.running, spec.succeeded, spec.failed)
    return not said.annotations and now == (said.phase, said.conditions, said.running, said.succeeded, said.failed)


def _is_queue(view: ViewTables, said: QueueStatus) -> bool:
    queue = view.queues.get(said.name)
    return queue is not None and queue.allocated == said.allocated
