"""Copies of tasks: a replayed operation leaves the task as it was in its group's lists, and nowhere else."""

from __future__ import annotations

import pytest

from pumice.core.cycle import run_action
from pumice.core.life.task import LABELS, TaskStatus
from pumice.core.objects.metadata import Object
from pumice.core.objects.pod import Task
from pumice.core.session.closing.close import pod_conditions
from pumice.core.session.jobs import SubJob
from pumice.core.session.session import Session
from pumice.core.session.statement import Statement, save
from tests.core.actions.crowds import classes, running, waiting
from tests.core.plugins.world import configuration, job_of, open_world, task_of
from tests.kit import gang, node, queue
from tests.kit.hyper_nodes import hyper_node

TIERS = ["priority", "gang", "conformance"], ["predicates", "nodeorder", "network-topology-aware"]
CONFIG = configuration(*TIERS)
MENDED = configuration(*TIERS, fix=["groups-list-tasks-once"])
TWO = (node("n0", cpu="4"), node("n1", cpu="4"), queue("q"), classes())
N0, N1 = 0, 1
CPU = 0


def one_pod() -> Session:
    return open_world(CONFIG, *TWO, gang("j", queue="q", pods=1, phase="Inqueue", cpu="1"))


def group_of(session: Session, job: str) -> SubJob:
    (group,) = session.sub_jobs(job_of(session, job)).values()
    return group


def replayed(session: Session, task: Task, node_row: int, *, promised: bool) -> Statement:
    """A trial on a node, undone and done again."""
    trial, again = session.statement(), session.statement()
    assert trial.pipeline(task, node_row, evicted=True) if promised else trial.allocate(task, node_row)
    saved = save(trial)
    trial.discard()
    assert again.recover(saved)
    return again


def statuses(session: Session, job: str) -> dict[str, str]:
    tasks = job_of(session, job).in_uid_order()
    return {task.name: LABELS[session.jobs.status[task.row]] for task in tasks}


def test_a_group_lists_a_replayed_task_as_pending_too() -> None:
    session = one_pod()
    replayed(session, task_of(session, "j-0"), N0, promised=True)
    group = group_of(session, "j")
    assert [task.name for task in group.pending(session.jobs)] == ["j-0"]
    assert (group.ready_count(session.jobs), group.is_pipelined(session.jobs)) == (0, True)
    assert statuses(session, "j") == {"j-0": "Pipelined"}


def test_what_is_undone_is_listed_once_again() -> None:
    session = one_pod()
    task = task_of(session, "j-0")
    replayed(session, task, N0, promised=False).discard()
    assert session.jobs.listings[task.row].by_status.keys() == {TaskStatus.PENDING}
    assert session.nodes.idle[CPU].tolist() == [4000.0, 4000.0]


def test_a_task_that_is_placed_again_leaves_its_promise_behind() -> None:
    session = one_pod()
    task = task_of(session, "j-0")
    replayed(session, task, N0, promised=True).commit()
    session.copies.hold(task)
    session.copies.act_as_held(task)
    anew = session.statement()
    assert anew.allocate(task, N1)
    assert statuses(session, "j") == {"j-0": "Allocated"}
    assert session.nodes.pipelined[CPU].tolist() == [1000.0, 0.0]
    group = group_of(session, "j")
    assert (group.ready_count(session.jobs), group.is_pipelined(session.jobs)) == (1, True)
    anew.discard()
    assert statuses(session, "j") == {"j-0": "Pending"}
    assert session.nodes.pipelined[CPU].tolist() == [1000.0, 0.0]
    assert session.nodes.idle[CPU].tolist() == [4000.0, 4000.0]
    _, message, _ = session.fit.task_reason(job_of(session, "j"), task)
    assert message == "Pod default/j-0 can possibly be assigned to n1, once minAvailable is satisfied"


def test_a_node_takes_no_second_copy_and_loses_the_first() -> None:
    session = one_pod()
    task = task_of(session, "j-0")
    replayed(session, task, N0, promised=True).commit()
    session.copies.act_as_held(task)
    assert not session.statement().allocate(task, N0)
    assert statuses(session, "j") == {"j-0": "Pending"}
    assert session.nodes.pipelined[CPU].tolist() == [0.0, 0.0]


def test_a_pod_is_bound_once() -> None:
    session = one_pod()
    task = task_of(session, "j-0")
    replayed(session, task, N0, promised=False).commit()
    session.copies.act_as_held(task)
    anew = session.statement()
    assert anew.allocate(task, N1)
    anew.commit()
    assert [bind.node for bind in session.binds] == ["n0"]
    assert statuses(session, "j") == {"j-0": "Pending"}


def test_a_replayed_eviction_leaves_its_victim_running_in_its_group() -> None:
    session = open_world(CONFIG, *TWO, running("old", ["n0"], queue="q"))
    trial, again = session.statement(), session.statement()
    trial.evict(task_of(session, "old-0"), "room")
    saved = save(trial)
    trial.discard()
    again.recover(saved)
    assert group_of(session, "old").ready_count(session.jobs) == 1
    assert session.jobs.ready_count(job_of(session, "old")) == 0


def in_one_rack(objects: list[Object]) -> list[Object]:
    group, *pods = objects
    wish = {"mode": "hard", "highestTierAllowed": 1}
    return [{**group, "spec": {**group["spec"], "networkTopology": wish}}, *pods]


@pytest.mark.parametrize(
    ("mended", "found"),
    [(False, {"new-0": "Allocated", "new-1": "Pipelined"}), (True, {"new-0": "Pipelined", "new-1": "Pipelined"})],
)
def test_allocate_tries_again_what_gangpreempt_has_made_room_for(mended: bool, found: dict[str, str]) -> None:
    """Room is made for two in the first rack; in the second there is room for one of them immediately."""
    racks = [hyper_node("r0", 1, nodes=["n0"]), hyper_node("r1", 1, nodes=["n1", "n2"])]
    nodes = [node("n0", cpu="6"), node("n1", cpu="4"), node("n2", cpu="2")]
    old = running("low", ["n0"] * 6, least=0, queue="q")
    new = in_one_rack(waiting("new", 2, queue="q", cpu="3"))
    session = open_world(MENDED if mended else CONFIG, nodes, queue("q"), classes(), racks, old, new)
    run_action(session, "gangpreempt")
    assert statuses(session, "new") == {"new-0": "Pipelined", "new-1": "Pipelined"}
    run_action(session, "allocate")
    assert statuses(session, "new") == found
    assert session.nodes.pipelined[CPU].tolist() == [6000.0, 0.0, 0.0]


def test_a_nomination_that_did_not_hold_is_cleared_by_what_is_written_next() -> None:
    session = open_world(CONFIG, *TWO, waiting("new", 1, queue="q", cpu="8"))
    (quiet,) = pod_conditions(session)
    assert quiet.nominated == ""
    nominated = waiting("new", 1, queue="q", cpu="8")
    nominated[1]["status"]["nominatedNodeName"] = "n0"
    session = open_world(CONFIG, *TWO, nominated)
    session.forget_nomination(task_of(session, "new-0"))
    (written,) = pod_conditions(session)
    assert written.nominated is None
