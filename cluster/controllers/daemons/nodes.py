"""On which nodes the pods of a DaemonSet belong, and what they are like there.

Source: Kubernetes' daemon controller, `NodeShouldRunDaemonPod` and `daemon/util`.
"""

from __future__ import annotations

from typing import Final

from pumice.cluster.controllers.pods_of import pod_from
from pumice.cluster.controllers.revisions import POD_HASH, hash_of
from pumice.core.kube.node_selector import NODE_NAME, REQUIRED
from pumice.core.kube.selectors import SelectorError, requirement
from pumice.core.kube.taints import tolerated
from pumice.core.objects.metadata import Object, section, text_map

_CONDITIONS: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


def tolerations_of(spec: Object) -> list[Object]:
    """Those of a pod spec, and those that every such pod has: the state of a node does not drive it away."""
    names = [*_CONDITIONS, *([("network-unavailable", "NoSchedule")] if spec.get("hostNetwork") else [])]
    added: list[Object] = [
        {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect} for name, effect in names
    ]
    given: list[Object] = spec.get("tolerations") or []
    return [*given, *(each for each in added if each not in given)]


def runs_on(owner: Object, node: Object) -> tuple[bool, bool]:
    """Whether a pod is to come to the node, and whether one that is there may stay."""
    spec = section(owner["spec"]["template"], "spec")
    meta = node["metadata"]
    if spec.get("nodeName") not in (None, "", meta["name"]) or not _selects(spec, node):
        return False, False
    taints: list[Object] = section(node, "spec").get("taints") or []
    tolerations = tolerations_of(spec)
    untolerated = {taint.get("effect") for taint in taints if not tolerated(tolerations, taint)}
    return untolerated.isdisjoint(("NoSchedule", "NoExecute")), "NoExecute" not in untolerated


def _selects(spec: Object, node: Object) -> bool:
    labels = text_map(node["metadata"].get("labels"))
    if any(labels.get(key) != value for key, value in text_map(spec.get("nodeSelector")).items()):
        return False
    required: Object | None = section(section(spec, "affinity"), "nodeAffinity").get(REQUIRED)
    if required is None:
        return True
    return any(
        _term_selects(term, node["metadata"]["name"], labels) for term in required.get("nodeSelectorTerms") or ()
    )


def _term_selects(term: Object, name: str, labels: dict[str, str]) -> bool:
    expressions: list[Object] = term.get("matchExpressions") or []
    fields: list[Object] = term.get("matchFields") or []
    try:
        wanted = [requirement(each) for each in expressions]
    except SelectorError:
        return False
    if not (expressions or fields) or not all(each.accepts(labels.get(each.key)) for each in wanted):
        return False
    return all(
        each.get("key") == NODE_NAME and (name in (each.get("values") or ())) == (each.get("operator") == "In")
        for each in fields
    )


def node_of(pod: Object) -> str:
    """The node of a pod: where it is, or the one that it asks for."""
    spec = section(pod, "spec")
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    required = section(section(section(spec, "affinity"), "nodeAffinity"), REQUIRED)
    for term in required.get("nodeSelectorTerms") or ():
        for each in term.get("matchFields") or ():
            if each.get("key") == NODE_NAME and len(each.get("values") or ()) == 1:
                return str(each["values"][0])
    return ""


def pod_for(owner: Object, revision: Object, node: str) -> Object:
    """The pod of a node: the scheduler puts it there, and nowhere else."""
    pod = pod_from(owner["spec"]["template"], owner)
    spec = pod["spec"]
    pod["metadata"]["labels"] |= {
        POD_HASH: hash_of(revision),
        "pod-template-generation": str(owner["metadata"].get("generation", 1)),
    }
    affinity = section(spec, "affinity")
    here = {"matchFields": [{"key": NODE_NAME, "operator": "In", "values": [node]}]}
    to_nodes = {**section(affinity, "nodeAffinity"), REQUIRED: {"nodeSelectorTerms": [here]}}
    spec["affinity"] = {**affinity, "nodeAffinity": to_nodes}
    spec["tolerations"] = tolerations_of(spec)
    return pod
