# SPDX-License-Identifier: Apache-2.0
"""PodGroups: defaults and rules of Volcano's webhooks (`webhooks/admission/podgroups`); single fields: its CRD."""

from __future__ import annotations

from pumice.cluster.api.admission.amounts import amount_problems, settle_amounts
from pumice.cluster.api.admission.queues import state_problems
from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.refusals import Cause, forbidden_field, invalid_value, missing
from pumice.core.objects.metadata import Object, annotations_of, rows, section
from pumice.core.objects.pod import QUEUE_NAME


def default(pod_group: Object, lookup: Lookup) -> None:
    """Fill in the queue (`default`, or the one that its namespace names) and the phase Pending."""
    spec: Object = pod_group.setdefault("spec", {})
    if not spec.get("queue"):
        # The definition's default comes before the webhook, which looks at `default` alone (createPodGroupPatch).
        spec["queue"] = "default"
    if spec["queue"] == "default":
        namespace = lookup.get("Namespace", "", pod_group["metadata"]["namespace"]) or {}
        spec["queue"] = annotations_of(namespace).get(QUEUE_NAME, "default")
    if spec.get("minResources"):
        settle_amounts(spec["minResources"])
    status: Object = pod_group.setdefault("status", {})
    if not status.get("phase"):
        status["phase"] = "Pending"


def validate(pod_group: Object, lookup: Lookup) -> list[Cause]:
    """Check that the queue exists and is open, numbers are not negative, a topology names its tier in one way."""
    spec = section(pod_group, "spec")
    return numbers(spec) + _queue(spec, lookup)


def _queue(spec: Object, lookup: Lookup) -> list[Cause]:
    name: str = spec.get("queue") or "default"
    queue = lookup.get("Queue", "", name)
    if queue is None:
        return [missing("spec.queue", name, f'queue "{name}" does not exist')]
    return state_problems(queue, "PodGroup")


def numbers(spec: Object) -> list[Cause]:
    """Return the numbers below zero."""
    found: list[Cause] = []
    for task, count in section(spec, "minTaskMember").items():
        if count < 0:
            found.append(invalid_value(f"spec.minTaskMember[{task}]", count, "must be greater than or equal to 0"))
    found += amount_problems(section(spec, "minResources"), "spec.minResources")
    found += topology_problems(spec, "spec.networkTopology")
    for index, policy in enumerate(rows(spec, "subGroupPolicy")):
        path = f"spec.subGroupPolicy[{index}]"
        found += topology_problems(policy, f"{path}.networkTopology")
    return found


def topology_problems(holder: Object, path: str) -> list[Cause]:
    """Return a problem when both `highestTierAllowed` and `highestTierName` are set."""
    topology = section(holder, "networkTopology")
    if topology.get("highestTierAllowed") is not None and topology.get("highestTierName"):
        return [forbidden_field(path, "must not specify 'highestTierAllowed' and 'highestTierName' simultaneously")]
    return []
