# SPDX-License-Identifier: Apache-2.0
"""The pods of a Job: names, labels, annotations, owners (source: Volcano's `createJobPod`)."""

from __future__ import annotations

from typing import Final

from pumice.cluster.controllers import job_keys as keys
from pumice.cluster.controllers.pods_of import reference
from pumice.core.objects.metadata import Object, annotations_of, labels_of, rows, section

_FROM_JOB_ANNOTATIONS: Final = (keys.PREEMPTABLE, keys.COOLDOWN_TIME, keys.REVOCABLE_ZONE)
_FROM_JOB_LABELS: Final = (keys.PREEMPTABLE, keys.COOLDOWN_TIME)


def pod_name(job: str, task: str, index: int) -> str:
    """Return the name of the index-th pod of a task."""
    return f"{job}-{task}-{index}"


def pod_group_name(job: Object) -> str:
    """Return the name of a Job's PodGroup."""
    return f"{job['metadata']['name']}-{job['metadata']['uid']}"


def claim_name(job: Object, number: int, volume: Object) -> str:
    """Return the claim of a Job's volume: the one that it names, or the one made for it."""
    # Volcano draws 12 characters and writes the name into the spec; from the uid it is the same in every run.
    return volume.get("volumeClaimName") or f"{job['metadata']['name']}-pvc-{job['metadata']['uid'][:8]}-{number}"


class PodMaker:
    """Makes the pods of one task; their common parts are made once and shared, so the pods must not be changed."""

    def __init__(self, job: Object, task: Object) -> None:
        self._job, self._task = job, task
        self._template: Object = task.get("template") or {}
        self._annotations = self._shared_annotations()
        self._labels = self._shared_labels()
        self._owners = [reference(job)]
        self._spec = self._shared_spec()

    def make(self, index: int) -> Object:
        """Return the index-th pod, before plugins change it."""
        number = str(index)
        labels = {**self._labels, keys.TASK_INDEX: number}
        partition: Object | None = self._task.get("partitionPolicy")
        if partition is not None:
            # Pods i*size to (i+1)*size-1 are one partition, whichever of them exist: a pod made anew rejoins its own.
            labels[keys.PARTITION_ID] = str(index // max(partition.get("partitionSize") or 0, 1))
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": pod_name(self._job["metadata"]["name"], self._task["name"], index),
                "namespace": self._job["metadata"]["namespace"],
                "labels": labels,
                "annotations": {**self._annotations, keys.TASK_INDEX: number},
                "ownerReferences": self._owners,
            },
            "spec": self._spec,
        }

    def _shared_annotations(self) -> dict[str, str]:
        meta, spec, status = self._job["metadata"], self._job["spec"], section(self._job, "status")
        given: dict[str, str] = meta.get("annotations") or {}
        inherited = {name: value for name, value in given.items() if name.startswith(keys.PUMICE)}
        own = annotations_of(self._template)
        shared = {
            **inherited,
            **own,
            keys.TASK_SPEC: self._task["name"],
            keys.GROUP_NAME: pod_group_name(self._job),
            keys.JOB_NAME: meta["name"],
            keys.QUEUE_NAME: spec["queue"],
            keys.JOB_VERSION: str(status.get("version", 0)),
            keys.TEMPLATE_UID: f"{meta['name']}-{self._task['name']}",
            keys.JOB_RETRY_COUNT: str(status.get("retryCount", 0)),
        }
        if policy := self._task.get("topologyPolicy"):
            shared[keys.NUMA_POLICY] = policy
        shared.update({name: given[name] for name in _FROM_JOB_ANNOTATIONS if name in given})
        # createJobPod copies one of the two: with both on the Job, max-unavailable is lost.
        budget = keys.BUDGET_MIN if keys.BUDGET_MIN in given else keys.BUDGET_MAX
        if budget in given:
            shared[budget] = given[budget]
        return shared

    def _shared_labels(self) -> dict[str, str]:
        meta = self._job["metadata"]
        given: dict[str, str] = meta.get("labels") or {}
        own = labels_of(self._template)
        return {
            **own,
            keys.JOB_NAME: meta["name"],
            keys.TASK_SPEC: self._task["name"],
            keys.JOB_NAMESPACE: meta["namespace"],
            keys.QUEUE_NAME: self._job["spec"]["queue"],
            **{name: given[name] for name in _FROM_JOB_LABELS if name in given},
        }

    def _shared_spec(self) -> Object:
        job_spec: Object = self._job["spec"]
        spec: Object = dict(self._template.get("spec") or {})
        spec["schedulerName"] = spec.get("schedulerName") or job_spec.get("schedulerName") or "volcano"
        if not spec.get("priorityClassName") and job_spec.get("priorityClassName"):
            spec["priorityClassName"] = job_spec["priorityClassName"]
        claims: set[str] = set()
        for number, volume in enumerate(rows(job_spec, "volumes")):
            claim = claim_name(self._job, number, volume)
            # createJobPod mounts a claim once: of two volumes that name the same, the second is left out.
            if claim in claims:
                continue
            claims.add(claim)
            _mount(spec, f"{self._job['metadata']['name']}-volume-{number}", claim, volume["mountPath"])
        return spec


def _mount(spec: Object, name: str, claim: str, path: str) -> None:
    source = {"persistentVolumeClaim": {"claimName": claim}}
    spec["volumes"] = [*(spec.get("volumes") or ()), {"name": name, **source}]
    mount = {"mountPath": path, "name": name}
    # Init containers see no volume of the Job: createJobPod mounts into containers alone.
    spec["containers"] = [
        {**each, "volumeMounts": [*(each.get("volumeMounts") or ()), mount]} for each in spec.get("containers") or ()
    ]
