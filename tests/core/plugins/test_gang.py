"""gang: validity, readiness by roles and groups, victims, and what is said when a session closes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.cycle import close_session, run_action
from pumice.core.life.task import TaskStatus, TaskTrigger
from pumice.core.objects.metadata import Object
from pumice.core.session.points.votes import Vote
from pumice.core.session.session import Session
from tests.core.plugins.world import configuration, evictable, job_of, open_world, task_of
from tests.kit import gang, node, pod, pod_group, queue

CONFIG = configuration(["gang"])


def world(*parts: Any, fix: tuple[str, ...] = ()) -> Session:
    return open_world(configuration(["gang"], ["predicates"], fix=fix), node("n", cpu="8"), queue("q"), *parts)


def pods(job: str, *roles: str, node_name: str | None = None) -> list[Object]:
    return [pod(f"{job}-{i}", group=job, task=role, node=node_name) for i, role in enumerate(roles)]


def with_groups(group: Object, size: int, minimum: int) -> Object:
    policy = {"name": "p", "subGroupSize": size, "minSubGroups": minimum, "matchLabelKeys": ["set"]}
    return {**group, "spec": {**group["spec"], "subGroupPolicy": [policy]}}


# --- validity
# -----------------------------------------------------------------------------------------------------------------


def verdict(session: Session) -> str | None:
    found = session.points.job_valid(job_of(session, "j"))
    return None if found is None else f"{found.reason}: {found.message}"


def test_enough_pods_of_every_role_and_in_all() -> None:
    roles = {"master": 1, "worker": 2}
    group = pod_group("j", queue="q", min_member=3, min_task_member=roles)
    assert verdict(world(group, pods("j", "master", "worker", "worker"))) is None
    short_of_role = world(group, pods("j", "worker", "worker", "worker"))
    assert verdict(short_of_role) == "NotEnoughPodsOfTask: Not enough valid pods of each task for gang-scheduling"
    plain = world(pod_group("j", queue="q", min_member=3), pods("j", "worker", "worker"))
    assert verdict(plain) == "NotEnoughTasks: Not enough valid tasks for gang-scheduling, valid: 2, min: 3"


def test_roles_are_not_asked_when_the_job_needs_fewer() -> None:
    group = pod_group("j", queue="q", min_member=2, min_task_member={"master": 1, "worker": 2})
    assert verdict(world(group, pods("j", "worker", "worker"))) is None


def test_enough_groups() -> None:
    group = with_groups(pod_group("j", queue="q", min_member=2), 1, 2)
    members = [pod(f"j-{i}", group="j", labels={"set": str(i)}) for i in range(2)]
    assert verdict(world(group, members)) is None
    alone = [pod(f"j-{i}", group="j", labels={"set": "0"}) for i in range(2)]
    found = verdict(world(group, alone))
    assert found == "NotEnoughPodsOfTask: Not enough valid subGroups of each task for gang-scheduling"


# --- readiness
# ------------------------------------------------------------------------------------------------------------------


ON_NODE: dict[str, Any] = {"node": "n"}
COMES_TO: dict[TaskStatus, tuple[dict[str, Any], tuple[TaskTrigger, ...]]] = {
    TaskStatus.PENDING: ({}, ()),
    TaskStatus.ALLOCATED: ({}, (TaskTrigger.ALLOCATE,)),
    TaskStatus.PIPELINED: ({}, (TaskTrigger.PIPELINE,)),
    TaskStatus.BINDING: ({}, (TaskTrigger.ASSUME,)),
    TaskStatus.BOUND: (ON_NODE, ()),
    TaskStatus.RUNNING: ({**ON_NODE, "phase": "Running"}, ()),
    TaskStatus.RELEASING: ({**ON_NODE, "phase": "Running"}, (TaskTrigger.EVICT,)),
    TaskStatus.SUCCEEDED: ({**ON_NODE, "phase": "Succeeded"}, ()),
    TaskStatus.FAILED: ({**ON_NODE, "phase": "Failed"}, ()),
}
"""Status -> the pod as it comes, and what happens to its task in the session."""


@given(st.lists(st.sampled_from(list(COMES_TO)), max_size=5), st.integers(0, 5))
def test_ready_pipelined_and_starving_by_counts(statuses: list[TaskStatus], needed: int) -> None:
    made = [pod(f"j-{i}", group="j", task="w", **COMES_TO[status][0]) for i, status in enumerate(statuses)]
    session = world(pod_group("j", queue="q", min_member=needed), made)
    job = job_of(session, "j")
    for i, status in enumerate(statuses):
        for trigger in COMES_TO[status][1]:
            session.jobs.move(job, task_of(session, f"j-{i}"), trigger)
    ready = sum(s.name in ("BOUND", "BINDING", "RUNNING", "ALLOCATED", "SUCCEEDED") for s in statuses)
    promised = statuses.count(TaskStatus.PIPELINED)
    assert session.job_ready(job) is (ready >= needed)
    assert session.job_pipelined(job) is (ready + promised >= needed)
    assert session.points.job_starving(job) is (ready + promised < needed)


def test_tasks_that_ask_for_nothing_count_as_ready_but_the_job_starves() -> None:
    free = pod("j-0", group="j", cpu=None, memory=None)
    session = world(pod_group("j", queue="q", min_member=1), free)
    assert session.job_ready(job_of(session, "j"))
    assert session.points.job_starving(job_of(session, "j"))


def test_every_role_must_be_ready() -> None:
    group = pod_group("j", queue="q", min_member=3, min_task_member={"master": 1, "worker": 2})
    session = world(group, pods("j", "worker", "worker", "worker", "master"))
    job, statement = job_of(session, "j"), session.statement()
    for name in ("j-0", "j-1", "j-2"):
        statement.allocate(task_of(session, name), 0)
    assert not session.job_ready(job)
    assert not session.job_pipelined(job)
    statement.pipeline(task_of(session, "j-3"), 0, evicted=False)
    assert session.job_pipelined(job)
    assert not session.job_ready(job)


def test_a_vote_never_abstains() -> None:
    session = world(gang("j", queue="q", pods=1))
    (ask,) = session.points.job_pipelined.rules
    assert ask(job_of(session, "j")) is Vote.REJECT
    session.statement().pipeline(task_of(session, "j-0"), 0, evicted=False)
    assert ask(job_of(session, "j")) is Vote.PERMIT


def test_jobs_that_are_not_ready_go_first() -> None:
    session = world(gang("r", queue="q", pods=1, nodes=["n"]), gang("w", queue="q", pods=1))
    ready, waiting = job_of(session, "r"), job_of(session, "w")
    assert session.points.job_order(waiting, ready) < 0 < session.points.job_order(ready, waiting)
    assert session.points.job_order(ready, ready) == 0


# --- victims
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["Preemptable", "Reclaimable"])
def test_a_gang_gives_what_it_has_above_its_minimum(point: str) -> None:
    session = open_world(
        CONFIG,
        node("n"),
        queue("q"),
        gang("j", queue="q", pods=4, nodes=["n"] * 4, min_member=2, phase="Running"),
        gang("k", queue="q", pods=1, nodes=["n"], phase="Running"),
        gang("new", queue="q", pods=1),
    )
    pods_in_order = ["j-3", "k-0", "j-0", "j-1"]
    assert evictable(session, point, task_of(session, "new-0"), *pods_in_order) == ["j-3", "j-0"]


# --- what is said
# ---------------------------------------------------------------------------------------------------------------


def said(session: Session, job: str) -> list[str]:
    """Conditions after close."""
    result = close_session(session)
    return [f"{c.type}={c.status} {c.reason}: {c.message}" for c in result.report.conditions[f"default/{job}"]]


def test_a_ready_gang_is_scheduled() -> None:
    session = world(gang("j", queue="q", pods=2, phase="Inqueue"))
    run_action(session, "allocate")
    assert said(session, "j") == ["Scheduled=True tasks in gang are ready to be scheduled: "]


def test_a_gang_that_does_not_fit_says_why() -> None:
    session = world(gang("j", queue="q", pods=10, phase="Inqueue"))
    run_action(session, "allocate")
    (condition,) = said(session, "j")
    head = "Unschedulable=True NotEnoughResources: 2/10 tasks in gang unschedulable: pod group is not ready, "
    assert condition.startswith(head)
    assert condition.endswith("Origin reason is j-8: 0/1 nodes are unavailable: 1 Insufficient cpu.")


def leaving(count: int, pending: int = 0) -> list[Object]:
    """A gang of two on its way out."""
    members = gang("j", queue="q", pods=2 + pending, nodes=["n"] * 2, min_member=2, phase="Running")
    for member in members[1 : 1 + count]:
        member["metadata"]["deletionTimestamp"] = "2026-01-01T11:59:00Z"
    return members


@pytest.mark.parametrize(
    ("count", "pending", "fix", "phase", "unschedulable"),
    [
        (1, 0, (), "Unknown", True),
        (2, 0, (), "Pending", True),
        (1, 0, ("terminating-members",), "Running", False),
        (2, 0, ("terminating-members",), "Running", False),
        (1, 1, ("terminating-members",), "Unknown", True),  # somebody waits for a place
        (0, 0, ("terminating-members",), "Running", False),
    ],
)
def test_members_on_their_way_out(
    count: int, pending: int, fix: tuple[str, ...], phase: str, unschedulable: bool
) -> None:
    session = world(leaving(count, pending), fix=fix)
    result = close_session(session)
    assert result.report.phases["default/j"] == phase
    types = [condition.type for condition in result.report.conditions["default/j"]]
    assert ("Unschedulable" in types) is unschedulable


def test_a_member_that_never_had_a_node_does_not_count() -> None:
    group, placed, never = gang("j", queue="q", pods=2, nodes=["n"], phase="Running")
    never["metadata"]["deletionTimestamp"] = "2026-01-01T11:59:00Z"
    session = world(group, placed, never, fix=("terminating-members",))
    assert close_session(session).report.phases["default/j"] == "Unknown"


@pytest.mark.parametrize(("fix", "phase"), [((), "Completed"), (("min-member-zero",), "Inqueue")])
def test_a_gang_of_nobody(fix: tuple[str, ...], phase: str) -> None:
    session = world(pod_group("j", queue="q", min_member=0, phase="Inqueue"), fix=fix)
    assert close_session(session).report.phases["default/j"] == phase


# --- fixes
# -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fix", "first"), [((), ["new"]), (("broken-gangs-first",), ["old"])])
def test_a_gang_below_its_minimum_comes_first_under_the_fix(fix: tuple[str, ...], first: list[str]) -> None:
    """It lost the pod whose node is free again; drf prefers the new job, which has nothing."""
    config = configuration(["priority", "gang"], ["drf", "predicates"], fix=fix)
    old = gang("old", queue="q", pods=2, min_member=2, phase="Unknown", cpu="1", created="2026-01-01T01:00:00Z")
    old[1]["spec"]["nodeName"], old[1]["status"] = "n0", {"phase": "Running"}
    new = gang("new", queue="q", pods=1, phase="Inqueue", cpu="1", created="2026-01-01T02:00:00Z")
    session = open_world(config, node("n0", cpu="1"), node("n1", cpu="1"), queue("q"), old, new)
    run_action(session, "allocate")
    assert [bind.name.rsplit("-", 1)[0] for bind in session.binds] == first


def test_a_gang_that_is_whole_again_comes_after_those_that_are_not_under_the_fix() -> None:
    config = configuration(["gang"], ["drf", "predicates"], fix=["broken-gangs-first"])
    old = gang("old", queue="q", pods=3, min_member=2, phase="Unknown", cpu="1")
    old[1]["spec"]["nodeName"], old[1]["status"] = "n0", {"phase": "Running"}
    new = gang("new", queue="q", pods=1, phase="Inqueue", cpu="1")
    session = open_world(config, node("n0", cpu="3"), queue("q"), old, new)
    run_action(session, "allocate")
    assert [bind.name for bind in session.binds] == ["old-1", "new-0"]


def roles(job: str, minimum: int, **least: int) -> list[Object]:
    group = pod_group(job, queue="q", min_member=minimum, phase="Inqueue")
    group["spec"]["minTaskMember"] = least
    return [group, *pods(job, *(role for role, count in least.items() for _ in range(count)))]


@pytest.mark.parametrize(
    ("fix", "cpu", "bound"),
    [((), "3", 3), (("task-minimums-count",), "3", 0), ((), "4", 4), (("task-minimums-count",), "4", 4)],
)
def test_minimums_of_tasks_count_above_the_jobs_under_the_fix(fix: tuple[str, ...], cpu: str, bound: int) -> None:
    config = configuration(["gang"], ["predicates"], fix=fix)
    session = open_world(config, node("n", cpu=cpu), queue("q"), *roles("j", 3, a=2, b=2))
    run_action(session, "allocate")
    assert len(session.binds) == bound


def test_fewer_pods_than_the_tasks_minimums_are_no_valid_gang_under_the_fix() -> None:
    session = world(*roles("j", 2, a=2, b=2)[:-1], fix=("task-minimums-count",))
    assert verdict(session) is not None
    assert verdict(world(*roles("j", 2, a=2, b=2)[:-1])) is None
