"""Inter-pod affinity and topology spread, one pod and one node at a time over plain objects."""

import math
from dataclasses import dataclass

from pumice.core.objects.metadata import Object
from tests.core.kube import slow

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
APART = "node(s) didn't match pod affinity rules"
TOGETHER = "node(s) didn't match pod anti-affinity rules"
UNWELCOME = "node(s) didn't satisfy existing pods anti-affinity rules"
SKEWED = "node(s) didn't match pod topology spread constraints"
UNLABELLED = f"{SKEWED} (missing required label)"


@dataclass
class Cluster:
    """`placed`: (pod, node name) now; `opening`: what was placed at first; `namespaces`: labels by name."""

    nodes: list[Object]
    placed: list[tuple[Object, str]]
    opening: list[tuple[Object, str]]
    namespaces: dict[str, dict[str, str]]

    def labels(self, node: str) -> dict[str, str]:
        return next(slow.labels_of(n) for n in self.nodes if n["metadata"]["name"] == node)


def selected(selector: Object | None, labels: dict[str, str]) -> bool:
    if selector is None:
        return False
    wanted = slow.part(selector, "matchLabels")
    if any(labels.get(k) != v for k, v in wanted.items()):
        return False
    return all(slow.expression_matches(e, labels) for e in slow.listed(selector, "matchExpressions"))


def means(term: Object, holder: str, pod: Object, namespace_labels: dict[str, str]) -> bool:
    """Whether a term of a pod in namespace `holder` means this pod."""
    named, by_label = slow.listed(term, "namespaces"), term.get("namespaceSelector")
    namespace = pod["metadata"]["namespace"]
    reached = namespace in named or (not named and by_label is None and namespace == holder)
    reached = reached or selected(by_label, namespace_labels)
    return reached and selected(term.get("labelSelector"), slow.labels_of(pod))


def own_means(cluster: Cluster, term: Object, owner: Object, pod: Object) -> bool:
    """Whether a term of the pod to be placed matches: known namespaces that are selected count, and those that match
    without any labels.
    """
    home, namespace = owner["metadata"]["namespace"], pod["metadata"]["namespace"]
    known = means(term, home, pod, {})
    if namespace in cluster.namespaces and term.get("namespaceSelector"):
        known = known or means(term, home, pod, cluster.namespaces[namespace])
    return known


def terms(pod: Object, kind: str, when: str = REQUIRED) -> list[Object]:
    return slow.listed(pod, "spec", "affinity", kind, when)


def affinity_reason(cluster: Cluster, pod: Object, node: Object) -> str:
    """InterPodAffinity's filter."""
    labels = slow.labels_of(node)
    together, apart = terms(pod, "podAffinity"), terms(pod, "podAntiAffinity")
    if together:
        companions = [n for p, n in cluster.placed if all(own_means(cluster, t, pod, p) for t in together)]
        pairs = {(t["topologyKey"], cluster.labels(n).get(t["topologyKey"])) for n in companions for t in together}
        pairs = {pair for pair in pairs if pair[1] is not None}
        here = [(t["topologyKey"], labels.get(t["topologyKey"])) for t in together]
        if any(value is None for _, value in here):
            return APART
        alone = not pairs and all(own_means(cluster, t, pod, pod) for t in together)
        if not alone and not all(pair in pairs for pair in here):
            return APART
    for term in apart:
        key = term["topologyKey"]
        for other, where in cluster.placed:
            same = key in labels and cluster.labels(where).get(key) == labels[key]
            if same and own_means(cluster, term, pod, other):
                return TOGETHER
    listed = {where for other, where in cluster.opening if terms(other, "podAntiAffinity")}
    home = cluster.namespaces.get(pod["metadata"]["namespace"], {})
    for other, where in cluster.placed:
        for term in terms(other, "podAntiAffinity"):
            key = term["topologyKey"]
            same = key in labels and cluster.labels(where).get(key) == labels[key]
            if where in listed and same and means(term, other["metadata"]["namespace"], pod, home):
                return UNWELCOME
    return ""


