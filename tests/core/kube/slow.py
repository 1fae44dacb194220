"""Kubernetes' filters and scorers written one node at a time over plain objects.

Slow, obvious, and nothing like the real ones.
"""

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from pumice.core.objects.metadata import Object
from pumice.core.quantity import parse_quantity

AFFINITY = "node(s) didn't match Pod's node affinity/selector"
TAINTED = "node(s) had untolerated taint(s)"
CORDONED = "node(s) were unschedulable"
FULL = "node(s) pod number exceeded"
PORTS = "node(s) didn't have free ports for the requested pod ports"
MILLION = 1024 * 1024


def part(obj: Object, *path: str) -> Object:
    """The mapping at a path, empty where it ends."""
    for name in path:
        found: Object | None = obj.get(name)
        obj = found if found is not None else {}
    return obj


def listed(obj: Object, *path: str) -> list[Any]:
    """The list at a path, empty where there is none."""
    found: list[Any] | None = part(obj, *path[:-1]).get(path[-1])
    return found if found is not None else []


def labels_of(obj: Object) -> dict[str, str]:
    return part(obj, "metadata", "labels")


def go_integer(text: str) -> int | None:
    if not re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        return None
    return int(text) if -(2**63) <= int(text) < 2**63 else None


def expression_matches(expression: Object, labels: dict[str, str]) -> bool:
    """One valid expression against a set of labels."""
    value, values = labels.get(expression["key"]), listed(expression, "values")
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            pass
    if value is None or (number := go_integer(value)) is None or (bound := go_integer(values[0])) is None:
        return False
    return number > bound if expression["operator"] == "Gt" else number < bound


def is_label_value(text: str) -> bool:
    inner = text.replace("-", "a").replace("_", "a").replace(".", "a")
    return not text or (text[0].isalnum() and text[-1].isalnum() and inner.isalnum() and len(text) < 64)


def expression_is_valid(expression: Object) -> bool:
    values: list[str] = listed(expression, "values")
    if not all(map(is_label_value, values)):
        return False
    match expression["operator"]:
        case "In" | "NotIn":
            return bool(values)
        case "Exists" | "DoesNotExist":
            return not values
        case "Gt" | "Lt":
            return len(values) == 1 and go_integer(values[0]) is not None
        case _:
            return False


def term_matches(term: Object, node: Object) -> bool:
    expressions, fields = listed(term, "matchExpressions"), listed(term, "matchFields")
    if (not expressions and not fields) or not all(map(expression_is_valid, expressions)):
        return False
    for field in fields:
        value = node["metadata"]["name"] if field["key"] == "metadata.name" else ""
        if field["operator"] not in ("In", "NotIn") or len(field["values"]) != 1:
            return False
        if (value == field["values"][0]) != (field["operator"] == "In"):
            return False
    return all(expression_matches(e, labels_of(node)) for e in expressions)


def node_selected(pod: Object, node: Object) -> bool:
    """NodeAffinity's filter."""
    if any(labels_of(node).get(k) != v for k, v in part(pod, "spec", "nodeSelector").items()):
        return False
    affinity = part(pod, "spec", "affinity", "nodeAffinity")
    required: Object | None = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(term_matches(t, node) for t in listed(required, "nodeSelectorTerms"))


def preferred(pod: Object, node: Object) -> int:
    """NodeAffinity's raw score."""
    affinity = part(pod, "spec", "affinity", "nodeAffinity")
    terms = listed(affinity, "preferredDuringSchedulingIgnoredDuringExecution")
    return sum(term["weight"] for term in terms if term_matches(term["preference"], node))


