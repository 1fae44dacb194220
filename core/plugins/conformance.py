# SPDX-License-Identifier: Apache-2.0
"""conformance: never evict pods that Kubernetes itself needs. Source: Volcano `plugins/conformance`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.core.plugins.plugin import BuiltInPlugin
from pumice.core.session.points.victims import Mask

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import BoolArray, TaskBatch
    from pumice.core.session.session import Session

CRITICAL_CLASSES = ("system-cluster-critical", "system-node-critical")
SYSTEM_NAMESPACE = "kube-system"
ONLY_FILTERS = "conformance-only-filters"
"""The fix under which it takes out pods before any tier is asked, and decides no tier."""


def is_critical(task: Task) -> bool:
    """Return whether the task has a critical priority class or the system's namespace."""
    return task.priority_class in CRITICAL_CLASSES or task.namespace == SYSTEM_NAMESPACE


class Conformance(BuiltInPlugin):
    """Keeps pods of the system from eviction."""

    name = "conformance"
    says = "protects what Kubernetes itself needs"
    listens = ("Preemptable", "Reclaimable")
    names_gangs = True
    protects = "the system needs them"
    only_answers = True

    def on_session_open(self, session: Session) -> None:
        """Register for every kind of eviction."""
        mask: Mask[Any] = Mask(self.evictable, filters=ONLY_FILTERS in session.config.pumice.fix)
        points = session.points
        points.preemptable.add(self.name, mask)
        points.reclaimable.add(self.name, mask)
        points.unified_evictable.add(self.name, mask)

    def can_go_on(self, session: Session) -> bool:
        """Return True: the mask reads the tasks alone."""
        return True

    def on_session_close(self, session: Session) -> None:
        """Write nothing."""

    def evictable(self, _: object, batch: TaskBatch) -> BoolArray:
        """Return all candidates except critical ones."""
        return ~batch.facts.static(self.name, batch.rows, is_critical)
