"""Hypothesis strategies for small clusters in which the same few labels, taints, ports and images meet often."""

from hypothesis import strategies as st

from pumice.core.objects.metadata import Object

KEYS = st.sampled_from(["zone", "disk", "gen", "example.com/rack"])
VALUES = st.sampled_from(["a", "b", "1", "7", "-3", "+5", "x_1", ""])
EFFECTS = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])
CPU = st.sampled_from(["0", "100m", "250m", "1", "1500m", "3", "7", "64"])
MEMORY = st.sampled_from(["0", "1", "64Mi", "1Gi", "3Gi", "1000M", "511Gi"])
GPUS = st.sampled_from(["0", "1", "3", "8"])
IMAGES = st.sampled_from(["busybox", "busybox:latest", "nginx:1", "r.example/a/nginx", "r.example:5000/b"])

Strategy = st.SearchStrategy[Object]


def expression(key: str, operator: str, values: list[str] | None = None) -> Object:
    return {"key": key, "operator": operator} | ({} if values is None else {"values": values})


def container(requests: dict[str, str], ports: list[Object], image: str) -> Object:
    return {"name": "c", "image": image, "resources": {"requests": requests}, "ports": ports}


def image_of(names: list[str], size: int) -> Object:
    return {"names": names, "sizeBytes": size}


def weighted(weight: int, preference: Object) -> Object:
    return {"weight": weight, "preference": preference}


expressions: Strategy = st.one_of(
    st.builds(expression, KEYS, st.sampled_from(["In", "NotIn"]), st.lists(VALUES, max_size=3)),
    st.builds(expression, KEYS, st.sampled_from(["Exists", "DoesNotExist"]), st.none()),
    st.builds(expression, KEYS, st.sampled_from(["Gt", "Lt"]), st.lists(VALUES, min_size=1, max_size=2)),
)
fields: Strategy = st.builds(
    expression,
    st.sampled_from(["metadata.name", "metadata.name", "metadata.uid"]),
    st.sampled_from(["In", "NotIn"]),
    st.lists(st.sampled_from(["n0", "n1", "n2", ""]), min_size=1, max_size=2),
)
terms: Strategy = st.fixed_dictionaries(
    {}, optional={"matchExpressions": st.lists(expressions, max_size=2), "matchFields": st.lists(fields, max_size=2)}
)
taints: Strategy = st.fixed_dictionaries({"key": KEYS, "effect": EFFECTS}, optional={"value": VALUES})
tolerations: Strategy = st.fixed_dictionaries(
    {},
    optional={
        "key": st.one_of(KEYS, st.just("node.kubernetes.io/unschedulable")),
        "effect": EFFECTS,
        "operator": st.sampled_from(["Exists", "Equal", "Gt"]),
        "value": VALUES,
    },
)
host_ports: Strategy = st.fixed_dictionaries(
    {"hostPort": st.sampled_from([80, 443])},
    optional={
        "hostIP": st.sampled_from(["10.0.0.1", "10.0.0.2", "0.0.0.0"]),
        "protocol": st.sampled_from(["TCP", "UDP"]),
    },
)
requests: st.SearchStrategy[dict[str, str]] = st.fixed_dictionaries(
    {}, optional={"cpu": CPU, "memory": MEMORY, "nvidia.com/gpu": GPUS}
)
amounts: st.SearchStrategy[dict[str, str]] = st.fixed_dictionaries(
    {"cpu": CPU, "memory": MEMORY}, optional={"nvidia.com/gpu": GPUS}
)
containers: Strategy = st.builds(container, requests, st.lists(host_ports, max_size=2), IMAGES)
images: Strategy = st.builds(image_of, st.lists(IMAGES, min_size=1, max_size=2), st.integers(0, 3 * 10**9))
PLAIN = st.sampled_from(["a", "b", "1", "x_1", ""])
valid_expressions: Strategy = st.one_of(
    st.builds(expression, KEYS, st.just("In"), st.lists(PLAIN, min_size=1, max_size=2)),
    st.builds(expression, KEYS, st.sampled_from(["Exists", "DoesNotExist"]), st.none()),
    st.builds(expression, KEYS, st.just("Gt"), st.sampled_from([["0"], ["6"]])),
)
valid_terms: Strategy = st.fixed_dictionaries(
    {}, optional={"matchExpressions": st.lists(valid_expressions, max_size=2)}
)


@st.composite
def node_objects(draw: st.DrawFn, name: str) -> Object:
    allocatable = draw(amounts)
    allocatable["pods"] = draw(st.sampled_from(["0", "1", "2", "110"]))
    annotations = {"volcano.sh/oversubscription-cpu": "2000"} if draw(st.booleans()) else {}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": draw(st.dictionaries(KEYS, VALUES)), "annotations": annotations},
        "spec": {"taints": draw(st.lists(taints, max_size=2)), "unschedulable": draw(st.booleans())},
        "status": {"allocatable": allocatable, "images": draw(st.lists(images, max_size=2))},
    }


@st.composite
def pod_objects(draw: st.DrawFn, name: str, *, node: str | None = None, affinity: Object | None = None) -> Object:
    spec: Object = {
        "containers": draw(st.lists(containers, min_size=1, max_size=2)),
        "tolerations": draw(st.lists(tolerations, max_size=2)),
        "affinity": affinity or {},
    }
    if node:
        spec["nodeName"] = node
    meta = {"name": name, "namespace": draw(st.sampled_from(["a", "b"])), "labels": draw(st.dictionaries(KEYS, VALUES))}
    return {"kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Running" if node else "Pending"}}


@st.composite
def node_affinities(draw: st.DrawFn) -> Object:
    liked = st.builds(weighted, st.integers(1, 100), valid_terms)
    required = st.fixed_dictionaries({"nodeSelectorTerms": st.lists(terms, max_size=3)})
    parts: Strategy = st.fixed_dictionaries(
        {},
        optional={
            "requiredDuringSchedulingIgnoredDuringExecution": required,
            "preferredDuringSchedulingIgnoredDuringExecution": st.lists(liked, max_size=3),
        },
    )
    return {"nodeAffinity": draw(parts)}


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Object], list[Object], Object]:
    """Nodes n0 …, running pods, and one pending pod "a/p" or "b/p"."""
    names = [f"n{i}" for i in range(draw(st.integers(1, 5)))]
    nodes = [draw(node_objects(name)) for name in names]
    running = [draw(pod_objects(f"r{i}", node=draw(st.sampled_from(names)))) for i in range(draw(st.integers(0, 5)))]
    pod = draw(pod_objects("p", affinity=draw(node_affinities())))
    if draw(st.booleans()):
        pod["spec"]["nodeSelector"] = draw(st.dictionaries(KEYS, VALUES, max_size=2))
    return nodes, running, pod
