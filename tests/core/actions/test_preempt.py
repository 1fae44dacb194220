"""preempt: who makes room for whom, when it is kept, and what the switches mend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.actions import preempt
from pumice.core.actions.victims import candidates
from pumice.core.cycle import run_action
from pumice.core.life.task import TaskStatus
from pumice.core.session.session import Session
from tests.core.actions.crowds import PLAIN, after, classes, crowds, evictions, running, waiting, with_arguments
from tests.core.plugins.world import configuration, job_of, open_world, task_of
from tests.kit import node, pod, pod_group, queue


def full(*parts: Any, config: Any = PLAIN, cpu: str = "4") -> Session:
    return after("preempt", config, node("n0", cpu=cpu), queue("q"), queue("p"), classes(), *parts)


def pipelined(session: Session) -> list[str]:
    status = session.jobs.status
    tasks = [task for task in session.snapshot.tasks.handles if task is not None]
    return sorted(task.name for task in tasks if status[task.row] == TaskStatus.PIPELINED)


def test_the_less_important_make_room_and_the_room_is_promised() -> None:
    session = full(running("old", ["n0"] * 4, queue="q"), waiting("new", 1, queue="q", cpu="2"))
    assert evictions(session) == ["old-2", "old-1"]  # the gang may lose the first three, the last of them goes first
    assert pipelined(session) == ["new-0"]
    assert {(e.preemptor, e.reason, e.action) for e in session.evicts} == {("default/new-0", "preempt", "preempt")}
    assert session.evicts[0].score > 0.0  # the node's


@pytest.mark.parametrize(
    "spared",
    [
        {"annotations": {"volcano.sh/preemptable": "false"}},
        {"queue": "p"},
        {"group": "high"},
        {"least": 4},
        {"namespace": "kube-system"},
    ],
)
def test_who_is_nobodys_victim(spared: dict[str, Any]) -> None:
    config = configuration(
        ["priority", "gang", "conformance"], ["predicates", "nodeorder"], fix=["empty-answer-vetoes"]
    )
    spared = {"queue": "q", "cpu": "1", **spared}
    old = running("old", ["n0"] * 4, **spared)
    assert evictions(full(old, waiting("new", 1, queue="q"), config=config)) == []


def test_room_is_made_though_another_job_is_not_admitted_yet() -> None:
    outside = pod_group("first", queue="q", min_resources={"cpu": "1"}, phase="Pending")
    session = full(running("old", ["n0"] * 4, queue="q"), outside, waiting("new", 1, queue="q", cpu="2"))
    assert evictions(session) == ["old-2", "old-1"]


def test_nothing_is_kept_of_a_job_that_could_not_run_even_so() -> None:
    session = full(running("old", ["n0"] * 4, queue="q"), waiting("new", 3, queue="q", cpu="2"))
    assert evictions(session) == []
    assert pipelined(session) == []
    assert task_of(session, "new-0").row in session.last_transaction  # what it had reached explains why it waits


def test_a_pod_that_may_not_preempt() -> None:
    new = waiting("new", 1, queue="q")
    new[1]["spec"]["preemptionPolicy"] = "Never"
    assert evictions(full(running("old", ["n0"] * 4, queue="q"), new)) == []


def test_within_a_job_the_more_important_tasks_take_from_the_others() -> None:
    group = pod_group("job", queue="q", min_member=1, phase="Running", priority_class="mid")
    marks = {"volcano.sh/preemptable": "true"}
    low = pod("job-low", group="job", node="n0", cpu="4", priority=10, annotations=marks)
    high = pod("job-high", group="job", cpu="2", priority=1000)
    config = configuration(["priority"], ["predicates", "nodeorder"])
    session = full(group, low, high, config=config)
    assert evictions(session) == ["job-low"]
    assert pipelined(session) == ["job-high"]


def test_best_effort_pods_take_only_from_best_effort_pods() -> None:
    old = running("old", ["n0"] * 2, queue="q", cpu="2", least=0)
    idle = running("idle", ["n0"], queue="q", cpu=None, memory=None, least=0)
    config = configuration(["priority", "gang"], ["predicates"])
    session = full(old, idle, waiting("new", 1, queue="q", cpu=None, memory=None), config=config)
    assert "old-0" not in evictions(session)
    assert "old-1" not in evictions(session)


@pytest.mark.parametrize(("fix", "counts"), [((), False), (("best-effort-victims-count",), True)])
def test_victims_that_ask_for_nothing(fix: tuple[str, ...], counts: bool) -> None:
    idle = running("idle", ["n0"] * 2, queue="q", cpu=None, memory=None, least=0)
    config = configuration(["priority", "gang"], ["predicates"], fix=fix)
    new = waiting("new", 1, queue="q", cpu=None, memory=None)
    session = after("preempt", config, node("n0", cpu="4", pods="2"), queue("q"), classes(), idle, new)
    assert len(evictions(session)) == 1
    assert pipelined(session) == ["new-0"]
    assert (task_of(session, "new-0").row in session.evicted_for) is counts


def nominated(*, terminating: bool, group: str = "low") -> list[Any]:
    """A pod that was nominated in an earlier cycle; somebody may still be on his way out."""
    old = running("old", ["n0"] * 4, group=group, queue="q")
    if terminating:
        old[1]["metadata"]["deletionTimestamp"] = "2026-01-01T11:59:00Z"
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        old[1]["status"]["conditions"] = [condition]
    new = waiting("new", 1, queue="q", cpu="2")
    new[1]["status"]["nominatedNodeName"] = "n0"
    return [old, new]


def test_a_nominated_pod_waits_for_its_victims_to_end() -> None:
    assert evictions(full(*nominated(terminating=True))) == []
    assert evictions(full(*nominated(terminating=False))) != []


def test_a_nominated_pod_that_the_filters_let_in_waits() -> None:
    parts = nominated(terminating=False)
    session = open_world(PLAIN, node("n0", cpu="4"), queue("q"), classes(), *parts)
    session.search_for(task_of(session, "new-0"))  # as allocate does
    preempt.execute(session)
    assert evictions(session) == []


ANEW = ("nominated-nodes-are-counted-anew",)


@pytest.mark.parametrize(
    ("filters", "fix", "waits"),
    [(["predicates"], (), False), (["usage"], (), True), (["usage"], ANEW, False), ([], (), True)],
)
def test_nominated_pod_nobody_searched_for_waits_unless_filters_fail(
    filters: list[str], fix: tuple[str, ...], waits: bool
) -> None:
    """Only filters that keep state from PreFilter fail where there is none: those of predicates."""
    config = configuration(["priority", "gang", "conformance"], ["drf", *filters, "nodeorder"], fix=fix)
    assert (evictions(full(*nominated(terminating=False), config=config)) == []) is waits


@pytest.mark.parametrize("fix", [(), ANEW])
def test_unsearched_pod_goes_by_filters_before_the_one_that_fails(fix: tuple[str, ...]) -> None:
    """A node that will never have it is given up, though somebody leaves it."""
    closed = node("n0", cpu="4", taints=[{"key": "k", "effect": "NoSchedule"}])
    other = running("other", ["n1"] * 4, queue="q")
    config = configuration(["priority", "gang", "conformance"], ["drf", "predicates", "nodeorder"], fix=fix)
    objects = (closed, node("n1", cpu="4"), queue("q"), classes(), other, *nominated(terminating=True))
    assert evictions(after("preempt", config, *objects)) == ["other-2", "other-1"]


@pytest.mark.parametrize(("fix", "promised"), [((), ["new-1"]), (ANEW, [])])
def test_nominated_node_is_judged_by_what_prefilter_counted_last(fix: tuple[str, ...], promised: list[str]) -> None:
    """allocate puts new-0 on n0, looks for new-1 (which may not be beside it) in vain, and takes new-0 back: preempt
    still finds n0 taken for new-1, so new-1 may preempt, and is told of n0 again.
    """
    away = {"labelSelector": {"matchLabels": {"app": "y"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [away]}}
    new = waiting("new", 2, queue="q", affinity=affinity)
    for number, each in enumerate(new[1:]):
        each["metadata"]["labels"] = {"app": "yx"[number]}
        each["status"]["nominatedNodeName"] = "n0"
    config = configuration(["priority", "gang", "conformance"], ["drf", "predicates", "nodeorder"], fix=fix)
    session = open_world(config, node("n0", cpu="4"), queue("q"), classes(), new)
    run_action(session, "allocate")
    run_action(session, "preempt")
    last = {task.name: session.last_transaction.get(task.row) for task in session.snapshot.tasks.handles if task}
    assert [name for name, each in sorted(last.items()) if each and each.status == TaskStatus.PIPELINED] == promised


@pytest.mark.parametrize(("group", "waits"), [("low", True), ("high", False)])
def test_a_nominated_pod_does_not_wait_for_somebody_who_is_as_important(group: str, waits: bool) -> None:
    """Nobody of that kind goes for it."""
    config = configuration(["priority", "gang"], ["predicates", "nodeorder"], fix=["empty-answer-vetoes"])
    parts = nominated(terminating=True, group=group)
    session = full(node("n1", cpu="4"), running("other", ["n1"] * 4, queue="q"), *parts, config=config)
    assert evictions(session) == ([] if waits else ["other-2", "other-1"])


def test_a_nominated_pod_does_not_wait_for_a_node_that_will_not_have_it() -> None:
    closed = node("n0", cpu="4", taints=[{"key": "k", "effect": "NoSchedule"}])
    other = running("other", ["n1"] * 4, queue="q")
    objects = (closed, node("n1", cpu="4"), queue("q"), classes(), other, *nominated(terminating=True))
    assert evictions(after("preempt", PLAIN, *objects)) == ["other-2", "other-1"]


def test_hopeless_nodes_are_not_looked_at() -> None:
    tainted = node("n0", cpu="4", taints=[{"key": "k", "effect": "NoSchedule"}])
    parts = (queue("q"), classes(), running("old", ["n0"] * 4, queue="q"), waiting("new", 1, queue="q"))
    assert evictions(after("preempt", PLAIN, tainted, *parts)) == []


def ports(name: str, **each: Any) -> list[Any]:
    return running(name, ["n0"], queue="q", cpu="1", least=0, host_ports=[80], **each)


@pytest.mark.parametrize(("fix", "names"), [((), ["a-0"]), (("preempt-rechecks-predicates",), ["a-0", "b-0"])])
def test_filters_after_evictions(fix: tuple[str, ...], names: list[str]) -> None:
    """The port is only free once the other one has gone as well."""
    session = full(
        running("a", ["n0"], queue="q", cpu="1", least=0),
        ports("b", group="mid"),
        pod("wall", node="n0", cpu="2"),
        waiting("new", 1, queue="q", host_ports=[80]),
        config=configuration(["priority", "gang"], ["predicates", "nodeorder"], fix=fix),
    )
    assert evictions(session) == names


@pytest.mark.parametrize(("fix", "turns"), [((), 2), (("preempt-pushes-once",), 1)])
def test_turns_of_a_preemptor(fix: tuple[str, ...], turns: int) -> None:
    config = configuration(["priority", "gang", "conformance"], ["predicates", "nodeorder"], fix=fix)
    session = open_world(
        config,
        node("n0", cpu="4"),
        queue("q"),
        classes(),
        running("old", ["n0"] * 4, queue="q"),
        waiting("new", 1, queue="q"),
    )
    asked: list[str] = []
    ask = session.points.job_pipelined.rules[0]

    def counting(job: Any) -> Any:
        asked.append(job.key)
        return ask(job)

    session.points.job_pipelined.add("gang", counting)
    preempt.execute(session)
    assert asked.count("default/new") == turns


MENDED = ("empty-answer-vetoes", "intersection-stays-empty")


@given(crowds(queues=("q", "p")), st.booleans())
def test_no_gang_falls_below_its_minimum(objects: Any, aware: bool) -> None:
    config = configuration(["gang", "priority"], ["predicates", "nodeorder"], fix=MENDED)
    arguments = {"enableTopologyAwarePreemption": aware, "minCandidateNodesPercentage": 100}
    session = open_world(with_arguments(config, "preempt", **arguments), objects)
    ready = {job.key: session.jobs.ready_count(job) for job in session.jobs.in_order}
    preempt.execute(session)
    for key in {evict.job for evict in session.evicts}:
        job = job_of(session, key.partition("/")[2])
        assert session.jobs.ready_count(job) >= min(job.pod_group.min_member, ready[key])


@given(crowds())
def test_screening_only_saves_time(objects: Any) -> None:
    def outcome(tried_first: int) -> Any:
        before, candidates.TRIED_FIRST = candidates.TRIED_FIRST, tried_first
        try:
            session = after("preempt", PLAIN, objects)
        finally:
            candidates.TRIED_FIRST = before
        return session.evicts, pipelined(session), session.nodes.future.tolist()

    assert outcome(0) == outcome(1000)


@given(crowds())
def test_what_is_promised_fits(objects: Any) -> None:
    before = open_world(PLAIN, objects).nodes.future
    now = after("preempt", PLAIN, objects).nodes.future
    assert np.all(now > np.minimum(before, 0.0) - 0.1)  # nodes that were too full before stay so


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
@given(crowds(queues=("q", "p")), st.sampled_from(["3", "6", "12"]))
def test_who_is_let_go_on_trial_is_kept_or_evicted(action: str, objects: Any, capability: str) -> None:
    """Queues are full as well, so that trials end in vain after victims were taken away."""
    for each in objects:
        if each["kind"] == "Queue":
            each["spec"]["capability"] = {"cpu": capability, "memory": "64Gi"}
    session = after(action, configuration(["priority"], ["predicates", "capacity"]), objects)
    status = session.jobs.status
    leaving = [task for task in session.snapshot.tasks.handles if task and status[task.row] == TaskStatus.RELEASING]
    assert sorted(task.name for task in leaving) == sorted(evictions(session))


def test_victims_who_were_let_go_in_vain_are_kept() -> None:
    """The queue may not have more, whoever goes."""
    config = configuration(["priority"], ["predicates", "capacity"])
    narrow = queue("narrow", capability={"cpu": "4"})
    low = running("low", ["n0"] * 2, queue="narrow", cpu="1")
    session = full(narrow, low, waiting("new", 1, queue="narrow", cpu="5"), config=config, cpu="5")
    assert evictions(session) == []
    assert session.jobs.status[task_of(session, "low-0").row] == TaskStatus.RUNNING
    assert session.jobs.status[task_of(session, "low-1").row] == TaskStatus.RUNNING
