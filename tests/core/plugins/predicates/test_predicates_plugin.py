"""The plugin as a whole: switches, the order of reasons, NodeInfo, trials, and what a cycle makes of it."""

from typing import TYPE_CHECKING, Any

import pytest

from pumice.core.configuration import from_parsed
from pumice.core.cycle import Carry, CycleClock, run_action, run_cycle
from pumice.core.life.task import TaskStatus
from pumice.core.objects.metadata import Object, parse_time
from pumice.core.session.search.node_search import NodeSearch
from pumice.core.session.session import HEEDED
from pumice.core.state.volumes import volume_rules
from tests.core.kube import slow, slow_pods
from tests.core.kube.stores import pod_using, storage_classes
from tests.core.plugins.world import NOW, configuration, flatten, open_world, task_of, view_of
from tests.kit import gang, node, node_affinity, nodes, pod, pod_group, queue, taint

if TYPE_CHECKING:
    from pumice.core.session.session import Session

ZONE = "zone"
HOST = "kubernetes.io/hostname"
WEB = {"matchLabels": {"app": "web"}}
BASE = [queue("default"), pod_group("g", min_member=1, phase="Inqueue")]


def predicates(**arguments: Any) -> Any:
    """The gang and predicates plugins, with these switches."""
    listed = {f"predicate.{name}": value for name, value in arguments.items()}
    tier: list[Any] = ["gang", {"name": "predicates", "arguments": listed}]
    return configuration(tier, actions=["allocate"], fix=["volumes-are-no-resource"])


def binds(*parts: Object | list[Object], **arguments: Any) -> dict[str, str]:
    """Pod -> node after one cycle of allocate."""
    config = predicates(**arguments)
    snapshot = view_of(*flatten(parts)).snapshot(volume_rules(config))
    result = run_cycle(snapshot, config, CycleClock(1, parse_time(NOW)), Carry(), report=True)
    return {bind.name: bind.node for bind in result.binds}


def reasons(session: "Session", name: str = "p") -> list[tuple[str, ...]]:
    """What stands against each node."""
    codes = NodeSearch(session, task_of(session, name)).codes.tolist()
    return [tuple(reason.text for reason in session.reasons.reasons(code)) for code in codes]


def waiting(**more: Any) -> Object:
    spec = more.pop("spec", {})
    one = pod("p", group="g", labels={"app": "web"}, **more)
    one["spec"] |= spec
    return one


def near(kind: str, key: str) -> Object:
    term = {"topologyKey": key, "labelSelector": WEB}
    return {kind: {slow_pods.REQUIRED: [term]}}


def lonely_claim() -> list[Object]:
    """A claim whose class cannot make volumes, and a pod that uses it."""
    using = pod_using("p", ["c"])["spec"]["volumes"]
    meta = {"name": "c", "namespace": "default"}
    spec = {"storageClassName": "local", "resources": {"requests": {"storage": "1Gi"}}}
    claim: Object = {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}
    return [waiting(spec={"volumes": using}), claim, *storage_classes]


def bound_claim(*beside: Object, **labels: str) -> list[Object]:
    """A claim with a CSI volume that has these labels, and a pod that uses it."""
    using = pod_using("p", ["c"])["spec"]["volumes"]
    csi = {"driver": "csi.example.com", "volumeHandle": "h"}
    volume: Object = {"kind": "PersistentVolume", "metadata": {"name": "v", "labels": labels}, "spec": {"csi": csi}}
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    meta = {"name": "c", "namespace": "default", "annotations": bound}
    claim: Object = {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": {"volumeName": "v"}}
    return [waiting(spec={"volumes": using}), claim, volume, *beside]


FULL_NODE: Object = {
    "kind": "CSINode",
    "metadata": {"name": "n0"},
    "spec": {"drivers": [{"name": "csi.example.com", "allocatable": {"count": 0}}]},
}
REAL_ZONE = "topology.kubernetes.io/zone"
SPREAD: Object = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB}
SWITCHES: list[tuple[str, list[Object]]] = [
    ("NodeAffinityEnable", [node("n0"), waiting(node_selector={ZONE: "a"})]),
    ("TaintTolerationEnable", [node("n0", taints=[taint("k")]), waiting()]),
    ("NodePortsEnable", [node("n0"), pod("r", node="n0", host_ports=[80]), waiting(host_ports=[80])]),
    ("PodAffinityEnable", [node("n0"), waiting(affinity=near("podAffinity", ZONE))]),
    ("PodTopologySpreadEnable", [node("n0"), waiting(spec={"topologySpreadConstraints": [SPREAD]})]),
    ("VolumeBindingEnable", [node("n0"), *lonely_claim()]),
    ("VolumeZoneEnable", [node("n0", labels={REAL_ZONE: "z1"}), *bound_claim(**{REAL_ZONE: "z0"})]),
    ("NodeVolumeLimitsEnable", [node("n0"), *bound_claim(FULL_NODE)]),
]


