"""numa-aware in whole cycles: who is let in where, which CPUs are gone, and what the next session finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pumice.core.cycle import close_session, run_action
from pumice.core.objects.metadata import Object
from pumice.core.session.carry import Carry
from pumice.core.session.session import Session
from tests.core.plugins.world import configuration, open_world, task_of
from tests.kit import gang, node, queue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.config.schema import SchedulerConfig

WAITS = configuration(["gang", "predicates", "numa-aware"], fix=["numa-waits-for-kubelet"])
CONFIG = configuration(["gang", "predicates", {"name": "numa-aware", "arguments": {"weight": 2}}])


def cells(
    name: str,
    policy: str = "single-numa-node",
    allocatable: str = "0-7",
    version: str = "1",
    assigned: Sequence[Object] = (),
) -> Object:
    detail = {str(cpu): {"numa": cpu // 4, "socket": cpu // 4, "core": cpu // 2} for cpu in range(8)}
    return {
        "apiVersion": "nodeinfo.volcano.sh/v1alpha1",
        "kind": "Numatopology",
        "metadata": {"name": name, "resourceVersion": version},
        "spec": {
            "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": policy},
            "numares": {"cpu": {"allocatable": allocatable, "capacity": 8}},
            "cpuDetail": detail,
            "podAllocations": list(assigned),
        },
    }


def guaranteed(name: str, cpus: int, *, pods: int = 1, policy: str = "single-numa-node") -> list[Object]:
    made = gang(name, queue="q", pods=pods, phase="Inqueue")
    for each in made[1:]:
        each["metadata"]["annotations"]["volcano.sh/numa-topology-policy"] = policy
        amounts = {"cpu": str(cpus), "memory": "1Gi"}
        each["spec"]["containers"] = [{"name": "c", "resources": {"requests": amounts, "limits": amounts}}]
    return made


def session_of(*parts: Any, carry: Carry | None = None, config: SchedulerConfig = CONFIG) -> Session:
    return open_world(config, queue("q"), *parts, carry=carry)


def placed(session: Session) -> dict[str, str]:
    run_action(session, "allocate")
    return {bind.name: bind.node for bind in session.binds}


def left(session: Session) -> dict[str, str]:
    return {name: cpus["cpu"] for name, cpus in close_session(session).report.numa_allocatable.items()}


def test_a_cell_is_filled_and_the_next_one_taken() -> None:
    session = session_of(node("n0", cpu="16"), cells("n0"), guaranteed("j", 3, pods=2))
    assert placed(session) == {"j-0": "n0", "j-1": "n0"}
    assert left(session) == {"n0": "3,7"}


def test_a_gang_that_does_not_fit_gives_its_cpus_back() -> None:
    gangs = [guaranteed("j", 3, pods=3), guaranteed("k", 4, pods=2)]
    session = session_of(node("n0", cpu="16"), cells("n0"), *gangs)
    assert placed(session) == {"k-0": "n0", "k-1": "n0"}
    pending = {reason.message for reason in close_session(session).report.pending.values()}
    assert any("1 container c cannot be assigned by numa" in message for message in pending)
    assert left(session_of(node("n0", cpu="16"), cells("n0"))) == {"n0": "0-7"}


@pytest.mark.parametrize(
    ("policy", "word"),
    [
        ("restricted", "task topology policy[restricted] is different with node[single-numa-node]"),
        ("single-numa-node", ""),
        ("none", ""),
    ],
)
def test_the_pod_and_the_node_must_want_the_same(policy: str, word: str) -> None:
    session = session_of(node("n0", cpu="16"), cells("n0"), guaranteed("j", 2, policy=policy))
    task = task_of(session, "j-0")
    codes = session.search_for(task, room=False).codes.tolist()
    assert [reason.text for reason in session.reasons.reasons(codes[0])] == ([word] if word else [])


def test_without_cells_only_who_asks_is_refused() -> None:
    assert placed(session_of(node("n0", cpu="16"), guaranteed("j", 2))) == {}
    assert placed(session_of(node("n0", cpu="16"), guaranteed("j", 2, policy=""))) == {"j-0": "n0"}


def test_fewer_cells_are_better() -> None:
    nodes = [node(name, cpu="16") for name in ("n0", "n1")]
    topologies = [cells("n0", "best-effort", "0-1,4-5"), cells("n1", "best-effort")]
    session = session_of(*nodes, *topologies, guaranteed("j", 4, policy="best-effort"))
    search = session.search_for(task_of(session, "j-0"))
    assert search.scoring.totals(session.nodes.arrival).tolist() == [0.0, 100.0]  # (100 - 100, 100 - 50) * 2
    assert placed(session) == {"j-0": "n1"}


def test_to_a_pod_that_gets_no_cpus_of_its_own_all_nodes_are_the_best() -> None:
    """It asks for a part of one."""
    nodes = [node(name, cpu="16") for name in ("n0", "n1")]
    topologies = [cells("n0", "best-effort", "0-1,4-5"), cells("n1", "best-effort")]
    group, pod = guaranteed("j", 1, policy="best-effort")
    for amounts in pod["spec"]["containers"][0]["resources"].values():
        amounts["cpu"] = "1500m"
    session = session_of(*nodes, *topologies, group, pod)
    search = session.search_for(task_of(session, "j-0"))
    assert search.scoring.totals(session.nodes.arrival).tolist() == [200.0, 200.0]


@pytest.mark.parametrize(
    ("newer", "free"),
    [
        ({}, "2-7"),  # nothing new: what was placed is gone
        ({"allocatable": "0-7", "version": "2"}, "0-7"),  # as much as before: the object counts
        ({"allocatable": "4-7", "version": "2"}, "4-7"),  # less than before, and less than is left
        ({"allocatable": "0-6", "version": "2"}, "2-7"),  # less than before, but more than is left
    ],
)
def test_what_the_next_session_finds(newer: dict[str, Any], free: str) -> None:
    first = session_of(node("n0", cpu="16"), cells("n0"), guaranteed("j", 2))
    assert placed(first) == {"j-0": "n0"}
    result = close_session(first)
    assert result.report.numa_allocatable == {"n0": {"cpu": "2-7"}}
    kept = Carry.from_dict(result.carry)
    assert left(session_of(node("n0", cpu="16"), cells("n0", **newer), carry=kept)) == {"n0": free}


def bound(name: str, uid: str, phase: str = "Running") -> list[Object]:
    made = guaranteed(name, 2)
    made[1]["metadata"]["uid"] = uid
    made[1]["spec"]["nodeName"] = "n0"
    made[1]["status"] = {"phase": phase}
    return made


@pytest.mark.parametrize(
    ("config", "newer", "phase", "free"),
    [
        (CONFIG, {"version": "2"}, "Running", "0-7"),  # as much as before: the kubelet has not come to the pod yet
        (WAITS, {"version": "2"}, "Running", "2-7"),
        (WAITS, {"version": "2", "allocatable": "4-7"}, "Running", "4-7"),
        (WAITS, {"version": "2", "assigned": [{"namespace": "default", "name": "j-0"}]}, "Running", "0-7"),
        (WAITS, {"version": "2", "assigned": [{"uid": "u"}]}, "Running", "0-7"),
        (WAITS, {"version": "2", "assigned": [{"uid": "other"}]}, "Running", "2-7"),
        (WAITS, {"version": "2"}, "Succeeded", "0-7"),
    ],
)
def test_placed_pod_keeps_its_cpus_until_it_is_named_under_the_fix(
    config: SchedulerConfig, newer: dict[str, Any], phase: str, free: str
) -> None:
    waiting = guaranteed("j", 2)
    waiting[1]["metadata"]["uid"] = "u"
    first = session_of(node("n0", cpu="16"), cells("n0"), waiting, config=config)
    assert placed(first) == {"j-0": "n0"}
    kept = Carry.from_dict(close_session(first).carry)
    again = session_of(node("n0", cpu="16"), cells("n0", **newer), bound("j", "u", phase), carry=kept, config=config)
    assert left(again) == {"n0": free}


def test_pods_that_wait_for_their_cpus_are_forgotten_together() -> None:
    """The kubelet may have given the first one others than was thought."""
    waiting = guaranteed("j", 2, pods=2)
    for number, each in enumerate(waiting[1:]):
        each["metadata"]["uid"] = f"u{number}"
    first = session_of(node("n0", cpu="16"), cells("n0"), waiting, config=WAITS)
    assert placed(first) == {"j-0": "n0", "j-1": "n0"}
    kept = Carry.from_dict(close_session(first).carry)
    for each in waiting[1:]:
        each["spec"]["nodeName"], each["status"] = "n0", {"phase": "Running"}
    one = [{"uid": "u0"}]
    again = session_of(node("n0", cpu="16"), cells("n0", assigned=one), waiting, carry=kept, config=WAITS)
    result = close_session(again)
    assert result.report.numa_allocatable == {"n0": {"cpu": "4-7"}}
    both = cells("n0", allocatable="4-7", assigned=[*one, {"uid": "u1"}])
    kept = Carry.from_dict(result.carry)
    assert left(session_of(node("n0", cpu="16"), both, waiting, carry=kept, config=WAITS)) == {"n0": "4-7"}
