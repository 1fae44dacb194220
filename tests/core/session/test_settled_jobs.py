"""Jobs of which nothing is left to be said are passed over at the close of a session: the same comes of it."""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pumice.config.schema import SchedulerConfig
from pumice.core.cycle import Carry, CycleClock, close_session, open_session, run_action
from pumice.core.messages.decisions import CycleResult, PodGroupCondition
from pumice.core.objects.metadata import Object
from pumice.core.session.closing.close import set_condition
from pumice.core.session.session import Session
from tests.core.plugins.world import configuration, view_of
from tests.kit import node, pod, pod_group, queue

ACTIONS = ("enqueue", "allocate", "backfill", "preempt")
STOCK = configuration(["priority", "gang"], ["drf", "predicates", "proportion", "nodeorder"], actions=ACTIONS)
GANGLESS = configuration(["priority"], ["predicates"], actions=ACTIONS)
MENDED = configuration(["gang"], ["proportion"], actions=ACTIONS, fix=("terminating-members", "min-member-zero"))

READY = {"type": "Scheduled", "status": "True", "reason": "tasks in gang are ready to be scheduled"}
JOBS = st.tuples(
    st.sampled_from(["Completed", "Completed", "Running", "Pending", ""]),  # its phase
    st.integers(0, 3),  # its minimum
    st.lists(st.sampled_from(["Succeeded", "Succeeded", "Failed", "Running", "Pending"]), max_size=3),
    st.tuples(*[st.sampled_from([0, 0, 0, 1])] * 3),  # what its status says beside what is so
    st.booleans(),  # whether it was said that it is ready
)
WORLDS = st.lists(JOBS, max_size=6)
World = list[tuple[str, int, list[str], tuple[int, int, int], bool]]


def objects(world: World) -> list[Object]:
    found: list[Object] = [node("n0", cpu="3"), queue("default")]
    for number, (phase, needed, members, beside, ready) in enumerate(world):
        group = pod_group(f"j{number}", min_member=needed, phase=phase)
        counts = Counter(members)
        for field, more in zip(("Running", "Succeeded", "Failed"), beside, strict=True):
            group["status"][field.lower()] = counts[field] + more
        group["status"]["conditions"] = [READY] if ready else []
        found.append(group)
        for k, member in enumerate(members):
            where = None if member == "Pending" else "n0"
            found.append(pod(f"j{number}-{k}", group=f"j{number}", phase=member, node=where))
    return found


def opened(config: SchedulerConfig, seen: list[Object]) -> Session:
    return open_session(view_of(*seen).snapshot(), config, CycleClock(7, 9.0), Carry())


def lived(config: SchedulerConfig, session: Session) -> CycleResult:
    for action in config.actions:
        run_action(session, action)
    return close_session(session)


@given(WORLDS, st.sampled_from([STOCK, GANGLESS, MENDED]))
def test_the_same_comes_of_a_session(world: World, config: SchedulerConfig) -> None:
    some, every = opened(config, objects(world)), opened(config, objects(world))
    every.jobs.calm_counts = False
    assert msgspec.structs.asdict(lived(config, some)) == msgspec.structs.asdict(lived(config, every))


OVER = ("Completed", 1, ["Succeeded", "Failed"], (0, 0, 0), True)
SMALL = ("Completed", 1, ["Succeeded"], (0, 0, 0), True)


def test_of_a_job_that_is_over_nothing_is_looked_at() -> None:
    unsaid = ("Completed", 1, ["Succeeded"], (0, 1, 0), True)
    session = opened(STOCK, objects([OVER, unsaid, SMALL]))
    assert [job.name for job in session.jobs.columns.named(session.jobs.find_unsettled())] == ["j1"]
    assert np.count_nonzero(session.jobs.columns.calm) == 2
    assert [each.name for each in lived(STOCK, session).pod_groups] == ["j1"]


def test_what_a_plugin_says_of_a_job_that_is_over_is_written() -> None:
    session = opened(STOCK, objects([OVER, OVER]))
    condition = PodGroupCondition("Audited", "True", "", "")
    set_condition(session, session.jobs.in_order[1], condition)
    (written,) = lived(STOCK, session).pod_groups
    assert written.name == "j1"
    assert condition in written.conditions
