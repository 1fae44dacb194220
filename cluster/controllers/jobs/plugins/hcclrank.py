"""Job plugin hcclrank: the rank of a pod among Ascend cards (source: Volcano's `plugins/hcclrank`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.controllers.jobs.plugins.plugin import task_named
from pumice.cluster.kube.go_flags import Flag, parsed_flags
from pumice.core.objects.metadata import Object, text_map

RANK: Final = "hccl/rankIndex"
_FLAGS: Final[dict[str, Flag]] = {"master": "master", "worker": "worker"}


class HcclrankPlugin:
    """What the variable RANK of its containers says, else masters first."""

    def __init__(self, job: Object, arguments: Sequence[str]) -> None:
        self._flags = parsed_flags(arguments, _FLAGS)
        master = task_named(job, str(self._flags["master"]))
        self._masters = int(master.get("replicas") or 0) if master is not None else 0

    def pod(self, pod: Object, task: Object, index: int) -> Object:
        """The index-th pod of the task, with what the plugin adds; the pod given is not changed."""
        annotations = text_map(pod["metadata"].get("annotations"))
        rank = annotations.get(RANK) or _told(pod) or self._rank(task["name"], index)
        if not rank:
            return pod
        return {**pod, "metadata": {**pod["metadata"], "annotations": {**annotations, RANK: rank}}}

    def _rank(self, task: str, index: int) -> str:
        if task == self._flags["master"]:
            return str(index)
        return str(self._masters + index) if task == self._flags["worker"] else ""

    def objects(self) -> Sequence[Object]:
        """What is created for the Job, and deleted when its pods are."""
        return ()


def _told(pod: Object) -> str:
    for container in pod["spec"].get("containers") or ():
        for each in container.get("env") or ():
            if each.get("name") == "RANK":
                return str(each.get("value") or "")
    return ""
