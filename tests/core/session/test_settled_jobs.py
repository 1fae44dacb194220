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
from pumice.core.state.jobs import Job
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


# --- Jobs that wait and have said so


WAITING = st.lists(
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.sampled_from(["1", "4"]), st.sampled_from(["small", "large"])),
    min_size=1,
    max_size=4,
)
"""Of each job its minimum, its tasks, what each asks for, and its queue."""
CHANGES = st.sampled_from(["none", "a task goes", "a node comes", "another minimum"])


def waiting(jobs: list[tuple[int, int, str, str]]) -> dict[str, Object]:
    found = [node("n0", cpu="3"), queue("small", capability={"cpu": "500m"}), queue("large")]
    for number, (needed, members, cpu, where) in enumerate(jobs):
        group = pod_group(f"j{number}", min_member=needed, phase="Inqueue", queue=where)
        group["spec"]["minTaskMember"] = {"worker": needed}
        found += [group, *[pod(f"j{number}-{k}", group=f"j{number}", cpu=cpu) for k in range(members)]]
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in found}


def written(world: dict[str, Object], result: CycleResult) -> list[Object]:
    """What the status writer makes of a cycle, without its binds."""
    found = list[Object]()
    for group in result.pod_groups:
        conditions = [msgspec.structs.asdict(each) for each in group.conditions]
        counts = {"running": group.running, "succeeded": group.succeeded, "failed": group.failed}
        before = world[f"PodGroup/{group.name}"]
        found.append({**before, "status": {"phase": group.phase, "conditions": conditions, **counts}})
    for told in result.pod_conditions:
        before, said = world[f"Pod/{told.name}"], {"reason": told.reason, "message": told.message}
        condition = {"type": "PodScheduled", "status": "False", **said}
        found.append({**before, "status": {**before.get("status", {}), "conditions": [condition]}})
    return found


def changed(world: dict[str, Object], change: str) -> tuple[str, Object] | None:
    if change == "a task goes":
        return "DELETED", world.pop("Pod/j0-0")
    if change == "a node comes":
        return "ADDED", node("n1", cpu="8")
    if change == "another minimum":
        group = world["PodGroup/j0"]
        return "MODIFIED", {**group, "spec": {**group["spec"], "minMember": group["spec"]["minMember"] + 1}}
    return None


@given(WAITING, CHANGES, st.sampled_from([STOCK, GANGLESS]))
def test_what_was_found_out_about_waiting_jobs_changes_nothing(
    jobs: list[tuple[int, int, str, str]], change: str, config: SchedulerConfig
) -> None:
    world = waiting(jobs)
    view = view_of(*world.values())
    for cycle in range(5):
        here, anew = (
            open_session(each.snapshot(), config, CycleClock(7, 9.0), Carry())
            for each in (view, view_of(*world.values()))
        )
        result = lived(config, here)
        assert msgspec.structs.asdict(result) == msgspec.structs.asdict(lived(config, anew))
        events = [("MODIFIED", each) for each in written(world, result)]
        if cycle == 3 and (other := changed(world, change)):
            events = [other]
        for event, obj in events:
            view.apply(event, obj)
            if event != "DELETED":
                world[f"{obj['kind']}/{obj['metadata']['name']}"] = obj


def test_a_job_that_waits_is_looked_at_once() -> None:
    """For room in its queue, that is. One that waits for a node is tried each time."""
    world = waiting([(2, 2, "1", "small"), (2, 2, "1", "large")])
    for name in ("Pod/j1-0", "Pod/j1-1"):
        world[name]["spec"]["nodeSelector"] = {"disk": "fast"}
    view = view_of(*world.values())
    jobs = list[Job]()
    for _ in range(3):
        session = open_session(view.snapshot(), STOCK, CycleClock(7, 9.0), Carry())
        jobs = session.jobs.in_order
        for each in written(world, lived(STOCK, session)):
            world[f"{each['kind']}/{each['metadata']['name']}"] = each
            view.apply("MODIFIED", each)
    of_queue, of_nodes = jobs
    assert of_queue.settled_under is of_queue.valid_under is STOCK
    assert of_nodes.settled_under is None
