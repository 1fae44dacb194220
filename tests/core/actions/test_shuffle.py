"""shuffle: what the plugins name among the running tasks is evicted, each for itself."""

from __future__ import annotations

from collections.abc import Sequence

from pumice.core.actions import shuffle
from pumice.core.life.task import TaskStatus
from pumice.core.objects.pod import Task
from tests.core.actions.crowds import classes, evictions, running, waiting
from tests.core.plugins.world import configuration, open_world, task_of
from tests.kit import node, queue


def test_victims_of_plugins_are_evicted_immediately() -> None:
    config = configuration(["gang"], ["pdb"])
    parts = (node("n0"), queue("q"), classes(), running("old", ["n0"] * 2, queue="q"), waiting("new", 1, queue="q"))
    session = open_world(config, *parts)
    asked: list[list[str]] = []

    def second(tasks: Sequence[Task]) -> list[Task]:
        asked.append([task.name for task in tasks])
        return [tasks[1]]

    session.points.victim_tasks.add("pdb", [second])
    shuffle.execute(session)
    assert asked == [["old-0", "old-1"]]  # running ones only
    assert evictions(session) == ["old-1"]
    assert session.jobs.status[task_of(session, "old-1").row] == TaskStatus.RELEASING
    assert (session.evicts[0].reason, session.evicts[0].preemptor) == ("shuffle", "")
