"""Objects of at most 64 KiB that ask for as much work as they can: wide, deep, repeated, and odd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pumice.core.objects.metadata import Object

NAMESPACE: Final = "bench"
DEAR_PATTERN: Final = "(a|b)*a(a|b){400}c"
"""No engine has a short automaton for it."""


def nested(levels: int, *, lists: bool) -> Any:
    """So many levels of lists, or of mappings."""
    value: Any = "x"
    for _ in range(levels):
        value = [value] if lists else {"a": value}
    return value


def _numbered(form: str, count: int) -> list[str]:
    return [form.format(number) for number in range(count)]


def _containers(count: int, **more: Any) -> list[Object]:
    return [{"name": f"c{number}", "image": "i", **more} for number in range(count)]


def pod(name: str, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    """A pod that a scheduler nobody runs is to place."""
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels or {}}
    return _object("v1", "Pod", metadata, {"schedulerName": "nobody", "containers": _containers(1), **spec})


def _object(version: str, kind: str, metadata: Object, spec: Any) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def _terms(count: int) -> list[Object]:
    expressions = [{"key": f"k{number}", "operator": "In", "values": ["a", "b"]} for number in range(count)]
    return [{"matchExpressions": expressions}]


def _affinity(count: int) -> Object:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": _terms(count)}}}


def _anti_affinity(count: int) -> Object:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "bench"}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term] * count}}


PODS: Final[dict[str, Callable[[str], Object]]] = {
    "labels": lambda name: pod(name, dict.fromkeys(_numbered("l{}", 5_000), "v")),
    "bad labels": lambda name: pod(name, dict.fromkeys(_numbered("-{}", 5_400), "!")),
    "containers": lambda name: pod(name, containers=_containers(1_500)),
    "one container's ports": lambda name: pod(
        name, containers=_containers(1, ports=[{"containerPort": port} for port in range(1, 2_500)])
    ),
    "environment": lambda name: pod(
        name, containers=_containers(1, env=[{"name": each, "value": "v"} for each in _numbered("E{}", 2_000)])
    ),
    "the same ports": lambda name: pod(
        name, containers=_containers(1, ports=[{"containerPort": 80, "hostPort": 80}] * 1_600)
    ),
    "tolerations": lambda name: pod(name, tolerations=[{"key": each} for each in _numbered("k{}", 3_500)]),
    "node affinity": lambda name: pod(name, affinity=_affinity(1_100)),
    "anti-affinity": lambda name: pod(name, affinity=_anti_affinity(500)),
    "volumes": lambda name: pod(name, volumes=[{"name": each, "emptyDir": {}} for each in _numbered("v{}", 1_800)]),
    "resources": lambda name: pod(
        name, containers=_containers(1, resources={"limits": dict.fromkeys(_numbered("x.io/r{}", 3_000), "1")})
    ),
    "long amounts": lambda name: pod(
        name,
        containers=_containers(1, resources={"limits": {f"x.io/r{n}": "1" * 480 + f"e{n}" for n in range(120)}}),
    ),
    "an endless amount": lambda name: pod(
        name, containers=_containers(1, resources={"limits": {"cpu": "1" * 60_000 + "!"}})
    ),
    "owners": lambda name: {
        **pod(name),
        "metadata": {
            "name": name,
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "X", "name": "x", "uid": each} for each in _numbered("u{}", 1_000)
            ],
        },
    },
    "finalizers": lambda name: {**pod(name), "metadata": {"name": name, "finalizers": _numbered("x.io/f{}", 4_500)}},
    "depth of lists": lambda name: pod(name, x=nested(400, lists=True)),
    "depth of mappings": lambda name: pod(name, x=nested(400, lists=False)),
    "numbers nobody knows": lambda name: pod(name, x=[0] * 30_000),
    "mappings nobody knows": lambda name: pod(name, x=[{}] * 20_000),
    "gates": lambda name: pod(name, schedulingGates=[{"name": each} for each in _numbered("g{}", 3_500)]),
    "spread": lambda name: pod(
        name,
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": each, "whenUnsatisfiable": "DoNotSchedule"} for each in _numbered("k{}", 700)
        ],
    ),
}
"""By what there is too much of."""


def _task(name: str, depends: list[str], replicas: int = 1) -> Object:
    template = {"spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "i"}]}}
    return {"name": name, "replicas": replicas, "template": template, "dependsOn": {"name": depends}}


def _job(name: str, tasks: list[Object], **spec: Any) -> Object:
    metadata = {"name": name, "namespace": NAMESPACE}
    return _object("batch.volcano.sh/v1alpha1", "Job", metadata, {"schedulerName": "nobody", "tasks": tasks, **spec})


JOBS: Final[dict[str, Callable[[str], Object]]] = {
    "tasks": lambda name: _job(name, [_task(f"t{n}", []) for n in range(350)]),
    "a chain of tasks": lambda name: _job(name, [_task(f"t{n}", [f"t{n - 1}"] if n else []) for n in range(350)]),
    "a circle of tasks": lambda name: _job(name, [_task(f"t{n}", [f"t{(n + 1) % 350}"]) for n in range(350)]),
    "tasks on all before": lambda name: _job(name, [_task(f"t{n}", [f"t{m}" for m in range(n)]) for n in range(110)]),
    "policies": lambda name: _job(name, [_task("t", [])], policies=[{"event": "*", "action": "X"}] * 1_800),
    "job volumes": lambda name: _job(name, [_task("t", [])], volumes=[{"mountPath": f"/m{n}"} for n in range(2_500)]),
}


def _group(name: str, **spec: Any) -> Object:
    return _object("scheduling.volcano.sh/v1beta1", "PodGroup", {"name": name, "namespace": NAMESPACE}, spec)


GROUPS: Final[dict[str, Callable[[str], Object]]] = {
    "task members": lambda name: _group(name, minMember=1, minTaskMember=dict.fromkeys(_numbered("t{}", 5_000), 1)),
    "least resources": lambda name: _group(name, minResources=dict.fromkeys(_numbered("x.io/r{}", 3_500), "1")),
    "subgroups": lambda name: _group(name, subGroupPolicy=[{"name": f"s{n}", "subGroupSize": 1} for n in range(1_500)]),
}

CLUSTER: Final[dict[str, tuple[str, Callable[[str], Object]]]] = {
    "members by pattern": (
        "/apis/topology.volcano.sh/v1alpha1/hypernodes",
        lambda name: _object(
            "topology.volcano.sh/v1alpha1",
            "HyperNode",
            {"name": name},
            {
                "tier": 1,
                "members": [
                    {"type": "Node", "selector": {"regexMatch": {"pattern": f"^(n+)+{n}$"}}} for n in range(20)
                ],
            },
        ),
    ),
    "taints": (
        "/api/v1/nodes",
        lambda name: _object(
            "v1", "Node", {"name": name}, {"taints": [{"key": f"k{n}", "effect": "NoSchedule"} for n in range(1_500)]}
        ),
    ),
    "hard limits": (
        f"/api/v1/namespaces/{NAMESPACE}-other/resourcequotas",
        lambda name: _object(
            "v1", "ResourceQuota", {"name": name}, {"hard": dict.fromkeys(_numbered("count/r{}", 3_000), "1")}
        ),
    ),
    "capabilities": (
        "/apis/scheduling.volcano.sh/v1beta1/queues",
        lambda name: _object(
            "scheduling.volcano.sh/v1beta1",
            "Queue",
            {"name": name},
            {"weight": 1, "capability": dict.fromkeys(_numbered("x.io/r{}", 3_000), "1")},
        ),
    ),
    "a budget's selector": (
        f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets",
        lambda name: _object(
            "policy/v1",
            "PodDisruptionBudget",
            {"name": name},
            {"selector": {"matchExpressions": _terms(900)[0]["matchExpressions"]}, "minAvailable": 1},
        ),
    ),
}
"""Path and body."""


def definition(plural: str, schema: Object, **version: Any) -> Object:
    """A CustomResourceDefinition."""
    names = {
        "plural": plural,
        "kind": plural.capitalize(),
        "singular": plural,
        "listKind": f"{plural.capitalize()}List",
    }
    known = {"type": "object", "properties": {"spec": schema}}
    one = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": known}, **version}
    spec = {"group": "fuzz.dev", "scope": "Cluster", "names": names, "versions": [one]}
    return _object("apiextensions.k8s.io/v1", "CustomResourceDefinition", {"name": f"{plural}.fuzz.dev"}, spec)


def _items(schema: Object) -> Object:
    return {"type": "object", "properties": {"a": {"type": "array", "items": schema}}}


def _ruled(rule: str) -> Object:
    return {**_items(INTEGER), "x-kubernetes-validations": [{"rule": rule}]}


TEXT: Final = {"type": "string"}
INTEGER: Final = {"type": "integer"}
DEFINED: Final[dict[str, tuple[Object, Any]]] = {
    "numbers": (_items(INTEGER), [1] * 30_000),
    "alternatives": (_items({**INTEGER, "anyOf": [{"maximum": n} for n in range(-800, 0)]}), [1] * 10_000),
    "backtracking": (_items({**TEXT, "pattern": "^(a+)+$"}), ["a" * 60_000 + "!"]),
    "a dear pattern": (_items({**TEXT, "pattern": DEAR_PATTERN}), ["ab" * 40] * 700),
    "defaults": (
        _items({"type": "object", "properties": {"x": {"type": "string", "default": "x" * 50_000}}}),
        [{} for _ in range(20_000)],
    ),
    "choices": (_items({**INTEGER, "enum": list(range(-9_000, 0))}), list(range(10_000))),
    "all of many": (_items({**TEXT, "allOf": [{"maxLength": n} for n in range(2_500)]}), ["x" * 60_000]),
    "sets": (_items({"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}), [_numbered("v{}", 7_000)]),
    "properties": (
        _items({"type": "object", "properties": dict.fromkeys(_numbered("p{}", 2000), INTEGER)}),
        [{} for _ in range(20_000)],
    ),
    "a rule over each": (_ruled("self.a.all(x, x > 0)"), [1] * 30_000),
    "a rule over all for each": (_ruled("self.a.all(x, self.a.isSorted() && x in self.a)"), [1] * 30_000),
    "a rule over all together": (_ruled("self.a.map(x, self.a).map(x, self.a) == [self.a]"), [1] * 30_000),
    "a rule of many parts": (_ruled(f"self.a.all(x, {' && '.join(['x > 0'] * 1_000)})"), [1] * 30_000),
    "a rule of patterns": (
        _ruled(" && ".join(f"!'x'.matches('[a-z]{{{n}}}')" for n in range(200, 500))),
        [1],
    ),
}
"""A schema of its own, and an object that it makes the most of."""
