"""Of tasks alike the queue is asked once: no more than time is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from pumice.core.cycle import run_action
from tests.core.actions.crowds import crowds, waiting
from tests.core.plugins.world import configuration, open_world
from tests.kit import node, queue

if TYPE_CHECKING:
    from pumice.config.schema import SchedulerConfig
    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue

PROPORTION = configuration(["gang", "conformance", "priority", "proportion"], ["predicates", "nodeorder"])
CAPACITY = configuration(["gang", "conformance", "priority", "capacity"], ["predicates", "nodeorder"])


@given(crowds(queues=("q", "p")))
def test_not_asking_again_only_saves_time(objects: Any) -> None:
    def outcome(config: SchedulerConfig, *, asks_of_all: bool) -> Any:
        session = open_world(config, objects)
        session.points.unforeseeable = asks_of_all
        run_action(session, "allocate")
        said = [session.fit.job_sentence(job) for job in session.jobs.in_order]
        numbers = bytes(session.jobs.status), session.nodes.future.tolist()
        return session.binds, numbers, sorted(session.last_transaction.items()), said

    for config in (PROPORTION, CAPACITY):
        assert outcome(config, asks_of_all=False) == outcome(config, asks_of_all=True)


@pytest.mark.parametrize(
    ("room", "special", "questions"), [("2", "", 4), ("500m", "", 2), ("500m", "plugin", 5), ("500m", "claims", 5)]
)
def test_the_queue_is_asked_until_it_says_no(room: str, special: str, questions: int) -> None:
    """Five of a kind, and once more whether other jobs of the kind need be tried. A user's plugin may tell any two
    pods apart, and what is claimed counts beside the request.
    """
    asked: list[Task] = []
    group, *pods = waiting("new", 5, queue="q", cpu="1")
    for each in pods if special == "claims" else ():
        each["spec"]["resourceClaims"] = [{"name": "device", "resourceClaimName": "shared"}]
    session = open_world(CAPACITY, node("n0", cpu="8"), queue("q", capability={"cpu": room}), group, pods)
    session.points.unforeseeable = special == "plugin"

    (rule,) = session.points.allocatable.rules

    def noting(asks_for: Queue, task: Task) -> bool:
        asked.append(task)
        return rule(asks_for, task)

    session.points.allocatable.add("capacity", noting)
    run_action(session, "allocate")
    assert len(asked) == questions
