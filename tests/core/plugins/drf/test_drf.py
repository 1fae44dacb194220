"""drf: dominant shares, the order by them, victims."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.objects.metadata import Object
from pumice.core.plugins.drf import Shares, changed
from pumice.core.session.session import Session
from tests.core.plugins.world import configuration, evictable, job_of, open_world, task_of
from tests.kit import gang, node, pod, queue

CONFIG = configuration(["drf"])
CLUSTER = node("n", cpu="16", memory="64Gi", gpus=4)


def share_of(session: Session, job: str) -> float:
    return Shares(session).of[job_of(session, job).row]


def runs(name: str, pods: int, where: str = "n", **each: Any) -> list[Object]:
    return gang(name, queue="q", pods=pods, nodes=[where] * pods, phase="Running", min_member=1, **each)


def test_the_share_is_that_of_the_scarcest_dimension() -> None:
    session = open_world(
        CONFIG,
        CLUSTER,
        queue("q"),
        runs("cpu", 4, memory="1Gi"),
        runs("memory", 1, memory="32Gi"),
        runs("gpu", 3, gpus=1, cpu="100m"),
        gang("none", queue="q", pods=1),
    )
    shares = {job: share_of(session, job) for job in ("cpu", "memory", "gpu", "none")}
    assert shares == {"cpu": 0.25, "memory": 0.5, "gpu": 0.75, "none": 0.0}
    order = ["none", "cpu", "memory", "gpu"]
    assert sorted(order, key=lambda job: shares[job]) == order
    assert session.points.job_order(job_of(session, "cpu"), job_of(session, "memory")) < 0
    assert session.points.job_order(job_of(session, "cpu"), job_of(session, "cpu")) == 0


def test_a_dimension_the_cluster_lacks_does_not_count() -> None:
    session = open_world(CONFIG, node("n", cpu="16"), queue("q"), runs("gpu", 2, gpus=1, cpu="1", memory="1Gi"))
    assert share_of(session, "gpu") == 0.125


def test_nobody_goes_for_a_pod_of_no_job() -> None:
    session = open_world(CONFIG, CLUSTER, queue("q"), runs("old", 8), pod("alone"), gang("new", queue="q", pods=1))
    assert evictable(session, "Preemptable", task_of(session, "alone"), "old-0", "old-1") == []
    assert evictable(session, "Preemptable", task_of(session, "new-0"), "old-0", "old-1") == ["old-0", "old-1"]


@st.composite
def plans(draw: Any) -> list[tuple[str, bool]]:
    """Tasks to allocate or pipeline, in some order."""
    tasks = draw(st.permutations([f"j{job}-{i}" for job in range(3) for i in range(3)]))
    return [(task, draw(st.booleans())) for task in tasks[: draw(st.integers(0, 9))]]


@given(plans())
def test_shares_follow_what_is_placed_and_come_back_when_it_is_undone(plan: list[tuple[str, bool]]) -> None:
    jobs = [gang(f"j{j}", queue="q", pods=3, cpu=str(j + 1), memory=f"{5 * j}Gi" if j else None) for j in range(3)]
    session = open_world(CONFIG, CLUSTER, queue("q"), *jobs, runs("old", 2))
    drf: Any = session.plugins["drf"]
    shares: Shares = drf._shares
    before = [shares.of[job.row] for job in session.jobs.in_order]
    statement = session.statement()
    for name, pipelined in plan:
        task = task_of(session, name)
        assert statement.pipeline(task, 0, evicted=False) if pipelined else statement.allocate(task, 0)
    for job in session.jobs.in_order:
        placed = [task for task in job.tasks.values() if session.jobs.node[task.row] >= 0]
        cpu = sum(task.template.request.milli_cpu for task in placed) / 16_000
        memory = sum(task.template.request.memory for task in placed) / (64 * 1024**3)
        assert shares.of[job.row] == max(cpu, memory, len(placed) / 110)
    statement.discard()
    assert [shares.of[job.row] for job in session.jobs.in_order] == before


# --- victims
# ------------------------------------------------------------------------------------------------------------


def test_victims_are_of_jobs_that_stay_above_the_preemptor() -> None:
    session = open_world(CONFIG, CLUSTER, queue("q"), runs("rich", 4), runs("poor", 1), gang("new", queue="q", pods=1))
    pods = [*(f"rich-{i}" for i in range(4)), "poor-0"]
    # With its task the new job has one core; after three victims the rich one has one as well, which is near enough.
    assert evictable(session, "Preemptable", task_of(session, "new-0"), *pods) == ["rich-0", "rich-1", "rich-2"]


@pytest.mark.parametrize(("fix", "last"), [((), []), (("drf-counts-victims-only",), ["rich-1"])])
def test_every_candidate_counts_unless_mended(fix: tuple[str, ...], last: list[str]) -> None:
    session = open_world(
        configuration(["drf"], fix=fix),
        CLUSTER,
        queue("q"),
        runs("rich", 1, cpu="3"),
        [runs("rich", 2, cpu="1")[-1]],
        gang("new", queue="q", pods=1, cpu="2"),
    )
    # Without rich-0 (3 cores) the job would fall below the new one's 2; without rich-1 it would not.
    assert evictable(session, "Preemptable", task_of(session, "new-0"), "rich-0", "rich-1") == last


def test_changed_leaves_the_amounts_alone() -> None:
    session = open_world(CONFIG, CLUSTER, queue("q"), gang("j", queue="q", pods=1))
    amounts = [1000.0, 0.0, 0.0, 0.0]
    assert changed(amounts, task_of(session, "j-0"), 1.0)[0] == 2000.0
    assert amounts[0] == 1000.0


@pytest.mark.parametrize("jobs", [0, 1, 3])
def test_shares_are_told_by_job_and_by_namespace(jobs: int) -> None:
    listed = [runs(f"j{number}", number + 1, namespace=f"ns{number % 2}", memory="1Gi") for number in range(jobs)]
    session = open_world(CONFIG, CLUSTER, queue("q"), *listed)
    told = session.tellers.shares[0]()
    shares = dict(zip(told.jobs, told.by_job().tolist(), strict=True))
    assert shares == {f"ns{number % 2}/j{number}": (number + 1) / 16 for number in range(jobs)}
    together = {"ns0": (1 + 3 * (jobs > 2)) / 16, "ns1": 2 / 16}
    assert dict(zip(told.namespaces, told.by_namespace().tolist(), strict=True)) == dict(list(together.items())[:jobs])
