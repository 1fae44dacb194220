"""Every class of waiting, made on purpose; and what the class says is lacking is then given, and the job starts."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from pumice.core.configuration import parse_scheduler_config
from pumice.core.objects.metadata import Object, format_time
from pumice.core.session.carry import Carry, CycleClock
from pumice.questions.adviser.reasons import ALIASES, CODES, MEANINGS, WaitClass, WaitCode
from pumice.questions.adviser.waiting_jobs import WaitingJob, WaitingJobs, waiting_jobs_of
from pumice.questions.explain.scene import Scene
from pumice.questions.oneshot.cycles import fill
from tests.core.devices.cards import vgpu_node
from tests.core.plugins.test_deviceshare import asks
from tests.kit import source
from tests.kit.hyper_nodes import hyper_node
from tests.kit.jobs import gang
from tests.kit.nodes import node, nodes, taint
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.queues import queue

NOW = 1_800_000_000.0
STOCK = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
CAPACITY = STOCK.replace("proportion", "capacity")
TREE = STOCK.replace("{name: proportion}", "{name: capacity, enableHierarchy: true}")
TOPOLOGY = STOCK.replace("{name: nodeorder}", "{name: nodeorder}, {name: network-topology-aware}")
QUOTA = STOCK.replace("{name: overcommit}", "{name: resourcequota}")
STRICT = STOCK + "configurations: [{name: pumice, arguments: {fix: [dequeue-strategy]}}]\n"


def scene(*objects: Object, config: str = STOCK, default: bool = True) -> Scene:
    given = [*([queue("default")] if default else []), *objects]
    settings = parse_scheduler_config(config, source="test")
    return Scene(fill(given), settings, CycleClock(1, NOW, 0), Carry(), objects=lambda: given)


def job_of(waiting_jobs: WaitingJobs, name: str = "default/g") -> WaitingJob | None:
    return next((job for job in waiting_jobs.waiting if job.job == name), None)


LOCKS = STOCK.replace(
    "{name: nodeorder}",
    "{name: deviceshare, arguments: {deviceshare.VGPUEnable: true, deviceshare.NodeLockEnable: true}}",
)


def locked(since: float) -> list[Object]:
    """A node that was locked at a moment for r-0, which was given a card there; and a pod that wants one, too."""
    there = vgpu_node("n0", [(2, 100, "NVIDIA-A100")])
    there["metadata"]["annotations"]["hamivgpu"] = format_time(since)
    running = asks(runs("r", "n0"), vgpu_number=1, vgpu_memory=5)
    given = {
        "volcano.sh/vgpu-node": "n0",
        "volcano.sh/vgpu-time": str(int(since)),
        "volcano.sh/bind-phase": "allocating",
    }
    running[1]["metadata"]["annotations"].update(given, **{"volcano.sh/vgpu-ids-new": "n0-0,NVIDIA,5,0:"})
    return [there, *running, *asks(gang("g", pods=1, phase="Inqueue"), vgpu_number=1, vgpu_memory=5)]


def refused_bind(objects: list[Object]) -> list[Object]:
    """The last of them is a pod that says that the api refused to bind it."""
    said = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulerError",
        "message": "failed to bind to node n0: x",
    }
    return [*objects[:-1], {**objects[-1], "status": {"phase": "Pending", "conditions": [said]}}]


class Case(NamedTuple):
    """`waits`: the cluster in which default/g waits; `starts`: the same with what is lacking."""

    waits: list[Object]
    starts: list[Object]
    config: str = STOCK


def gated(pods: list[Object]) -> list[Object]:
    for each in pods:
        if each["kind"] == "Pod":
            each["spec"]["schedulingGates"] = [{"name": "example.com/licence"}]
    return pods


def apart(pods: list[Object]) -> list[Object]:
    """No two of them on one node."""
    term = {"labelSelector": {"matchLabels": {"app": "g"}}, "topologyKey": "kubernetes.io/hostname"}
    for each in pods:
        if each["kind"] == "Pod":
            each["metadata"]["labels"] = {"app": "g"}
            each["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return pods


def fifo(one: Object) -> Object:
    one["spec"]["dequeueStrategy"] = "fifo"
    return one


def tight(pods: list[Object]) -> list[Object]:
    """Within one rack."""
    pods[0]["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
    return pods


def racks(*sizes: int) -> list[Object]:
    found, first = list[Object](), 0
    for number, size in enumerate(sizes):
        members = [f"n{each}" for each in range(first, first + size)]
        found += [*(node(name, cpu="4") for name in members), hyper_node(f"rack{number}", 1, nodes=members)]
        first += size
    return found


def runs(name: str, where: str, pods: int = 1, **more: Any) -> list[Object]:
    return gang(name, pods=pods, phase="Running", nodes=[where] * pods, **more)


def leaving(pods: list[Object]) -> list[Object]:
    """On their way out: their room is room to come."""
    for each in pods:
        if each["kind"] == "Pod":
            each["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return pods


def quota(cpu: str) -> Object:
    metadata = {"name": "limits", "namespace": "default"}
    spec = {"hard": {"cpu": cpu}}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata,
        "spec": spec,
        "status": {**spec, "used": {}},
    }


G = gang("g", pods=2, cpu="4", phase="Inqueue")
ASKING = [pod_group("g", min_member=1, min_resources={"cpu": "6"}), pod("g-0", group="g", cpu="6")]
ONE = gang("g", pods=1, cpu="4", phase="Inqueue")
IN_Q1 = gang("g", pods=1, cpu="4", queue="q1", phase="Inqueue")
IN_TREE = CAPACITY.replace("{name: capacity}", "{name: capacity, enableHierarchy: true}")
assert IN_TREE != CAPACITY
TEAM = [queue("root"), queue("team", parent="root"), queue("q1", parent="team")]

CASES: dict[WaitCode, Case] = {
    WaitCode.QUEUES_UNUSABLE: Case(
        [node("n0"), *TEAM, *runs("r", "n0", 1, queue="team"), *IN_Q1],
        [node("n0"), *TEAM, *IN_Q1],
        IN_TREE,
    ),
    WaitCode.QUEUE_CAPABILITY: Case(
        [node("n0"), queue("q1", capability={"cpu": "2"}), *IN_Q1],
        [node("n0"), queue("q1", capability={"cpu": "4"}), *IN_Q1],
        CAPACITY,
    ),
    WaitCode.QUEUE_SHARE: Case(
        [
            node("n0"),
            queue("q1"),
            queue("q2"),
            *runs("r", "n0", 1, cpu="4", queue="q1"),
            *IN_Q1,
            *gang("h", pods=4, cpu="1", queue="q2", phase="Inqueue"),
        ],
        [node("n0"), queue("q1"), queue("q2"), *runs("r", "n0", 1, cpu="4", queue="q1"), *IN_Q1],
    ),
    WaitCode.BEHIND_OTHERS: Case(
        [node("n0"), fifo(queue("q1")), *gang("f", pods=1, cpu="9", queue="q1", phase="Inqueue"), *IN_Q1],
        [node("n0"), queue("q1"), *gang("f", pods=1, cpu="9", queue="q1", phase="Inqueue"), *IN_Q1],
        STRICT,
    ),
    WaitCode.OTHERS_FIRST: Case(
        [*nodes(2, cpu="4"), *gang("f", pods=2, cpu="3", phase="Inqueue"), *G],
        [*nodes(2, cpu="4"), *G],
    ),
    WaitCode.OVERCOMMIT: Case(
        [node("n0", cpu="8"), *runs("r", "n0", 1, cpu="4"), *ASKING],
        [node("n0", cpu="12"), *runs("r", "n0", 1, cpu="4"), *ASKING],
    ),
    WaitCode.NOT_LOOKED_AT: Case(
        [node("n0"), *gang("g", pods=1)],
        [node("n0"), *gang("g", pods=1, phase="Inqueue")],
        STOCK.replace("enqueue, allocate", "allocate").replace("allocate, backfill", "enqueue"),
    ),
    WaitCode.NO_SCHEDULER: Case(
        [node("n0"), pod_group("g"), pod("g-0", group="g", scheduler="other")], [node("n0"), *gang("g", pods=1)]
    ),
    WaitCode.POD_GROUP_MISSING: Case([node("n0"), pod("g-0", group="g")], [node("n0"), *ONE]),
    WaitCode.QUEUE_MISSING: Case([node("n0"), *IN_Q1], [node("n0"), queue("q1"), *IN_Q1]),
    WaitCode.QUEUE_NOT_OPEN: Case(
        [node("n0"), queue("q1", state="Closed"), *IN_Q1], [node("n0"), queue("q1"), *IN_Q1], CAPACITY
    ),
    WaitCode.FREE_IN_PIECES: Case(
        [*nodes(3, cpu="5"), *(each for n in range(3) for each in runs(f"r{n}", f"n{n}", cpu="2")), *G],
        [node("n0", cpu="15"), *(each for n in range(3) for each in runs(f"r{n}", "n0", cpu="2")), *G],
    ),
    WaitCode.IN_USE: Case(
        [*nodes(2, cpu="4"), *runs("r", "n0", cpu="4"), *G], [*nodes(3, cpu="4"), *runs("r", "n0", cpu="4"), *G]
    ),
    WaitCode.LARGER_THAN_CLUSTER: Case([node("n0", cpu="4"), *G], [*nodes(2, cpu="4"), *G]),
    WaitCode.LARGER_THAN_ANY_NODE: Case([*nodes(8, cpu="3"), *G], [*nodes(2, cpu="4"), *G]),
    WaitCode.NO_NODE_ALLOWED: Case([*nodes(2, taints=[taint("gpu", "only")]), *G], [*nodes(2), *G]),
    WaitCode.NOT_TOLERATED: Case(
        [node("n0", cpu="4"), node("n1", taints=[taint("gpu", "only")]), *runs("r", "n0", cpu="4"), *ONE],
        [node("n0", cpu="4"), node("n1"), *runs("r", "n0", cpu="4"), *ONE],
    ),
    WaitCode.PODS_APART: Case([node("n0"), *apart(gang("g", pods=2, phase="Inqueue"))], [*nodes(2), *G]),
    WaitCode.PLACEMENT_REFUSED: Case(locked(NOW - 60.0), locked(NOW - 301.0), LOCKS),
    WaitCode.BIND_REFUSED: Case([node("n0"), *refused_bind(ONE)], [node("n0"), *ONE]),
    WaitCode.TOPOLOGY: Case(
        [*racks(1, 1), *tight(gang("g", pods=2, cpu="3", phase="Inqueue"))],
        [*racks(2, 1), *tight(gang("g", pods=2, cpu="3", phase="Inqueue"))],
        TOPOLOGY,
    ),
    WaitCode.PODS_MISSING: Case([node("n0"), *gang("g", pods=2, min_member=3, phase="Inqueue")], [node("n0"), *G]),
    WaitCode.NAMESPACE_QUOTA: Case([node("n0"), quota("5"), *ASKING], [node("n0"), quota("6"), *ASKING], QUOTA),
    WaitCode.PROMISED: Case(
        [node("n0", cpu="4"), *leaving(runs("r", "n0", cpu="4")), *ONE], [node("n0", cpu="4"), *ONE]
    ),
    WaitCode.GATED: Case([node("n0"), *gated(gang("g", pods=2, phase="Inqueue"))], [node("n0"), *G]),
}


@pytest.mark.parametrize("reason", CASES)
def test_each_reason_is_found_and_ends_with_what_it_says_is_lacking(reason: WaitCode) -> None:
    case = CASES[reason]
    config = case.config
    found = job_of(waiting_jobs_of(scene(*case.waits, config=config)))
    assert found is not None
    assert (found.wait.code, found.wait.wait_class) == (reason, CODES[reason].wait_class)
    assert found.wait.sentence
    if reason is WaitCode.NOT_LOOKED_AT:
        config = STOCK
    assert job_of(waiting_jobs_of(scene(*case.starts, config=config))) is None


def test_a_lock_of_a_node_is_named_with_the_pod_that_it_was_set_for() -> None:
    found = job_of(waiting_jobs_of(scene(*locked(NOW - 60.0), config=LOCKS)))
    assert found is not None
    told = "lock hamivgpu of n0 was set for default/r-0 at 2027-01-15T07:59:00Z and counts until 2027-01-15T08:04:00Z"
    assert told in found.wait.sentence
    nobody = locked(NOW - 60.0)
    del nobody[2]["metadata"]["annotations"]["volcano.sh/vgpu-time"]
    unknown = job_of(waiting_jobs_of(scene(*nobody, config=LOCKS)))
    assert unknown is not None
    assert "lock hamivgpu of n0 was set for no pod that is known here at" in unknown.wait.sentence


def test_a_lock_of_a_gang_that_was_given_up_is_not_said_to_stay() -> None:
    there = vgpu_node("n0", [(9, 100, "NVIDIA-A100")])
    first = asks(gang("a", pods=2, phase="Inqueue"), vgpu_number=1, vgpu_memory=5)
    second = asks(gang("g", pods=1, phase="Inqueue"), vgpu_number=1, vgpu_memory=5)
    given_up = job_of(waiting_jobs_of(scene(there, *first, *second, config=LOCKS)))
    assert given_up is not None
    assert (
        "lock hamivgpu of n0 was taken for default/a-0, which was not bound, in this cycle only"
        in given_up.wait.sentence
    )
    assert "at most" not in given_up.wait.sentence
    alone = asks(gang("a", pods=1, phase="Inqueue"), vgpu_number=1, vgpu_memory=5)
    bound = job_of(waiting_jobs_of(scene(there, *alone, *second, config=LOCKS)))
    assert bound is not None
    assert "lock hamivgpu of n0 was set for default/a-0 at 2027-01-15T08:00:00Z" in bound.wait.sentence


@pytest.mark.parametrize("config", [STOCK, *(each.replace("{name: overcommit}, ", "") for each in (STOCK, CAPACITY))])
def test_a_job_larger_than_the_cluster_is_no_matter_of_a_queue_without_limits(config: str) -> None:
    asking = [pod_group("g", min_member=5, min_resources={"cpu": "20"}), *gang("g", pods=5, cpu="4")[1:]]
    found = job_of(waiting_jobs_of(scene(node("n0", cpu="8"), *asking, config=config)))
    assert found is not None
    assert found.wait.code is WaitCode.LARGER_THAN_CLUSTER
    assert "asks 20 cpu, all nodes together have 8 cpu" in found.wait.sentence


def test_what_the_cycle_itself_gave_to_the_queue_counts() -> None:
    more = gang("g", pods=9, min_member=2, cpu="1", queue="q1", phase="Inqueue")
    others = gang("h", pods=1, cpu="9", queue="q2", phase="Inqueue")
    found = job_of(waiting_jobs_of(scene(*nodes(3, cpu="4"), queue("q1"), queue("q2"), *more, *others)))
    assert found is not None
    assert (found.held, found.wait.code) == (6, WaitCode.QUEUE_SHARE)
    assert found.wait.sentence == "queue q1 has what it deserves: asks 1 cpu, has 6 of 6, 0 left"


def test_a_limit_of_the_queue_comes_first_even_beyond_the_cluster() -> None:
    asking = [pod_group("g", queue="q1", min_resources={"cpu": "20"}), *gang("g", pods=5, cpu="4", queue="q1")[1:]]
    limited = queue("q1", capability={"cpu": "4"})
    config = CAPACITY.replace("{name: overcommit}, ", "")
    found = job_of(waiting_jobs_of(scene(node("n0", cpu="8"), limited, *asking, config=config)))
    assert found is not None
    assert found.wait.code is WaitCode.QUEUE_CAPABILITY


def test_every_reason_has_a_class_and_every_class_a_meaning() -> None:
    assert set(CODES) == set(WaitCode)
    assert {row.wait_class for row in CODES.values()} == set(MEANINGS) == set(WaitClass)
    assert set(WaitCode) - set(CASES) == {WaitCode.NOT_ADMITTED, WaitCode.NOT_VALID, WaitCode.NO_POD_GROUP}


def test_the_document_lists_them_all() -> None:
    text = (source.ROOT / "docs" / "reference" / "waiting.md").read_text("utf-8")
    table = text.partition("| class | code | when | what helps |\n|---|---|---|---|\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:5]] for line in table.splitlines()]
    assert rows == [[row.wait_class, code, row.when, row.helps] for code, row in CODES.items()]
    assert [*CODES] == [*WaitCode]
    olds = text.partition("| old word | code |\n|---|---|\n")[2].partition("\n\n")[0]
    aliases = dict([cell.strip() for cell in line.split("|")[1:3]] for line in olds.splitlines())
    assert aliases == ALIASES