@pytest.mark.parametrize(("switch", "objects"), SWITCHES, ids=[switch for switch, _ in SWITCHES])
def test_each_filter_has_its_switch(switch: str, objects: list[Object]) -> None:
    assert binds(BASE, objects) == {}
    assert binds(BASE, objects, **{switch: False}) == {"p": "n0"}
    assert binds(BASE, objects, **{switch: "false"}) == {"p": "n0"}
    assert binds(BASE, objects, **{switch: 0}) == {}  # no boolean: the default stays


def test_cordoned_nodes_and_full_ones_have_no_switch() -> None:
    off = {switch: False for switch, _ in SWITCHES}
    assert binds(BASE, node("n0", unschedulable=True), waiting(), **off) == {}
    assert binds(BASE, node("n0", pods="0"), waiting(), **off) == {}


def test_plain_refusals_add_up_and_a_hopeless_one_ends_the_list() -> None:
    full: dict[str, Any] = {"pods": "1"}
    busy = [pod(f"r{i}", node=f"n{i}", host_ports=[80]) for i in range(3)]
    each = [node("n0", **full), node("n1", **full, unschedulable=True), node("n2", **full, taints=[taint("k")])]
    session = open_world(predicates(), BASE, each, busy, waiting(host_ports=[80], cpu=None, memory=None))
    session.nodes.future[2] = 9.0  # pods have room as far as resources go: only the filter counts them
    assert reasons(session) == [(slow.FULL, slow.PORTS), (slow.FULL, slow.CORDONED), (slow.FULL, slow.TAINTED)]


def test_static_filters_come_before_those_that_follow_placements() -> None:
    one = node("n0", unschedulable=True, taints=[taint("k")])
    session = open_world(predicates(), BASE, one, waiting(node_selector={ZONE: "a"}))
    assert reasons(session) == [(slow.CORDONED,)]


def test_node_info_moves_with_the_plugin_only() -> None:
    for config, moved in ((predicates(), 1), (configuration(["gang", "nodeorder"]), 0)):
        session = open_world(config, BASE, node("n0"), waiting())
        statement, task = session.statement(), task_of(session, "p")
        statement.allocate(task, 0)
        assert session.kube.pods.tolist() == [moved]
        statement.discard()
        assert session.kube.pods.tolist() == [0]
        assert session.kube.nonzero.tolist() == [[0.0], [0.0]]


def test_an_evicted_pod_frees_its_port_immediately() -> None:
    running = pod("r", node="n0", group="g", host_ports=[80])
    session = open_world(predicates(), BASE, node("n0"), running, waiting(host_ports=[80]))
    assert reasons(session) == [(slow.PORTS,)]
    statement = session.statement()
    statement.evict(task_of(session, "r"), "test")
    assert reasons(session) == [()]
    statement.discard()
    assert reasons(session) == [()]  # NodeInfo has lost the pod, as in Volcano


def web_gang(pods: int, **each: Any) -> list[Object]:
    return gang("j", pods=pods, phase="Inqueue", labels={"app": "web"}, **each)


def test_a_gang_that_avoids_itself_takes_a_host_each() -> None:
    placed = binds(queue("default"), nodes(4), web_gang(4, affinity=near("podAntiAffinity", HOST)))
    assert sorted(placed.values()) == ["n0", "n1", "n2", "n3"]
    assert binds(queue("default"), nodes(3), web_gang(4, affinity=near("podAntiAffinity", HOST))) == {}


def test_a_gang_that_seeks_itself_stays_in_one_zone() -> None:
    two = [node(f"n{i}", labels={ZONE: f"z{i // 2}"}, cpu="2") for i in range(4)]
    placed = binds(queue("default"), two, web_gang(4, affinity=near("podAffinity", ZONE)))
    assert len(placed) == 4
    assert set(placed.values()) in ({"n0", "n1"}, {"n2", "n3"})


def test_a_gang_spreads_evenly_over_zones() -> None:
    three = [node(f"n{i}", labels={ZONE: f"z{i % 3}"}) for i in range(6)]
    each = web_gang(7)
    for one in each[1:]:
        one["spec"]["topologySpreadConstraints"] = [SPREAD]
    assert binds(queue("default"), three, each) == {}  # a node refused for one pod stays refused for its role
    forgetful = {"name": "allocate", "arguments": {"predicateErrorCacheEnable": False}}
    tiers = [{"plugins": [{"name": "gang"}, {"name": "predicates"}]}]
    parsed = {"actions": ["allocate"], "tiers": tiers, "configurations": [forgetful]}
    snapshot = view_of(queue("default"), three, each).snapshot()
    config = from_parsed(parsed, flags_default_on=True)
    result = run_cycle(snapshot, config, CycleClock(1, parse_time(NOW)), Carry())
    placed = {bind.name: bind.node for bind in result.binds}
    zones = [int(where[1:]) % 3 for where in placed.values()]
    assert sorted(zones.count(zone) for zone in range(3)) == [2, 2, 3]


