"""Trial work: undone it leaves no trace, done again it does the same, committed it comes out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.errors import InvalidTransition
from pumice.core.life.pod_group import PodGroupPhase
from pumice.core.life.task import ALLOCATED_STATUSES, READY_STATUSES, TaskStatus
from pumice.core.session.session import Session
from pumice.core.session.statement import Statement, save
from tests.core.plugins.world import configuration, open_world, task_of
from tests.kit import gang, node, pod, queue

PLUGINS = (["priority", "gang"], ["drf", "predicates", "proportion"])
WAITING = [f"w-{i}" for i in range(4)] + ["free-0"]
PLACED = [f"r-{i}" for i in range(3)] + ["bound-0"]

MENDED = ("unevict-restores-bound", "unevict-restores-pods")

Columns = dict[str, npt.NDArray[Any]]
Step = tuple[str, str, int]


def world(fix: tuple[str, ...] = ()) -> Session:
    return open_world(
        configuration(*PLUGINS, fix=fix),
        [node(f"n{i}", cpu="6", gpus=2) for i in range(3)],
        queue("q"),
        gang("w", queue="q", pods=4, phase="Inqueue", gpus=1, memory="1500Mi"),
        gang("free", queue="q", pods=1, cpu=None, memory=None, phase="Inqueue"),
        gang("r", queue="q", pods=3, nodes=["n0", "n1", "n1"], phase="Running", min_member=1),
        gang("bound", queue="q", pods=1, phase="Inqueue")[:1],
        pod("bound-0", group="bound", node="n2", phase="Pending"),
    )


def columns(session: Session) -> Columns:
    """Copies of all that operations change."""
    jobs, tasks, nodes, kube = session.snapshot.jobs, session.snapshot.tasks, session.nodes, session.kube
    found: Columns = {
        **{f"jobs.{n}": getattr(jobs, n) for n in ("counts", "best_effort", "allocated", "pending", "total", "phase")},
        "tasks.status": tasks.status,
        "tasks.node": tasks.node,
        **{f"nodes.{n}": getattr(nodes, n) for n in ("idle", "used", "releasing", "pipelined", "future")},
        **{f"kube.{n}": getattr(kube, n) for n in ("pods", "requested", "nonzero")},
    }
    proportion: Any = session.plugins["proportion"]
    attributes = proportion.attributes["q"]
    found["q.allocated"] = np.array([attributes.allocated.milli_cpu, attributes.allocated.memory, attributes.share])
    drf: Any = session.plugins["drf"]
    found["drf.shares"] = np.array(drf._shares.of)
    return {name: array.copy() for name, array in found.items()}


def differing(left: Columns, right: Columns) -> list[str]:
    return [name for name in left if left[name].tobytes() != right[name].tobytes()]


def residents(session: Session) -> list[list[str]]:
    return [[task.key for task in session.nodes.tasks_on(row)] for row in range(session.nodes.count)]


def do(session: Session, statement: Statement, steps: list[Step]) -> None:
    """What of the steps is possible."""
    status = session.jobs.status
    for kind, name, row in steps:
        task = task_of(session, name)
        if kind == "evict" and status[task.row] in (TaskStatus.RUNNING, TaskStatus.BOUND):
            statement.evict(task, "test")
        elif status[task.row] == TaskStatus.PENDING and kind == "allocate" and session.nodes.fits_idle(row, task):
            statement.allocate(task, row)
        elif status[task.row] == TaskStatus.PENDING and kind == "pipeline" and session.nodes.fits_future(row, task):
            statement.pipeline(task, row, evicted=bool(row))


rows = st.integers(0, 2)
steps = st.lists(
    st.tuples(st.sampled_from(["allocate", "pipeline"]), st.sampled_from(WAITING), rows)
    | st.tuples(st.just("evict"), st.sampled_from(PLACED), rows),
    max_size=14,
)


@given(steps)
def test_what_is_discarded_leaves_every_column_as_it_was(plan: list[Step]) -> None:
    session = world(fix=MENDED)
    before, homes = columns(session), residents(session)
    statement = session.statement()
    do(session, statement, plan)
    statement.discard()
    assert differing(before, columns(session)) == []
    assert residents(session) == homes
    assert len(statement) == 0
    assert session.binds == []
    assert session.evicts == []


@given(steps)
def test_what_is_known_of_jobs_follows_every_step(plan: list[Step]) -> None:
    """Counted anew from the tasks, each column is what it was kept at, and so is what is read from it."""
    session = world()
    statement = session.statement()
    for step in plan:
        do(session, statement, [step])
        jobs = session.jobs
        for job in jobs.in_order:
            row, tasks = job.row, list(job.tasks.values())
            statuses = [TaskStatus(jobs.status[task.row]) for task in tasks]
            assert [int(jobs.counts[status][row]) for status in TaskStatus] == [statuses.count(s) for s in TaskStatus]
            waits = [
                task.template.best_effort and s == TaskStatus.PENDING for task, s in zip(tasks, statuses, strict=True)
            ]
            ready = sum(status in READY_STATUSES for status in statuses)
            assert jobs.best_effort[row] == sum(waits)
            assert jobs.ready_count(job) == ready
            assert jobs.is_ready(job) == (ready + sum(waits) >= jobs.min_member[row])
            pipelined = statuses.count(TaskStatus.PIPELINED)
            assert jobs.is_pipelined(job) == (ready + pipelined + sum(waits) >= jobs.min_member[row])
            assert jobs.is_starving(job) == (ready + pipelined < jobs.min_member[row])
            cpu = sum(
                task.template.items[0][1]
                for task, s in zip(tasks, statuses, strict=True)
                if s in ALLOCATED_STATUSES and task.template.items
            )
            assert jobs.allocated_at[0][row] == cpu


@given(steps)
def test_unmended_only_what_was_evicted_differs(plan: list[Step]) -> None:
    """As in Volcano: bound victims come back as running, and none of them to kube-scheduler's NodeInfo."""
    session = world()
    before = columns(session)
    statement = session.statement()
    do(session, statement, plan)
    victims = [operation.task.name for operation in statement.operations if operation.kind.name == "EVICT"]
    evicted = "bound-0" in victims
    statement.discard()
    statuses = ["jobs.counts", "tasks.status"] if evicted else []
    node_info = ["kube.pods", "kube.requested", "kube.nonzero"] if victims else []
    assert differing(before, columns(session)) == [*statuses, *node_info]
    status = session.jobs.status[task_of(session, "bound-0").row]
    assert status == (TaskStatus.RUNNING if evicted else TaskStatus.BOUND)


