"""On which nodes room is being made, until the api says so: a nomination that nobody can see yet would be made twice.

kube-scheduler keeps them in memory (its nominator); here they are in the carry, and so in the journal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.default_scheduler.profile import NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.session.carry import Carry


class KubeNominations:
    """In the carry stand those of waiting pods that the pods themselves do not show yet: uid -> node."""

    def __init__(self, carry: Carry, pods: Sequence[Task]) -> None:
        self._carry = carry
        known = carry.plugins.get(NAME, {})
        self._unseen: dict[str, str] = {
            task.uid: known[task.uid] for task in pods if task.uid in known and known[task.uid] != task.nominated
        }
        self._write()

    def of(self, task: Task) -> str:
        """The newest of a pod, "" for none."""
        return self._unseen.get(task.uid, task.nominated)

    def note(self, task: Task, node: str) -> None:
        """Room is being made there from now on; "": nowhere any more."""
        if node != task.nominated:
            self._unseen[task.uid] = node
            self._write()

    def _write(self) -> None:
        self._carry.plugins.pop(NAME, None)
        if self._unseen:
            self._carry.plugins[NAME] = dict(self._unseen)