def test_a_refusal_binds_nobody_else_when_mended() -> None:
    three = [node(f"n{i}", labels={ZONE: f"z{i}"}, cpu="4") for i in range(3)]
    each = web_gang(8)
    for one in each[1:]:
        one["spec"]["topologySpreadConstraints"] = [SPREAD]
    config = configuration(["gang"], ["predicates"], fix=("refused-nodes-asked-again",), actions=["allocate"])
    snapshot = view_of(queue("default"), three, each).snapshot()
    placed = [bind.node for bind in run_cycle(snapshot, config, CycleClock(1, parse_time(NOW)), Carry()).binds]
    assert sorted(placed.count(f"n{i}") for i in range(3)) == [2, 3, 3]


def test_two_jobs_of_one_template_are_told_apart_by_their_labels() -> None:
    """One pod spec in two namespaces: each seeks company of its own."""
    objects: list[Object] = [*nodes(2), queue("default")]
    for namespace, where in (("a", "n0"), ("b", "n1")):
        objects.append(pod("r", namespace=namespace, node=where, labels={"app": "web"}))
        affinity = near("podAffinity", HOST)
        objects += gang("j", pods=1, namespace=namespace, phase="Inqueue", affinity=affinity)
    snapshot = view_of(*objects).snapshot()
    result = run_cycle(snapshot, predicates(), CycleClock(1, parse_time(NOW)), Carry(), report=True)
    assert {bind.namespace: bind.node for bind in result.binds} == {"a": "n0", "b": "n1"}


def test_trials_try_affinity_after_moves() -> None:
    enemy = pod("r", node="n0", group="g", labels={"app": "web"})
    session = open_world(predicates(), BASE, node("n0"), enemy, waiting(affinity=near("podAntiAffinity", HOST)))
    task, other = task_of(session, "p"), task_of(session, "r")
    state: dict[str, Any] = {}
    assert session.points.simulate_predicate(state, task, 0) == slow_pods.TOGETHER
    assert session.points.simulate_remove_task(state, task, other, 0) is None
    assert session.points.simulate_predicate(state, task, 0) is None
    assert session.points.simulate_add_task(state, task, other, 0) is None
    assert session.points.simulate_predicate(state, task, 0) == slow_pods.TOGETHER
    assert session.points.simulate_predicate({}, task_of(session, "r"), 0) is None


def test_pods_that_share_a_volume_follow_the_promise() -> None:
    meta = {"name": "c", "namespace": "default"}
    spec = {"storageClassName": "local", "resources": {"requests": {"storage": "1Gi"}}}
    claim: Object = {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}
    on = node_affinity(HOST, "n1")["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    volume: Object = {"kind": "PersistentVolume", "metadata": {"name": "v"}, "status": {"phase": "Available"}}
    volume["spec"] = {"capacity": {"storage": "1Gi"}, "storageClassName": "local", "nodeAffinity": {"required": on}}
    each = gang("j", pods=2, phase="Inqueue")
    for one in each[1:]:
        one["spec"]["volumes"] = [{"name": "c", "persistentVolumeClaim": {"claimName": "c"}}]
    session = open_world(predicates(), queue("default"), nodes(3), claim, volume, storage_classes, each)
    task = task_of(session, "j-0")
    assert [bool(r) for r in reasons(session, "j-0")] == [True, False, True]
    assert session.place(task, 1, TaskStatus.ALLOCATED)
    assert [bool(r) for r in reasons(session, "j-1")] == [True, False, True]
    session.unplace(task)
    assert [bool(r) for r in reasons(session, "j-1")] == [True, False, True]


@pytest.mark.parametrize(("fix", "bound"), [((), {}), (("reserve-without-filters",), {"p": "n0"})])
def test_without_its_filters_nothing_is_reserved_for_a_pod(fix: tuple[str, ...], bound: dict[str, str]) -> None:
    """Filters that are off leave nothing for Reserve to read; the room that was tried is free again."""
    off = {"name": "predicates", "enablePredicate": False}
    config = configuration(["gang", off], actions=["allocate"], fix=fix)
    session = open_world(config, BASE, node("n0"), waiting())
    idle = session.nodes.idle.copy()
    run_action(session, "allocate")
    assert {bind.name: bind.node for bind in session.binds} == bound
    assert bool((session.nodes.idle == idle).all()) is not bool(bound)


@pytest.mark.parametrize(("fix", "volumes", "bound"), [((), [], ["p"]), ((HEEDED,), [], []), ((), [{"name": "c"}], [])])
def test_backfill_ignores_that_nothing_is_reserved(
    fix: tuple[str, ...], volumes: list[Object], bound: list[str]
) -> None:
    """Volcano's Session.Allocate does not look at the answers; a pod with claims would be refused when it is bound."""
    off = {"name": "predicates", "enablePredicate": False}
    config = configuration(["gang", off], actions=["backfill"], fix=fix)
    one = waiting(cpu=None, memory=None)
    one["spec"]["volumes"] = [{**each, "persistentVolumeClaim": {"claimName": "c"}} for each in volumes]
    session = open_world(config, BASE, node("n0"), one)
    run_action(session, "backfill")
    assert [bind.name for bind in session.binds] == bound
