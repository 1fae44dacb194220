"""Job plugin env: the place of a pod in its task (source: Volcano's `plugins/env`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.controllers.jobs.plugins.plugin import with_more
from pumice.core.objects.metadata import Object

_NAMES: Final = ("VK_TASK_INDEX", "VC_TASK_INDEX")


class EnvPlugin:
    """VK_TASK_INDEX and VC_TASK_INDEX."""

    def __init__(self, job: Object, arguments: Sequence[str]) -> None:
        del job, arguments

    def pod(self, pod: Object, task: Object, index: int) -> Object:
        """The index-th pod of the task, with what the plugin adds; the pod given is not changed."""
        del task
        return with_more(pod, "env", [{"name": name, "value": str(index)} for name in _NAMES])

    def objects(self) -> Sequence[Object]:
        """What is created for the Job, and deleted when its pods are."""
        return ()
