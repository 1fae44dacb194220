"""The pods of a StatefulSet, who are told apart by a number, and the claims that go with each."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from pumice.cluster.controllers.pods_of import is_leaving, pod_from, reference
from pumice.cluster.controllers.revisions import POD_HASH, template_of
from pumice.cluster.kube.budgets import is_ready
from pumice.core.objects.metadata import Object, section, text_map
from pumice.core.whole_numbers import whole_number

POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"


def first_ordinal(owner: Object) -> int:
    """The number of its first pod."""
    return section(section(owner, "spec"), "ordinals").get("start") or 0


def ordinal_of(owner: Object, pod: Object) -> int | None:
    """A pod's number; None for a name that is not of this set."""
    prefix = f"{owner['metadata']['name']}-"
    name: str = pod["metadata"]["name"]
    return whole_number(name.removeprefix(prefix)) if name.startswith(prefix) else None


def pod_of_set(owner: Object, revision: Object, ordinal: int) -> Object:
    """The pod of a number, of the template of a revision."""
    name = f"{owner['metadata']['name']}-{ordinal}"
    pod = pod_from(template_of(revision), owner, name)
    labels, spec = pod["metadata"]["labels"], pod["spec"]
    labels |= {POD_NAME: name, POD_INDEX: str(ordinal), POD_HASH: revision["metadata"]["name"]}
    spec["hostname"] = name
    if owner["spec"].get("serviceName"):
        spec["subdomain"] = owner["spec"]["serviceName"]
    claimed = {each["metadata"]["name"]: claim_name(owner, each, ordinal) for each in _templates(owner)}
    others = [volume for volume in spec.get("volumes") or () if volume.get("name") not in claimed]
    own = [
        {"name": volume, "persistentVolumeClaim": {"claimName": claim, "readOnly": False}}
        for volume, claim in claimed.items()
    ]
    if claimed:
        spec["volumes"] = [*own, *others]
    return pod


def claim_name(owner: Object, template: Object, ordinal: int) -> str:
    """Of the claim of a pod."""
    return f"{template['metadata']['name']}-{owner['metadata']['name']}-{ordinal}"


def claims_of(owner: Object, ordinal: int) -> list[Object]:
    """The claims that a pod needs; they outlive the set unless its retention policy says otherwise."""
    found: list[Object] = []
    kept = section(owner["spec"], "persistentVolumeClaimRetentionPolicy").get("whenDeleted") != "Delete"
    labels = text_map(section(owner["spec"], "selector").get("matchLabels"))
    for template in _templates(owner):
        meta = template["metadata"]
        made: Object = {
            "name": claim_name(owner, template, ordinal),
            "namespace": owner["metadata"]["namespace"],
            "labels": {**text_map(meta.get("labels")), **labels},
            "annotations": dict(text_map(meta.get("annotations"))),
        }
        if not kept:
            made["ownerReferences"] = [reference(owner)]
        spec = section(template, "spec")
        found.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": made, "spec": spec})
    return found


def missing_claims(owner: Object, ordinal: int, there: Container[tuple[str, str]]) -> list[Object]:
    """Those that are not there yet."""
    wanted = claims_of(owner, ordinal)
    return [each for each in wanted if (each["metadata"]["namespace"], each["metadata"]["name"]) not in there]


def is_running_and_ready(pod: Object) -> bool:
    """Whether it runs, is ready and stays."""
    return section(pod, "status").get("phase") == "Running" and is_ready(pod) and not is_leaving(pod)


def _templates(owner: Object) -> list[Object]:
    found: list[Object] = owner["spec"].get("volumeClaimTemplates") or []
    return found
