"""Hypothesis strategies for clusters of pods that like, dislike and spread from each other."""

from hypothesis import strategies as st

from pumice.core.objects.metadata import Object
from tests.core.kube.clusters import Strategy, expression, node_affinities, taints, tolerations
from tests.core.kube.slow_pods import PREFERRED, REQUIRED

NOTHING: Object = {}
KEYS = st.sampled_from(["zone", "rack", "kubernetes.io/hostname"])
APPS = st.sampled_from(["web", "db"])
NAMESPACES = st.sampled_from(["a", "b"])


def term(key: str, selector: Object | None, more: Object) -> Object:
    return {"topologyKey": key} | ({} if selector is None else {"labelSelector": selector}) | more


def merged(one: Object, other: Object) -> Object:
    return one | other


def preference(weight: int, one: Object) -> Object:
    return {"weight": weight, "podAffinityTerm": one}


def spreading(key: str, skew: int, action: str, selector: Object | None, more: Object) -> Object:
    found = {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": action}
    return found | ({} if selector is None else {"labelSelector": selector}) | more


expressions: Strategy = st.one_of(
    st.builds(expression, st.just("app"), st.sampled_from(["In", "NotIn"]), st.lists(APPS, min_size=1, max_size=2)),
    st.builds(expression, st.sampled_from(["app", "tier"]), st.sampled_from(["Exists", "DoesNotExist"]), st.none()),
)
by_app: Strategy = st.fixed_dictionaries({"matchLabels": st.fixed_dictionaries({"app": APPS})})
by_expression: Strategy = st.fixed_dictionaries({"matchExpressions": st.lists(expressions, max_size=2)})
selectors: st.SearchStrategy[Object | None] = st.one_of(
    by_app, by_app, by_app, by_expression, st.just(NOTHING), st.none()
)
teams: st.SearchStrategy[Object] = st.one_of(
    st.just(NOTHING),
    st.just({"matchLabels": {"team": "x"}}),
    st.just({"matchExpressions": [expression("team", "DoesNotExist")]}),
)
named: Strategy = st.fixed_dictionaries({"namespaces": st.lists(NAMESPACES, max_size=2)})
by_team: Strategy = st.fixed_dictionaries({"namespaceSelector": teams})
both: Strategy = st.fixed_dictionaries({"namespaces": st.lists(NAMESPACES, max_size=2), "namespaceSelector": teams})
reaches: Strategy = st.one_of(st.just(NOTHING), st.just(NOTHING), named, by_team, by_team, both)
terms: Strategy = st.builds(term, KEYS, selectors, reaches)
required: Strategy = st.fixed_dictionaries({REQUIRED: st.lists(terms, min_size=1, max_size=2)})
preferred: Strategy = st.fixed_dictionaries(
    {PREFERRED: st.lists(st.builds(preference, st.integers(1, 100), terms), min_size=1, max_size=2)}
)
together: Strategy = st.fixed_dictionaries({"podAffinity": st.one_of(required, preferred)})
apart: Strategy = st.fixed_dictionaries({"podAntiAffinity": st.one_of(required, preferred, st.just(NOTHING))})
affinities: Strategy = st.one_of(st.just(NOTHING), together, apart, apart, st.builds(merged, together, apart))
policies: Strategy = st.fixed_dictionaries(
    {"minDomains": st.integers(1, 4)},
    optional={
        "nodeAffinityPolicy": st.sampled_from(["Honor", "Ignore"]),
        "nodeTaintsPolicy": st.sampled_from(["Honor", "Ignore"]),
        "matchLabelKeys": st.just(["tier"]),
    },
)
spreads: st.SearchStrategy[list[Object]] = st.lists(
    st.builds(
        spreading, KEYS, st.integers(1, 3), st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]), selectors, policies
    ),
    min_size=1,
    max_size=3,
)
pod_labels: st.SearchStrategy[dict[str, str]] = st.fixed_dictionaries(
    {"app": APPS}, optional={"tier": st.sampled_from(["1", "2"])}
)


team_labels: st.SearchStrategy[dict[str, str]] = st.sampled_from([{"team": "x"}, {"team": "x"}, {"team": "y"}])


@st.composite
def node_objects(draw: st.DrawFn, name: str) -> Object:
    optional = {"zone": st.sampled_from(["z0", "z1"]), "rack": st.sampled_from(["r0", "r1", "r2"])}
    labels = draw(st.fixed_dictionaries({"kubernetes.io/hostname": st.just(name)}, optional=optional))
    spec: Object = {"taints": [draw(taints)] if draw(st.integers(0, 2)) == 0 else []}
    status = {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"}}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


@st.composite
def pod_objects(draw: st.DrawFn, name: str, node: str | None = None) -> Object:
    meta: Object = {"name": name, "namespace": draw(NAMESPACES), "labels": draw(pod_labels)}
    if node and draw(st.integers(0, 4)) == 0:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec: Object = {"containers": [{"name": "c"}], "affinity": draw(affinities)}
    if node:
        spec["nodeName"] = node
    return {"kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Running" if node else "Pending"}}


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list[Object], list[Object], list[Object], Object, dict[str, dict[str, str]]]:
    """Nodes, running pods, pods that may be placed later, the pod in question, labels of known namespaces."""
    names = [f"n{i}" for i in range(draw(st.integers(2, 5)))]
    nodes = [draw(node_objects(name)) for name in names]
    running = [draw(pod_objects(f"r{i}", draw(st.sampled_from(names)))) for i in range(draw(st.integers(2, 7)))]
    later = [draw(pod_objects(f"l{i}")) for i in range(draw(st.integers(1, 4)))]
    pod = draw(pod_objects("p"))
    pod["spec"]["topologySpreadConstraints"] = draw(spreads)
    pod["spec"]["tolerations"] = draw(st.lists(tolerations, max_size=1))
    if draw(st.booleans()):
        pod["spec"]["affinity"] = {**pod["spec"]["affinity"], **draw(node_affinities())}
    known = draw(st.fixed_dictionaries({}, optional={"a": team_labels, "b": team_labels}))
    return nodes, running, later, pod, known