def covers(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("key") not in (None, "", taint.get("key")):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return toleration.get("operator") in (None, "", "Equal") and toleration.get("value", "") == taint.get("value", "")


def untolerated(pod: Object, taints: Iterable[Object], effects: tuple[str, ...]) -> list[Object]:
    tolerations = listed(pod, "spec", "tolerations")
    return [t for t in taints if t.get("effect") in effects and not any(covers(o, t) for o in tolerations)]


def tainted(pod: Object, node: Object) -> bool:
    return bool(untolerated(pod, listed(node, "spec", "taints"), ("NoSchedule", "NoExecute")))


def cordoned(pod: Object, node: Object) -> bool:
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    return bool(node["spec"].get("unschedulable")) and bool(untolerated(pod, [taint], ("NoSchedule",)))


def soft_taints(pod: Object, node: Object) -> int:
    """TaintToleration's raw score."""
    return len(untolerated(pod, listed(node, "spec", "taints"), ("PreferNoSchedule",)))


def containers(pod: Object) -> list[Object]:
    return listed(pod, "spec", "containers")


def ports(pod: Object) -> list[tuple[str, str, int]]:
    found = [p for c in containers(pod) for p in listed(c, "ports") if p.get("hostPort")]
    return [(p.get("hostIP") or "0.0.0.0", p.get("protocol") or "TCP", p["hostPort"]) for p in found]


def ports_clash(pod: Object, others: Iterable[Object]) -> bool:
    for address, protocol, port in ports(pod):
        for other in others:
            for used, used_protocol, used_port in ports(other):
                same = (protocol, port) == (used_protocol, used_port)
                if same and ("0.0.0.0" in (address, used) or address == used):
                    return True
    return False


def allocatable(node: Object, name: str) -> int:
    quantity = parse_quantity(node["status"]["allocatable"].get(name, "0"))
    return quantity.milli_value() if name == "cpu" else quantity.value()


def requested(pod: Object, name: str, missing: int = 0) -> int:
    """Over the containers; `missing` for a container that does not name the resource."""
    total = 0
    for container in containers(pod):
        requests = part(container, "resources", "requests")
        if name not in requests:
            total += missing
        else:
            quantity = parse_quantity(requests[name])
            total += quantity.milli_value() if name == "cpu" else quantity.value()
    return total


def nonzero(pods: Iterable[Object], name: str) -> int:
    missing = {"cpu": 100, "memory": 200 * MILLION}[name]
    return sum(requested(pod, name, missing) for pod in pods)


def mean_score(pods: list[Object], node: Object, of: Callable[[int, int], int]) -> int:
    parts = [(nonzero(pods, n), allocatable(node, n)) for n in ("cpu", "memory")]
    found = [of(taken, most) for taken, most in parts if most]
    return sum(found) // len(found) if found else 0


def least_allocated(pods: list[Object], node: Object) -> int:
    """`pods`: those on the node and the one to place."""
    return mean_score(pods, node, lambda taken, most: 0 if taken > most else (most - taken) * 100 // most)


def most_allocated(pods: list[Object], node: Object) -> int:
    return mean_score(pods, node, lambda taken, most: min(taken, most) * 100 // most)


def balanced_allocation(pod: Object, others: list[Object], node: Object) -> int | None:
    """None: the pod asks for nothing and is not scored."""
    names = ["cpu", "memory", "nvidia.com/gpu"]
    if not any(requested(pod, name) for name in names):
        return None
    fractions: list[float] = []
    for name in names:
        most = allocatable(node, name)
        if most and (name != "nvidia.com/gpu" or requested(pod, name)):
            fractions.append(min(float(sum(requested(p, name) for p in [*others, pod])) / float(most), 1.0))
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) == 3:
        mean = (fractions[0] + fractions[1] + fractions[2]) / 3
        a, b, c = ((f - mean) * (f - mean) for f in fractions)
        deviation = math.sqrt((a + b + c) / 3)
    return int((1 - deviation) * 100.0)


def image_locality(pod: Object, node: Object, nodes: list[Object]) -> int:
    def tagged(name: str) -> str:
        return name if ":" in name.rsplit("/", 1)[-1] else name + ":latest"

    def lists(one: Object) -> dict[str, int]:
        found: dict[str, int] = {}
        for image in listed(one, "status", "images"):
            for name in listed(image, "names"):
                found.setdefault(name, image["sizeBytes"])
        return found

    images = [tagged(c["image"]) for c in containers(pod)]
    total = 0
    for image in images:
        having = [lists(n)[image] for n in nodes if image in lists(n)]
        if image in lists(node):
            total += int(float(having[0]) * (len(having) / len(nodes)))
    low, high = 23 * MILLION, 1000 * MILLION * len(images)
    return 100 * (min(max(total, low), high) - low) // (high - low)


def normalised(raw: list[int], *, reverse: bool = False) -> list[int]:
    highest = max([0, *raw])
    if not highest:
        return [100 if reverse else 0 for _ in raw]
    return [100 - 100 * r // highest if reverse else 100 * r // highest for r in raw]
