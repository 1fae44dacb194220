"""What has changed in a view since its last snapshot: all that a check has to look at when the view was whole then."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task


class Touched:
    """`rows` of tasks and `jobs` by key, each once, in the order in which they were touched first; `everything`: nodes
    came, went or changed their rows. Nodes whose tasks changed are `unshared` in `NodeTasks`.
    """

    __slots__ = ("everything", "jobs", "rows")

    def __init__(self, *, everything: bool = False) -> None:
        self.everything = everything
        self.rows: dict[int, None] = {}
        self.jobs: dict[str, None] = {}

    def add(self, task: Task) -> None:
        """The task is counted elsewhere, or no more."""
        self.rows[task.row] = self.jobs[task.job] = None
