"""Where the tasks of a gang would go once its victims have gone, and what keeps them from going anywhere."""

from __future__ import annotations

import pytest

from pumice.config.schema import SchedulerConfig
from pumice.core.cycle import Trail, open_session, run_action
from pumice.core.life.task import TaskStatus
from pumice.core.objects.metadata import Object, parse_time
from pumice.core.session.carry import Carry, CycleClock
from pumice.core.session.session import Session
from pumice.core.session.trail.records import Ending
from pumice.core.state.volumes import volume_rules
from tests.core.actions.crowds import classes, running, waiting
from tests.core.plugins.world import NOW, configuration, job_of, view_of
from tests.kit import node, queue
from tests.kit.hyper_nodes import hyper_node

CONFIG = configuration(
    ["priority", "gang", "conformance"], ["predicates", "capacity", "nodeorder", "network-topology-aware"]
)


def preempted(*parts: Object | list[Object], config: SchedulerConfig = CONFIG) -> tuple[Session, Trail]:
    """After gangpreempt, and what was noted of it."""
    trail = Trail()
    snapshot = view_of(classes(), *parts).snapshot(volume_rules(config))
    session = open_session(snapshot, config, CycleClock(1, parse_time(NOW)), Carry(), trail=trail)
    run_action(session, "gangpreempt")
    return session, trail


def promised(session: Session, job: str) -> list[str]:
    """Nodes of the tasks that have been promised one."""
    tasks = session.jobs.tasks_in(job_of(session, job), TaskStatus.PIPELINED)
    rows: set[int] = {int(session.snapshot.tasks.node[task.row]) for task in tasks}
    return sorted(session.nodes.names[row] for row in rows)


def endings(trail: Trail, job: str) -> list[Ending]:
    return [each.ending for each in trail.endings[f"default/{job}"]]


def test_idle_room_where_a_task_may_not_run_is_no_room() -> None:
    free, full = node("n0", cpu="8"), node("n1", cpu="4", labels={"disk": "fast"})
    new = waiting("new", 2, queue="q", cpu="2", node_selector={"disk": "fast"})
    session, _ = preempted(free, full, queue("q"), running("low", ["n1"] * 4, least=0, queue="q"), new)
    assert promised(session, "new") == ["n1"]
    assert {evict.node for evict in session.evicts} == {"n1"}


def only_on(*names: str) -> Object:
    """One of these nodes; without names two nodes together."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in names or ("n0", "n1")]
    terms = [{"matchFields": [field]} for field in fields] if names else [{"matchFields": fields}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize(
    ("cpu", "names", "limit", "trouble"),
    [
        pytest.param(
            "2", ["n0", "n1"], "1", "its queue has no room for default/new-0", id="more than the queue may have"
        ),
        pytest.param("2", [], "99", "no node for default/new-0", id="it contradicts itself"),
        pytest.param("5", ["n0", "n1"], "99", "no node for default/new-0", id="larger than any node"),
    ],
)
def test_nobody_goes_for_a_task_that_finds_no_node_all_the_same(
    cpu: str, names: list[str], limit: str, trouble: str
) -> None:
    """`names`: of the nodes that it may run on."""
    new = waiting("new", 1, queue="q", cpu=cpu, affinity=only_on(*names))
    objects = [node("n0", cpu="4"), node("n1", cpu="4"), queue("q", capability={"cpu": limit})]
    low = running("low", ["n0"] * 4 + ["n1"] * 4, least=0, queue="q")
    session, trail = preempted(objects, low, new)
    assert session.evicts == []
    assert promised(session, "new") == []
    assert trouble in {each.detail for each in trail.endings["default/new"]}


def test_no_domain_is_tried_after_the_one_that_makes_the_job_whole() -> None:
    racks = [hyper_node("r0", 1, nodes=["n0"]), hyper_node("r1", 1, nodes=["n1"])]
    group, *pods = waiting("new", 2, queue="q", cpu="2")
    group = {**group, "spec": {**group["spec"], "networkTopology": {"mode": "hard", "highestTierAllowed": 1}}}
    low = running("low", ["n0"] * 4 + ["n1"] * 4, least=0, queue="q")
    session, trail = preempted(node("n0", cpu="4"), node("n1", cpu="4"), queue("q"), racks, low, [group, *pods])
    assert {evict.node for evict in session.evicts} == {"n0"}
    assert endings(trail, "new") == [Ending.COMMITTED]


def in_groups(objects: list[Object], **policy: object) -> list[Object]:
    """The gang in groups of two, the first two in one and so on."""
    group, *pods = objects
    for number, pod in enumerate(pods):
        pod["metadata"]["labels"] = {"set": f"{number // 2}"}
    said = {"name": "pair", "subGroupSize": 2, "matchLabelKeys": ["set"], **policy}
    return [{**group, "spec": {**group["spec"], "subGroupPolicy": [said]}}, *pods]


def test_each_group_gets_its_room_within_one_rack_where_groups_ask_for_that() -> None:
    """The job itself asks for nothing of the kind."""
    racks = [hyper_node("r0", 1, nodes=["n0", "n2"]), hyper_node("r1", 1, nodes=["n1", "n3"])]
    names = ["n0", "n1", "n2", "n3"]
    low = running("low", names * 2, least=0, queue="q")
    hard = {"mode": "hard", "highestTierAllowed": 1}
    new = in_groups(waiting("new", 4, queue="q", cpu="2"), networkTopology=hard)
    session, _ = preempted([node(name, cpu="2") for name in names], queue("q"), racks, low, new)
    job = job_of(session, "new")
    assert session.job_pipelined(job)
    rooms = [{session.jobs.node[task.row] % 2 for task in each.tasks} for each in session.sub_jobs(job).values()]
    assert sorted(rooms, key=min) == [{0}, {1}]


def test_nobody_goes_for_a_gang_that_lacks_a_group_though_all_others_find_room() -> None:
    """The pods of the last one may not start yet."""
    new = in_groups(waiting("new", 6, queue="q"))
    for pod in new[5:]:
        pod["spec"]["schedulingGates"] = [{"name": "later"}]
    session, trail = preempted(node("n0", cpu="4"), queue("q"), running("low", ["n0"] * 4, least=0, queue="q"), new)
    assert session.evicts == []
    assert endings(trail, "new") == [Ending.TRIAL_FAILED, Ending.DISCARDED]
