# SPDX-License-Identifier: Apache-2.0
"""Kinds and schedulers that are not served here, and a pure machine that reports them: an event on the object, and
PodScheduled=False on a pod that waits for another scheduler. It runs within the workload controller.

Events have names made from what they are about, so saying it again, after a restart for instance, is refused and
changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import blake2b
from typing import Any, Final

from pumice.cluster.api.kinds import KINDS, MAKERS
from pumice.cluster.kube.events import event
from pumice.cluster.kube.statuses import merge_condition, timestamp
from pumice.cluster.machine import Machine
from pumice.core.default_scheduler.profile import NAME as DEFAULT_SCHEDULER
from pumice.core.messages.commands import ApiRequest, Create, UpdateStatus
from pumice.core.objects.metadata import Object, section
from pumice.core.objects.parts import POD_OF_OTHERS
from pumice.storage.codec import repack

# --- The table of kinds without a controller

UNSERVED: Final = ("CertificateSigningRequest", "HorizontalPodAutoscaler")
"""Kinds (as they are stored) that become pods somewhere, or more of them, or a certificate, and nothing here. A
controller that comes takes its kinds out: a test finds those that are served and stand here.
"""
LEFT: Final = tuple(key for key in sorted(MAKERS) if KINDS[key].is_custom)
"""Of Volcano's own kinds, those that become pods, where they are left to controllers elsewhere."""
SCHEDULER: Final = "volcano"
SERVED: Final = (SCHEDULER, DEFAULT_SCHEDULER)
"""The schedulers of a system."""
NO_CONTROLLER: Final = "no controller for it runs here, so nothing comes of it"


def other_scheduler(pod: Object, served: Collection[str] = SERVED) -> str:
    """Return the scheduler for which a pod without a node waits; "" when that one is served, or the pod waits for
    none.
    """
    spec = section(pod, "spec")
    name: Any = spec.get("schedulerName")
    return name if isinstance(name, str) and name not in served and not spec.get("nodeName") else ""


USER: Final = "workload-controller"
REPORTER: Final = "unserved-controller"
"""Source of the events."""
LONGEST: Final = 230
"""Length of an object's name within that of an event, which has at most 253 characters."""


class UnservedMachine(Machine):
    """Reports objects that no controller or scheduler here serves. `scheduler`: this system runs Volcano's and
    Kubernetes' own, and no other. `left`: kinds whose controllers do not run, and cannot come.
    """

    def __init__(self, *, scheduler: bool = True, left: Sequence[str] = ()) -> None:
        self.kinds = (*UNSERVED, *left, *((POD_OF_OTHERS,) if scheduler else ()))
        self._said: set[str] = set()
        self._news: list[Object] = []

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        uid = obj["metadata"].get("uid") or ""
        if deleted:
            self._said.discard(uid)
        elif uid not in self._said and (kind != "Pod" or other_scheduler(obj)):
            self._said.add(uid)
            self._news.append(obj)

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        news, self._news = self._news, []
        return [request for obj in news for request in _said_of(obj, now)]


def _said_of(obj: Object, now: float) -> list[ApiRequest]:
    if obj["kind"] != "Pod":
        return [_event(obj, "NoController", f"{obj['kind']} ({obj['apiVersion']}): {NO_CONTROLLER}", now)]
    text = f"no scheduler named {other_scheduler(obj)!r} runs here"
    requests = [_event(obj, "NoScheduler", text, now)]
    wanted = {"type": "PodScheduled", "status": "False", "reason": "NoScheduler", "message": text}
    conditions = merge_condition(section(obj, "status").get("conditions") or [], wanted, timestamp(now))
    if conditions is not None:
        meta = obj["metadata"]
        status = repack({"conditions": conditions})
        requests.append(UpdateStatus("Pod", meta["namespace"], meta["name"], status, user=USER))
    return requests


def _event(about: Object, reason: str, message: str, now: float) -> ApiRequest:
    said = event(about, reason, message, now, source=REPORTER, warning=True)
    meta = about["metadata"]
    mark = blake2b(f"{meta['uid']} {message}".encode(), digest_size=8).hexdigest()
    name = f"{meta['name'][:LONGEST].rstrip('.-')}.{mark}"
    said["metadata"] = {"name": name, "namespace": said["metadata"]["namespace"]}
    return Create(repack(said), user=USER)
