"""Inter-pod affinity and topology spread against the obvious ones while pods come and go."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core.kube.affinity import ENDS, STAYS
from pumice.core.kube.placed import placed_pods
from pumice.core.kube.selectors import LabelSelector, label_selector
from pumice.core.objects.metadata import Object
from pumice.core.plugins.nodeorder.plugin import PodAffinityScorer
from pumice.core.plugins.nodeorder.topology_spread import TopologySpreadScorer
from pumice.core.plugins.predicates.pod_affinity import AffinityTrial, PodAffinityFilter
from pumice.core.plugins.predicates.topology_spread import TopologySpreadFilter
from pumice.core.session.reasons import FitFailure
from pumice.core.state.view import View
from tests.core.kube import slow_pods
from tests.core.kube.clusters import expression
from tests.core.kube.crowds import crowds
from tests.core.kube.sessions import opened, put, scores, session_over, take, task_named, texts
from tests.core.kube.slow_pods import Cluster
from tests.kit import node, pod, taint

if TYPE_CHECKING:
    from pumice.core.kube.placed import Placed
    from pumice.core.session.session import Session

Crowd = tuple[list[Object], list[Object], list[Object], Object, dict[str, dict[str, str]]]
MOVES = st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.integers(0, 9)), max_size=5)
WEIGHT = 2


def key_of(one: Object) -> str:
    return f"{one['metadata']['namespace']}/{one['metadata']['name']}"


def namespace_objects(known: dict[str, dict[str, str]]) -> list[Object]:
    return [{"kind": "Namespace", "metadata": {"name": name, "labels": labels}} for name, labels in known.items()]


class Story:
    """A session and the plain lists that say the same."""

    def __init__(self, crowd: Crowd) -> None:
        nodes, running, self.later, self.pod, known = crowd
        self.session = opened(*nodes, *running, *self.later, self.pod, *namespace_objects(known))
        opening = [(one, one["spec"]["nodeName"]) for one in running]
        self.cluster = Cluster(nodes, list(opening), opening, known)
        self.task = task_named(self.session, key_of(self.pod))

    def forget_questions(self) -> "Placed":
        """What is placed, as one finds it who asks for the first time."""
        placed = placed_pods(self.session)
        placed.readers.clear()
        return placed

    def move(self, puts: bool, which: int, where: int) -> None:
        """Place one that waits, or evict one that is placed, as the numbers say."""
        placed, row = self.cluster.placed, where % len(self.cluster.nodes)
        if puts:
            waiting = [one for one in self.later if all(one is not other for other, _ in placed)]
            if waiting:
                chosen = waiting[which % len(waiting)]
                put(self.session, task_named(self.session, key_of(chosen)), row)
                placed.append((chosen, self.session.nodes.names[row]))
        elif placed:
            chosen, name = placed.pop(which % len(placed))
            take(self.session, task_named(self.session, key_of(chosen)), self.session.nodes.row[name])


@settings(max_examples=80)
@given(crowd=crowds(), moves=MOVES)
def test_inter_pod_affinity_is_the_slow_one(crowd: Crowd, moves: list[tuple[bool, int, int]]) -> None:
    story = Story(crowd)
    affinity = PodAffinityFilter(placed_pods(story.session))
    check = affinity.prepare(story.session, story.task)
    for step in [None, *moves]:
        if step:
            story.move(*step)
        expected = [slow_pods.affinity_reason(story.cluster, story.pod, n) for n in story.cluster.nodes]
        assert texts(story.session, check) == expected
        assert texts(story.session, affinity.prepare(story.session, story.task)) == expected
    asked_late = story.forget_questions()
    late = PodAffinityFilter(asked_late).prepare(story.session, story.task)
    assert texts(story.session, late) == texts(story.session, check)


@settings(max_examples=80)
@given(crowd=crowds(), moves=MOVES)
def test_topology_spread_is_the_slow_one(crowd: Crowd, moves: list[tuple[bool, int, int]]) -> None:
    story = Story(crowd)
    check = TopologySpreadFilter(placed_pods(story.session)).prepare(story.session, story.task)
    for step in [None, *moves]:
        if step:
            story.move(*step)
        expected = [slow_pods.spread_reason(story.cluster, story.pod, n) for n in story.cluster.nodes]
        assert texts(story.session, check) == expected
    late = TopologySpreadFilter(story.forget_questions()).prepare(story.session, story.task)
    assert texts(story.session, late) == texts(story.session, check)


@settings(max_examples=80)
@given(crowd=crowds(), moves=MOVES, data=st.data())
def test_pod_scorers_are_the_slow_ones(crowd: Crowd, moves: list[tuple[bool, int, int]], data: st.DataObject) -> None:
    story = Story(crowd)
    placed, nodes = placed_pods(story.session), story.cluster.nodes
    affinity = PodAffinityScorer(placed, WEIGHT).prepare(story.session, story.task)
    spread = TopologySpreadScorer(placed, WEIGHT).prepare(story.session, story.task)
    for step in [None, *moves]:
        if step:
            story.move(*step)
        rows = data.draw(st.lists(st.integers(0, len(nodes) - 1), unique=True, min_size=1).map(sorted))
        candidates = [nodes[row] for row in rows]
        liked = slow_pods.affinity_scores(story.cluster, story.pod, candidates)
        assert scores(story.session, affinity, rows) == [WEIGHT * score for score in liked]
        thin = slow_pods.spread_scores(story.cluster, story.pod, candidates)
        assert scores(story.session, spread, rows) == [WEIGHT * score for score in thin]


def running(name: str, where: str, app: str) -> Object:
    return pod(name, node=where, labels={"app": app})


def spreading(**more: Any) -> list[Object]:
    constraint = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    return [constraint | {"labelSelector": {"matchLabels": {"app": "web"}}} | more]


def web(**spec: Any) -> Object:
    one = pod("p", labels={"app": "web"})
    one["spec"] |= spec
    return one


def zones(*names: str) -> list[Object]:
    return [node(f"n{i}", labels={"zone": zone}) for i, zone in enumerate(names)]


def reasons(session: "Session", filter_of: Callable[[Any], Any]) -> list[str]:
    check = filter_of(placed_pods(session)).prepare(session, task_named(session, "default/p"))
    return texts(session, check)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, [slow_pods.SKEWED, "", slow_pods.UNLABELLED]),
        ({"maxSkew": 2}, ["", "", slow_pods.UNLABELLED]),
        ({"minDomains": 3}, [slow_pods.SKEWED, "", slow_pods.UNLABELLED]),
        ({"labelSelector": None}, ["", "", slow_pods.UNLABELLED]),
    ],
)
def test_hard_spread(more: Object, expected: list[str]) -> None:
    session = opened(
        *zones("a", "b"), node("n2"), running("r", "n0", "web"), web(topologySpreadConstraints=spreading(**more))
    )
    assert reasons(session, TopologySpreadFilter) == expected


def test_what_is_placed_in_one_session_is_counted_at_the_opening_of_the_next() -> None:
    view = View()
    for obj in [*zones("a", "b"), web(topologySpreadConstraints=spreading()), running("r0", "n0", "web")]:
        view.apply("ADDED", obj)
    assert reasons(session_over(view), TopologySpreadFilter) == [slow_pods.SKEWED, ""]
    view.apply("ADDED", running("r1", "n1", "web"))
    assert reasons(session_over(view), TopologySpreadFilter) == ["", ""]
    view.apply("DELETED", running("r0", "n0", "web"))
    assert reasons(session_over(view), TopologySpreadFilter) == ["", slow_pods.SKEWED]


def test_the_first_of_a_series_may_start_anywhere() -> None:
    near = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    affinity = {"podAffinity": {slow_pods.REQUIRED: [near]}}
    session = opened(*zones("a", "b"), node("n2"), web(affinity=affinity))
    assert reasons(session, PodAffinityFilter) == ["", "", slow_pods.APART]
    put(session, task_named(session, "default/p"), 1)
    assert reasons(session, PodAffinityFilter) == [slow_pods.APART, "", slow_pods.APART]


def test_a_selector_that_cannot_be_read_fails_the_task() -> None:
    broken: Object = {"matchExpressions": [{"key": "app", "operator": "In", "values": []}]}
    spread = opened(node("n0"), web(topologySpreadConstraints=spreading(labelSelector=broken)))
    with pytest.raises(FitFailure, match="plugin PodTopologySpread pre-predicates failed"):
        reasons(spread, TopologySpreadFilter)
    term: Object = {"topologyKey": "zone", "labelSelector": broken}
    affinity = opened(node("n0"), web(affinity={"podAntiAffinity": {slow_pods.REQUIRED: [term]}}))
    with pytest.raises(FitFailure, match="plugin InterPodAffinity pre-predicates failed parsing pod"):
        reasons(affinity, PodAffinityFilter)


def test_labels_are_read_once_affinity_is_in_play() -> None:
    near = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    session = opened(node("n0"), pod("q"), web(affinity={"podAffinity": {slow_pods.REQUIRED: [near]}}))
    affinity = PodAffinityFilter(placed_pods(session))
    assert affinity.prepare(session, task_named(session, "default/q")) is None
    p, q = (task_named(session, f"default/{name}") for name in "pq")
    kind = affinity.reads.kind
    assert kind is not None
    assert kind(p) == kind(q)
    affinity.prepare(session, p)
    assert kind(p) != kind(q)


def hermit(name: str, where: str | None = None) -> Object:
    """A pod that wants no other pod of app web on its host."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    return pod(name, node=where, affinity={"podAntiAffinity": {slow_pods.REQUIRED: [term]}})