def affinity_scores(cluster: Cluster, pod: Object, candidates: list[Object]) -> list[int]:
    """InterPodAffinity's finished score, without its weight."""
    kinds = (("podAffinity", 1), ("podAntiAffinity", -1))
    own = [(t, s) for kind, s in kinds for t in terms(pod, kind, PREFERRED)]
    listed = {n for p, n in cluster.opening if any(k in slow.part(p, "spec", "affinity") for k, _ in kinds)}
    home = cluster.namespaces.get(pod["metadata"]["namespace"], {})
    sums: dict[tuple[str, str], int] = {}
    for other, where in cluster.placed:
        found = [(t["podAffinityTerm"], s * t["weight"]) for t, s in own]
        holds = [(t, w) for t, w in found if own_means(cluster, t, pod, other)]
        if own or where in listed:
            theirs = [
                (t["podAffinityTerm"], s * t["weight"]) for kind, s in kinds for t in terms(other, kind, PREFERRED)
            ]
            holds += [(t, w) for t, w in theirs if means(t, other["metadata"]["namespace"], pod, home)]
        for term, weight in holds:
            key, labels = term["topologyKey"], cluster.labels(where)
            if key in labels:
                sums[key, labels[key]] = sums.get((key, labels[key]), 0) + weight
    raw = [sum(w for (k, v), w in sums.items() if slow.labels_of(n).get(k) == v) for n in candidates]
    low, span = min(raw), max(raw) - min(raw)
    return [int(100.0 * (float(r - low) / float(span))) if span else 0 for r in raw]


def constraints(pod: Object, action: str) -> list[Object]:
    return [c for c in slow.listed(pod, "spec", "topologySpreadConstraints") if c["whenUnsatisfiable"] == action]


def spread_selector(constraint: Object, pod: Object) -> Object | None:
    selector: Object | None = constraint.get("labelSelector")
    if selector is None:
        return None
    labels = slow.labels_of(pod)
    more = [
        {"key": k, "operator": "In", "values": [labels[k]]}
        for k in slow.listed(constraint, "matchLabelKeys")
        if k in labels
    ]
    return selector | {"matchExpressions": [*slow.listed(selector, "matchExpressions"), *more]}


def matching_on(cluster: Cluster, constraint: Object, pod: Object, node: Object) -> int:
    selector = spread_selector(constraint, pod)
    if selector is None or not (selector.get("matchLabels") or selector.get("matchExpressions")):
        return 0
    return sum(
        where == node["metadata"]["name"]
        and other["metadata"]["namespace"] == pod["metadata"]["namespace"]
        and "deletionTimestamp" not in other["metadata"]
        and selected(selector, slow.labels_of(other))
        for other, where in cluster.placed
    )


def counts(cluster: Cluster, constraint: Object, every: list[Object], pod: Object) -> dict[str, int]:
    """Domain -> matching pods on the nodes that count."""
    found: dict[str, int] = {}
    for node in cluster.nodes:
        labels = slow.labels_of(node)
        if any(c["topologyKey"] not in labels for c in every):
            continue
        if constraint.get("nodeAffinityPolicy") != "Ignore" and not slow.node_selected(pod, node):
            continue
        if constraint.get("nodeTaintsPolicy") == "Honor" and slow.tainted(pod, node):
            continue
        domain = labels[constraint["topologyKey"]]
        found[domain] = found.get(domain, 0) + matching_on(cluster, constraint, pod, node)
    return found


def spread_reason(cluster: Cluster, pod: Object, node: Object) -> str:
    """PodTopologySpread's filter."""
    every = constraints(pod, "DoNotSchedule")
    for constraint in every:
        domain = slow.labels_of(node).get(constraint["topologyKey"])
        if domain is None:
            return UNLABELLED
        found = counts(cluster, constraint, every, pod)
        fewest = min(found.values(), default=0) if len(found) >= constraint.get("minDomains", 1) else 0
        itself = selected(spread_selector(constraint, pod), slow.labels_of(pod))
        if found.get(domain, 0) + itself - fewest > constraint["maxSkew"]:
            return SKEWED
    return ""


def spread_scores(cluster: Cluster, pod: Object, candidates: list[Object]) -> list[int]:
    """PodTopologySpread's finished score, without its weight."""
    every = constraints(pod, "ScheduleAnyway")
    if not every:
        return [0] * len(candidates)
    scored = [n for n in candidates if all(c["topologyKey"] in slow.labels_of(n) for c in every)]
    raw: dict[str, int] = {}
    for node in scored:
        total = 0.0
        for constraint in every:
            key = constraint["topologyKey"]
            if key == "kubernetes.io/hostname":
                size, count = len(scored), matching_on(cluster, constraint, pod, node)
            else:
                size = len({slow.labels_of(n)[key] for n in scored})
                count = counts(cluster, constraint, every, pod).get(slow.labels_of(node)[key], 0)
            total += count * math.log(size + 2) + (constraint["maxSkew"] - 1)
        raw[node["metadata"]["name"]] = math.floor(total) + (total - math.floor(total) >= 0.5)
    low, high = min(raw.values(), default=0), max(raw.values(), default=0)
    finished = {name: 100 * (high + low - score) // high if high else 100 for name, score in raw.items()}
    return [finished.get(n["metadata"]["name"], 0) for n in candidates]