@given(steps, st.integers(0, 14))
def test_saved_operations_do_the_same_again(plan: list[Step], cut: int) -> None:
    session = world(fix=MENDED)
    first, second = session.statement(), session.statement()
    do(session, first, plan[:cut])
    do(session, second, plan[cut:])
    saved, after = save(first, second), columns(session)
    second.discard()
    first.discard()
    again = session.statement()
    assert again.recover(saved)
    assert differing(after, columns(session)) == []
    assert again.operations == saved


@given(steps, st.integers(0, 14))
def test_merged_statements_are_undone_as_one(plan: list[Step], cut: int) -> None:
    session = world(fix=MENDED)
    before = columns(session)
    first, second = session.statement(), session.statement()
    do(session, first, plan[:cut])
    do(session, second, plan[cut:])
    first.merge(second)
    assert len(second) == 0
    first.discard()
    assert differing(before, columns(session)) == []


@given(steps)
def test_commit_hands_out_evictions_and_binds_and_keeps_promises_back(plan: list[Step]) -> None:
    session = world()
    statement = session.statement()
    do(session, statement, plan)
    kinds = [(operation.kind.name, operation.task.name) for operation in statement.operations]
    statement.commit()
    assert [evict.name for evict in session.evicts] == [name for kind, name in kinds if kind == "EVICT"]
    assert [bind.name for bind in session.binds] == [name for kind, name in kinds if kind == "ALLOCATE"]
    expected = {"EVICT": TaskStatus.RELEASING, "ALLOCATE": TaskStatus.BINDING, "PIPELINE": TaskStatus.PIPELINED}
    for kind, name in kinds:
        assert session.jobs.status[task_of(session, name).row] == expected[kind]


@given(steps)
def test_columns_add_up_at_any_time(plan: list[Step]) -> None:
    session = world()
    do(session, session.statement(), plan)
    nodes, tasks = session.nodes, [t for t in session.snapshot.tasks.handles if t is not None]
    used, pipelined = np.zeros_like(nodes.used), np.zeros_like(nodes.pipelined)
    for task in tasks:
        row, status = session.jobs.node[task.row], session.jobs.status[task.row]
        if row >= 0:
            target = pipelined if status == TaskStatus.PIPELINED else used
            for dimension, value in task.template.items:
                target[dimension, row] += value
    assert (nodes.used == used).all()
    assert (nodes.pipelined == pipelined).all()
    assert (nodes.idle == nodes.allocatable - used).all()
    assert (nodes.future == nodes.idle + nodes.releasing - pipelined).all()


def test_a_discarded_transaction_is_remembered_for_the_explanation() -> None:
    session = world()
    statement = session.statement()
    task = task_of(session, "w-0")
    statement.pipeline(task, 1, evicted=True)
    statement.discard()
    assert session.last_transaction[task.row] == (TaskStatus.PIPELINED, 1, True)
    statement.allocate(task, 2)
    statement.commit()
    assert task.row not in session.last_transaction


def test_the_last_operation_is_undone_first() -> None:
    session, told = world(), list[str]()

    def note(task: Any, node: int) -> None:
        told.append(task.name)

    session.points.handle(note, note)
    statement = session.statement()
    do(session, statement, [("evict", "r-0", 0), ("pipeline", "w-0", 0), ("allocate", "w-1", 1)])
    statement.discard()
    assert told == ["r-0", "w-0", "w-1", "w-1", "w-0", "r-0"]


@pytest.mark.parametrize("how", ["allocate", "pipeline"])
def test_what_a_handler_refuses_is_rolled_back_after_all_were_told(how: str) -> None:
    session = world()
    told: list[str] = []

    def refuse(task: Any, node: int) -> str:
        told.append(f"refuse {task.name}")
        return "no"

    def note(task: Any, node: int) -> None:
        told.append(f"note {task.name}")

    session.points.handle(refuse)
    session.points.handle(note, note)
    before, task = columns(session), task_of(session, "w-0")
    statement = session.statement()
    done = statement.allocate(task, 0) if how == "allocate" else statement.pipeline(task, 0, evicted=False)
    assert not done
    assert told == ["refuse w-0", "note w-0", "note w-0"]
    assert differing(before, columns(session)) == []
    assert len(statement) == 0


def test_nothing_changes_a_status_but_its_table() -> None:
    session = world()
    task = task_of(session, "w-0")
    with pytest.raises(InvalidTransition, match="w-0 is Pending and cannot commit"):
        session.emit_bind(task)
    assert session.binds == []
    assert session.jobs.status[task.row] == TaskStatus.PENDING
    job = session.job_of(task)
    assert job is not None
    session.jobs.phase[job.row] = PodGroupPhase.RUNNING
    with pytest.raises(InvalidTransition, match="is Running and cannot enqueue"):
        session.jobs.admit(job)