def test_who_minds_company_is_asked_on_the_nodes_listed_at_the_opening_only() -> None:
    """Volcano's own.

    The list of nodes with such pods is made once a session, what they mind is read from the pods of the moment.
    """
    session = opened(*zones("a", "b"), hermit("h0", "n0"), hermit("h1"), web())
    assert reasons(session, PodAffinityFilter) == [slow_pods.UNWELCOME, ""]
    put(session, task_named(session, "default/h1"), 1)
    assert reasons(session, PodAffinityFilter) == [slow_pods.UNWELCOME, ""]
    take(session, task_named(session, "default/h0"), 0)
    assert reasons(session, PodAffinityFilter) == ["", ""]
    put(session, task_named(session, "default/h0"), 0)
    assert reasons(session, PodAffinityFilter) == [slow_pods.UNWELCOME, ""]


def test_a_pod_with_preferences_alone_makes_no_list_of_those_who_mind() -> None:
    near = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}
    liking = {"podAffinity": {slow_pods.PREFERRED: [{"weight": 1, "podAffinityTerm": near}]}}
    session = opened(*zones("a"), pod("r", node="n0", affinity=liking), hermit("h"), web())
    put(session, task_named(session, "default/h"), 0)
    assert reasons(session, PodAffinityFilter) == [""]


