"""The PodGroup of a Job (source: Volcano's `createOrUpdatePodGroup`)."""

from __future__ import annotations

from collections.abc import Mapping

from pumice.cluster.controllers import job_keys as keys
from pumice.cluster.controllers.jobs.pods import owner_reference, pod_group_name
from pumice.cluster.kube.min_resources import min_resources
from pumice.core.objects.metadata import Object


def pod_group_of(job: Object, fields: Object) -> Object:
    """A new PodGroup; `fields` are those that follow the Job's."""
    meta, spec = job["metadata"], job["spec"]
    group_spec = fields | {"queue": spec["queue"]}
    if (topology := spec.get("networkTopology")) is not None:
        group_spec["networkTopology"] = _topology(topology)
    return {
        "apiVersion": keys.POD_GROUP_API_VERSION,
        "kind": "PodGroup",
        "metadata": {
            "name": pod_group_name(job),
            "namespace": meta["namespace"],
            "annotations": dict(meta.get("annotations") or {}),
            "labels": dict(meta.get("labels") or {}),
            "ownerReferences": [owner_reference(job)],
        },
        "spec": group_spec,
    }


def followed(job: Object, priorities: Mapping[str, int]) -> Object:
    """The fields of the PodGroup's spec that follow the Job's when it is scaled.

    `priorities` are the values of the priority classes by name.
    """
    spec = job["spec"]
    tasks: list[Object] = spec.get("tasks") or []
    least: int = spec.get("minAvailable", 0)
    fields: Object = {
        "minMember": least,
        "minTaskMember": {task["name"]: task.get("minAvailable", task.get("replicas", 0)) for task in tasks},
        "minResources": min_resources(tasks, least, priorities),
    }
    if spec.get("priorityClassName"):
        fields["priorityClassName"] = spec["priorityClassName"]
    if policies := [_sub_group(task) for task in tasks if task.get("partitionPolicy") is not None]:
        fields["subGroupPolicy"] = policies
    return fields


def _sub_group(task: Object) -> Object:
    partition: Object = task["partitionPolicy"]
    policy: Object = {
        "name": task["name"],
        "subGroupSize": partition.get("partitionSize") or 0,
        "minSubGroups": partition.get("minPartitions") or 0,
        "labelSelector": {"matchLabels": {keys.TASK_SPEC: task["name"]}},
        "matchLabelKeys": [keys.PARTITION_ID],
    }
    if (topology := partition.get("networkTopology")) is not None:
        policy["networkTopology"] = _topology(topology)
    return policy


def _topology(topology: Object) -> Object:
    kept: Object = {"mode": topology.get("mode", "hard")}
    for name in ("highestTierAllowed", "highestTierName"):
        if topology.get(name) not in (None, ""):
            return {**kept, name: topology[name]}
    return kept
