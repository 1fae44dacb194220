"""Pods into tasks: of a pod read lately, only what changes while it lives is read again.

Reading all of it each time, a trace of small jobs (NASA's) takes 1.05 times as long on virtual time.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from pumice.core.objects.metadata import Object, object_key, same_metadata
from pumice.core.objects.pod import is_strange, read_state, read_task
from pumice.core.objects.resized import counted_spec
from pumice.core.state.tasks import NOWHERE

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task, TemplateTable

LATELY = 4096
"""So many pods are remembered: as many objects as the codec keeps decoded, so that few are kept for this alone."""


class PodReader:
    """Remembers the last pods as they were read, by key. What it remembers counts only for the very task that was made
    of it, so whatever else happens to a task cannot make it stale. `resized`: pods that count for other than their spec
    says, by key; `counts_status`: whether they do (`pumice.core.objects.resized`).
    """

    def __init__(self, templates: TemplateTable) -> None:
        self._templates = templates
        self.counts_status = True
        self.resized: dict[str, Object] = {}
        self._lately: OrderedDict[str, tuple[Task, Object]] = OrderedDict()

    def read(self, pod: Object, known: Task | None) -> Task:
        """The pod's task; `known`: the task of that key so far, which is returned when it was made of this very object.

        Raises QuantityError for a malformed request.
        """
        remembered = self._lately.get(known.key) if known is not None else None
        asks, was_resized = self._counted(pod)
        if known is None or remembered is None or remembered[0] is not known or asks is not None or was_resized:
            task = read_task(pod, NOWHERE, self._templates, asks if self.counts_status else None)
        elif pod is remembered[1]:
            task = known
        elif _asks_alike(remembered[1], pod):
            task = read_state(known, pod)
        else:
            task = read_task(pod, NOWHERE, self._templates)
        self._lately.pop(task.key, None)  # what is read now is the newest, whatever it was before
        self._lately[task.key] = (task, pod)
        if len(self._lately) > LATELY:
            self._lately.popitem(last=False)
        return task

    def gone(self, key: str) -> None:
        """The pod is no more."""
        self.resized.pop(key, None)

    def _counted(self, pod: Object) -> tuple[Object | None, bool]:
        """The spec that counts where it is not the pod's own, and whether it was not so far."""
        key, asks = object_key(pod), counted_spec(pod)
        before = self.resized.pop(key, None)
        if asks is (pod.get("spec") or asks):
            return None, before is not None
        self.resized[key] = pod
        return asks, True


def _asks_alike(before: Object, pod: Object) -> bool:
    """Whether it is the same pod and asks for the same: only its state may differ."""
    asked, asks = before.get("spec"), pod.get("spec")
    return (asked is asks or _asks_as(asked or {}, asks or {})) and same_metadata(before, pod)


def _asks_as(asked: Object, asks: Object) -> bool:
    if is_strange(asked):  # with a node it is in its job
        return asked == asks
    return asked == asks or {**asked, "nodeName": asks.get("nodeName")} == asks
