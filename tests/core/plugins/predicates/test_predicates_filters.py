"""Each filter against the obvious one, over hypothesis-made clusters; all rows, some rows and one row must agree."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pumice.core.kube.placed import placed_pods
from pumice.core.objects.metadata import Object
from pumice.core.plugins.predicates.plugin import (
    PodCount,
    RequiredAffinity,
    StaticFilter,
    Unschedulable,
    UntoleratedTaints,
    terms_conflict,
)
from pumice.core.plugins.predicates.ports import NodePorts
from pumice.core.session.reasons import Code, FitFailure
from tests.core.kube import slow
from tests.core.kube.clusters import clusters
from tests.core.kube.sessions import opened, put, take, task_named, texts
from tests.kit import node, node_affinity, pod, toleration

if TYPE_CHECKING:
    from pumice.core.session.points.nodes import NodeFilter
    from pumice.core.session.session import Session

Cluster = tuple[list[Object], list[Object], Object]


def key_of(one: Object) -> str:
    return f"{one['metadata']['namespace']}/{one['metadata']['name']}"


def answers(node_filter: "NodeFilter", session: "Session", key: str) -> list[str]:
    return texts(session, node_filter.prepare(session, task_named(session, key)))


STATIC: list[tuple[Callable[[], Any], Callable[[Object, Object], bool], str]] = [
    (Unschedulable, slow.cordoned, slow.CORDONED),
    (RequiredAffinity, lambda p, n: not slow.node_selected(p, n), slow.AFFINITY),
    (UntoleratedTaints, slow.tainted, slow.TAINTED),
]


@pytest.mark.parametrize(("question", "refused", "text"), STATIC, ids=["unschedulable", "affinity", "taints"])
@given(cluster=clusters())
def test_a_static_filter_refuses_what_the_slow_one_refuses(
    question: Callable[[], Any], refused: Callable[[Object, Object], bool], text: str, cluster: Cluster
) -> None:
    nodes, running, waiting = cluster
    required = waiting["spec"]["affinity"]["nodeAffinity"].get("requiredDuringSchedulingIgnoredDuringExecution", {})
    assume(not terms_conflict(required.get("nodeSelectorTerms", [])))
    session = opened(*nodes, *running, waiting)
    expected = [text if refused(waiting, n) else "" for n in nodes]
    node_filter = StaticFilter(question())
    assert answers(node_filter, session, key_of(waiting)) == expected
    assert answers(node_filter, session, key_of(waiting)) == expected
    assert answers(StaticFilter(question()), session, key_of(waiting)) == expected  # from the nodes' memo this time


@given(cluster=clusters(), moves=st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.integers(0, 9)), max_size=4))
def test_ports_and_pod_counts_follow_what_is_placed(cluster: Cluster, moves: list[tuple[bool, int, int]]) -> None:
    nodes, running, waiting = cluster
    session = opened(*nodes, *running, waiting)
    placed = placed_pods(session)
    ports, count, key = NodePorts(placed), PodCount(), key_of(waiting)
    on_node: dict[int, list[Object]] = {row: [] for row in range(len(nodes))}
    for one in running:
        on_node[session.nodes.row[one["spec"]["nodeName"]]].append(one)
    for puts, which, where in [(True, -1, 0), *moves]:
        if which >= 0 and running:
            moved, row = running[which % len(running)], where % len(nodes)
            if puts and moved not in on_node[row]:
                put(session, task_named(session, key_of(moved)), row)
                on_node[row].append(moved)
            elif not puts and moved in on_node[row]:
                take(session, task_named(session, key_of(moved)), row)
                on_node[row].remove(moved)
        clash = [slow.PORTS if slow.ports_clash(waiting, on_node[r]) else "" for r in range(len(nodes))]
        full = [slow.FULL if len(on_node[r]) >= slow.allocatable(n, "pods") else "" for r, n in enumerate(nodes)]
        assert answers(ports, session, key) == clash
        assert answers(count, session, key) == full


def test_terms_that_name_different_nodes_fail_before_any_node_is_asked() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("n0", "n1")]}
    required = {"nodeSelectorTerms": [term]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    session = opened(node("n0"), node("n1"), pod("p", affinity=affinity))
    with pytest.raises(FitFailure) as failure:
        StaticFilter(RequiredAffinity()).prepare(session, task_named(session, "default/p"))
    assert failure.value.reason.text == "plugin NodeAffinity pre-predicates failed pod affinity terms conflict"
    required["nodeSelectorTerms"].append(
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}
    )
    assert not terms_conflict(required["nodeSelectorTerms"])


def test_a_filter_with_nothing_to_refuse_is_skipped() -> None:
    session = opened(node("n0"), pod("p", affinity=node_affinity("kubernetes.io/hostname", "n0")))
    task = task_named(session, "default/p")
    for question in (Unschedulable(), RequiredAffinity(), UntoleratedTaints()):
        assert StaticFilter(question).prepare(session, task) is None
    assert NodePorts(placed_pods(session)).prepare(session, task) is None


@pytest.mark.parametrize("ports", [[], [80]])
def test_ports_concern_those_alone_who_want_some(ports: list[int]) -> None:
    session = opened(node("n0"), pod("p", host_ports=ports))
    node_filter, task = NodePorts(placed_pods(session)), task_named(session, "default/p")
    assert node_filter.reads.concerns is not None
    assert node_filter.reads.concerns(task.template) is bool(ports)
    assert (node_filter.prepare(session, task) is not None) is bool(ports)


def test_a_cordoned_node_takes_who_tolerates_it() -> None:
    tolerant = pod("t", tolerations=[toleration("node.kubernetes.io/unschedulable")])
    session = opened(node("n0", unschedulable=True), pod("p"), tolerant)
    assert answers(StaticFilter(Unschedulable()), session, "default/p") == [slow.CORDONED]
    assert answers(StaticFilter(Unschedulable()), session, "default/t") == [""]


def test_only_a_full_node_may_be_cured_by_eviction() -> None:
    assert Unschedulable.reason.code is Code.UNRESOLVABLE
    assert RequiredAffinity.reason.code is Code.UNRESOLVABLE
    assert UntoleratedTaints.reason.code is Code.UNRESOLVABLE
    session = opened(node("n0", pods="0"), pod("p"))
    check = PodCount().prepare(session, task_named(session, "default/p"))
    assert session.reasons.reasons(check.one(0))[0].code is Code.UNSCHEDULABLE


def test_a_changed_node_is_judged_anew() -> None:
    before = opened(node("n0", labels={"zone": "a"}), pod("p", node_selector={"zone": "a"}))
    assert answers(StaticFilter(RequiredAffinity()), before, "default/p") == [""]
    after = opened(node("n0", labels={"zone": "b"}), pod("p", node_selector={"zone": "a"}))
    assert answers(StaticFilter(RequiredAffinity()), after, "default/p") == [slow.AFFINITY]
