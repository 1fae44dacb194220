# SPDX-License-Identifier: Apache-2.0
"""Volumes and devices of the pods that a session places.

Volcano reserves on the node that pod.spec.nodeName names. An allocation sets it and nothing clears it in the session; a
promise of room does not set it. So a pod that is only promised room reserves no volumes, or those of the node that it
was last allocated to in a trial; and one whose devices are not allocated yet cannot be promised any room, unless such
a trial came before. Source: Volcano `plugins/predicates` (runReservePlugins), `framework/statement.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.core.life.task import TaskStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.plugins.predicates.dynamic_resources import DynamicResources
    from pumice.core.plugins.predicates.volume_binding import VolumeBinding
    from pumice.core.session.session import Session

FIX: Final = "promises-reserve"
NOWHERE: Final = -1
UNASKED_FIX: Final = "reserve-without-filters"


class Reservations:
    """Reservations of pods. The event handlers call it when a pod comes or goes."""

    def __init__(self, session: Session, plugins: Sequence[VolumeBinding | DynamicResources], plugin: str) -> None:
        asked = plugin in session.points.predicate.names
        self.refuses = bool(plugins) and not asked and UNASKED_FIX not in session.config.pumice.fix
        self._status = session.jobs.status
        self._plugins = plugins
        self._mends = FIX in session.config.pumice.fix
        self._named: dict[int, int] = {}  # task row -> the node that its pod's spec names
        self._refused: set[int] = set()

    def forget(self) -> None:
        """Forget all pods: another session begins."""
        self._named.clear()
        self._refused.clear()

    def make(self, task: Task, node: int) -> str | None:
        """Reserve for a placed pod with volumes or claims, for every pod when `refuses`. A returned text says why it is
        impossible.

        It `refuses` all when the filters are off: what reserves finds nothing that a PreFilter left.
        """
        if self.refuses:
            self._refused.add(task.row)
            return "nothing is known of the pod, for its filters are off"
        where = self._where(task, node)
        for plugin in self._plugins:
            refused = plugin.reserve(task, where)
            if refused is not None:
                self._refused.add(task.row)
                return refused
        return None

    def _where(self, task: Task, node: int) -> int:
        if self._mends or self._status[task.row] != TaskStatus.PIPELINED:
            self._named[task.row] = node
            return node
        return self._named.get(task.row, NOWHERE)

    def drop(self, task: Task) -> bool:
        """Release for a pod that is taken off. True when it had been refused, and never came."""
        if not (self.refuses or task.template.volumes or task.template.resource_claims):
            return False
        # The reverse of the order in which they reserved.
        for plugin in reversed(self._plugins):
            plugin.unreserve(task)
        if task.row not in self._refused:
            return False
        self._refused.discard(task.row)
        return True