@pytest.mark.parametrize(
    ("fix", "first"), [((), slow_pods.TOGETHER), ((ENDS,), ""), ((ENDS, STAYS), slow_pods.TOGETHER)]
)
@pytest.mark.parametrize("selector", [("team", "DoesNotExist", None), ("team", "NotIn", ["x"])])
def test_selector_that_matches_no_labels_reaches_all_namespaces(
    fix: tuple[str, ...], first: str, selector: tuple[str, str, list[str] | None]
) -> None:
    others = {"matchExpressions": [expression(*selector)]}
    term = {"topologyKey": "zone", "namespaceSelector": others, "labelSelector": {"matchLabels": {"app": "web"}}}
    known = namespace_objects({"default": {"team": "x"}, "other": {}})
    placed = [running("r", "n0", "web"), running("s", "n1", "web")]
    placed[1]["metadata"]["namespace"] = "other"
    new = web(affinity={"podAntiAffinity": {slow_pods.REQUIRED: [term]}})
    session = opened(*zones("a", "b"), *placed, new, *known)
    session.config.pumice = msgspec.structs.replace(session.config.pumice, fix=fix)  # type: ignore[misc]
    assert reasons(session, PodAffinityFilter) == [first, slow_pods.TOGETHER]


@pytest.mark.parametrize(("policy", "expected"), [("Honor", ["", ""]), ("Ignore", [slow_pods.SKEWED, ""])])
def test_tainted_nodes_count_unless_taints_are_honoured(policy: str, expected: list[str]) -> None:
    nodes = [*zones("a"), node("n1", labels={"zone": "b"}, taints=[taint("k")])]
    constraint = spreading(nodeTaintsPolicy=policy)
    session = opened(*nodes, running("r", "n0", "web"), web(topologySpreadConstraints=constraint))
    assert reasons(session, TopologySpreadFilter) == expected


