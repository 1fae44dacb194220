"""Volume binding, zones and limits, one node at a time over plain objects."""

from pumice.core.objects.metadata import Object
from pumice.core.quantity import parse_quantity
from tests.core.kube import slow

OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"
LOST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
ELSEWHERE = "node(s) had no available volume zone"
FULL = "node(s) exceed max volume count"
BOUND = "pv.kubernetes.io/bind-completed"
SELECTED = "volume.kubernetes.io/selected-node"


def annotations(obj: Object) -> dict[str, str]:
    return slow.part(obj, "metadata", "annotations")


def size(obj: Object, *path: str) -> int:
    return parse_quantity(slow.part(obj, *path)["storage"]).value()


def reaches(volume: Object, node: Object) -> bool:
    required = slow.part(volume, "spec", "nodeAffinity").get("required")
    return required is None or any(slow.term_matches(term, node) for term in slow.listed(required, "nodeSelectorTerms"))


def owner(volume: Object, promised: dict[str, str]) -> str | None:
    """The claim a volume belongs to, "namespace/name"."""
    if volume["metadata"]["name"] in promised:
        return promised[volume["metadata"]["name"]]
    reference = slow.part(volume, "spec", "claimRef")
    return f"{reference['namespace']}/{reference['name']}" if reference else None


def key_of(claim: Object) -> str:
    return f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"


def match(
    claim: Object, volumes: list[Object], node: Object, taken: list[Object], promised: dict[str, str]
) -> Object | None:
    """The volume a claim gets on a node; `volumes` in name order."""
    best: Object | None = None
    for volume in volumes:
        if volume["spec"]["storageClassName"] != claim["spec"]["storageClassName"] or volume in taken:
            continue
        belongs = owner(volume, promised)
        if belongs not in (None, key_of(claim)):
            continue
        if size(volume, "spec", "capacity") < size(claim, "spec", "resources", "requests"):
            continue
        if volume["spec"].get("volumeMode", "Filesystem") != claim["spec"].get("volumeMode", "Filesystem"):
            continue
        if belongs == key_of(claim):
            return volume if reaches(volume, node) else None
        if volume["status"]["phase"] != "Available" or not reaches(volume, node):
            continue
        if not set(slow.listed(claim, "spec", "accessModes")) <= set(slow.listed(volume, "spec", "accessModes")):
            continue
        if best is None or size(volume, "spec", "capacity") < size(best, "spec", "capacity"):
            best = volume
    return best


def can_make(claim: Object, classes: dict[str, Object], node: Object) -> bool:
    known = classes[claim["spec"]["storageClassName"]]
    if known["provisioner"] == "kubernetes.io/no-provisioner":
        return False
    terms = slow.listed(known, "allowedTopologies")
    expressions = [slow.listed(term, "matchLabelExpressions") for term in terms]
    labels = slow.labels_of(node)
    return not terms or any(bool(es) and all(labels.get(e["key"]) in e["values"] for e in es) for es in expressions)


def binding_reasons(claims: list[Object], volumes: list[Object], classes: dict[str, Object], node: Object,
                    promised: dict[str, str], chosen: dict[str, str]) -> str:  # fmt: skip
    """VolumeBinding's filter. `promised`: volume -> claim, `chosen`.

    Claim -> node, both by the session's placements.
    """
    reasons: list[str] = []
    by_name = {volume["metadata"]["name"]: volume for volume in volumes}
    lost = False
    for claim in claims:
        if BOUND in annotations(claim):
            volume = by_name.get(claim["spec"]["volumeName"])
            if volume is None:
                lost = True
                break
            if not reaches(volume, node):
                reasons.append(OUT_OF_REACH)
                break
    waiting = [claim for claim in claims if BOUND not in annotations(claim)]
    if not binds(waiting, volumes, classes, node, promised, chosen):
        reasons.append(NOTHING_TO_BIND)
    return ", ".join([*reasons, *([LOST] if lost else [])])


def binds(waiting: list[Object], volumes: list[Object], classes: dict[str, Object], node: Object,
          promised: dict[str, str], chosen: dict[str, str]) -> bool:  # fmt: skip
    to_make: list[Object] = []
    free: list[Object] = []
    for claim in waiting:
        selected = chosen.get(key_of(claim)) or annotations(claim).get(SELECTED)
        if selected and selected != node["metadata"]["name"]:
            return False
        (to_make if selected else free).append(claim)
    taken: list[Object] = []
    for claim in sorted(free, key=lambda c: size(c, "spec", "resources", "requests")):
        volume = match(claim, volumes, node, taken, promised)
        if volume is None:
            to_make.append(claim)
        else:
            taken.append(volume)
    return all(can_make(claim, classes, node) for claim in to_make)


def elsewhere(claims: list[Object], volumes: list[Object], node: Object) -> bool:
    """VolumeZone's filter."""
    zone, old = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
    labels = slow.labels_of(node)
    if zone not in labels and old not in labels:
        return False
    by_name = {volume["metadata"]["name"]: volume for volume in volumes}
    for claim in claims:
        volume = by_name.get(claim["spec"].get("volumeName", ""))
        for key, value in slow.labels_of(volume).items() if volume else ():
            here = labels.get(key, labels.get(zone) if key == old else None)
            if here not in value.split("__"):
                return True
    return False