@settings(max_examples=80)
@given(crowd=crowds(), moves=MOVES)
def test_a_trial_of_affinity_is_the_filter_after_the_moves(crowd: Crowd, moves: list[tuple[bool, int, int]]) -> None:
    """Where every node with a pod counts as listed, moving pods by hand and moving them really come to the same."""
    story = Story(crowd)
    story.cluster.opening.extend((one, n["metadata"]["name"]) for one in story.later for n in story.cluster.nodes)
    trial = AffinityTrial.of(story.session, placed_pods(story.session), story.task)
    before = list(story.cluster.placed)
    for puts, which, where in moves:
        story.move(puts, which, where)
    after = story.cluster.placed
    nodes, session = story.session.nodes, story.session
    for one, name in before:
        trial.move(task_named(session, key_of(one)), nodes.row[name], -1)
    for one, name in after:
        trial.move(task_named(session, key_of(one)), nodes.row[name], 1)
    if trial.skipped:
        return
    expected = [slow_pods.affinity_reason(story.cluster, story.pod, n) for n in story.cluster.nodes]
    assert [trial.refusal(row) or "" for row in range(nodes.count)] == expected


def test_a_trial_counts_who_minds_the_pods_company_as_they_come_and_go() -> None:
    """Nothing but the others' own terms refuses it here, and without one of them at the opening nobody asks at all."""
    session = opened(*zones("a", "b"), hermit("h", "n0"), hermit("i"), pod("j"), web())
    trial = AffinityTrial.of(session, placed_pods(session), task_named(session, "default/p"))
    refused = [slow_pods.UNWELCOME, None]
    assert [trial.refusal(row) for row in range(2)] == refused
    trial.move(task_named(session, "default/j"), 1, 1)
    assert [trial.refusal(row) for row in range(2)] == refused
    trial.move(task_named(session, "default/i"), 1, 1)
    assert [trial.refusal(row) for row in range(2)] == [slow_pods.UNWELCOME, slow_pods.UNWELCOME]
    trial.move(task_named(session, "default/h"), 0, -1)
    assert [trial.refusal(row) for row in range(2)] == [None, slow_pods.UNWELCOME]


def test_selectors_are_read_once_for_pods_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[Object]()

    def counted(selector: Object) -> LabelSelector:
        read.append(selector)
        return label_selector(selector)

    monkeypatch.setattr("pumice.core.kube.spread.label_selector", counted)
    session = opened(*zones("a", "b"), web(topologySpreadConstraints=spreading(maxSkew=7)))
    for _ in range(3):
        assert reasons(session, TopologySpreadFilter) == ["", ""]
    assert len(read) == 1
