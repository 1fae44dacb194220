# SPDX-License-Identifier: Apache-2.0
"""Events of a cluster about its pods and PodGroups, for users of kubectl, as a pure machine.

It derives them from the objects themselves: what was seen of one before and what is seen now. The schedulers' are
worded as Volcano's cache and evictor word them (`pkg/scheduler/cache/cache.go`) and as kube-scheduler does, the node
agent's as the kubelet does. Events have names made from what they say, so saying it again, after a restart for
instance, is refused and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final

from pumice.cluster.kube.events import (
    EVICTED,
    Said,
    conditions_of,
    event,
    of_evicted,
    of_group,
    of_group_evicted,
    of_placed,
    of_waiting,
)
from pumice.cluster.machine import Machine
from pumice.cluster.timers import Timers
from pumice.core.default_scheduler.profile import NAME as DEFAULT_SCHEDULER
from pumice.core.messages.commands import ApiRequest, Create, Delete, Patch
from pumice.core.objects.metadata import Object, section, text_map
from pumice.storage.codec import pack

Name = tuple[str, str]

USER: Final = "pod-events"
KUBELET: Final = "kubelet"
CONTROLLER: Final = "vc-controller-manager"
GROUP_NAME: Final = "scheduling.k8s.io/group-name"
KEPT_S: Final = 3600.0
"""Seconds that an event is kept by default (kube-apiserver's --event-ttl)."""


class PodEventsMachine(Machine):
    """Reports changes of pods and PodGroups in Event objects. `scheduler`: report for it too, not for the node agents
    alone. `kept_s`: how long events are kept. An event that cannot be written is dropped.
    """

    kinds = ("Event", "PodGroup", "Pod")  # what has been said before comes first

    def __init__(self, *, scheduler: bool = True, kept_s: float = KEPT_S) -> None:
        self._scheduler = scheduler
        self._kept_s = kept_s
        self._said: dict[tuple[str, Name], tuple[Said, ...]] = {}
        self._groups: dict[Name, Object] = {}
        self._news: list[tuple[Object, Said, bool]] = []
        self._counts: dict[Name, int] = {}
        self._kept: Timers[Name] = Timers()
        self._fresh: dict[Name, None] = {}

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        name = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        if kind == "Event":
            if deleted:
                self._fresh.pop(name, None)
                self._counts.pop(name, None)
                self._kept.cancel(name)
            else:
                self._fresh[name] = None
                self._counts[name] = obj.get("count") or 1
        elif deleted:
            self._forget(kind, name)
        elif kind == "Pod":
            self._pod(name, obj)
        elif self._scheduler:
            self._groups[name] = obj
            self._about(kind, name, obj, of_group(obj))
            for job in _jobs_of(obj):
                self._about("Job", name, job, _of_pending(job, obj))

    def _forget(self, kind: str, name: Name) -> None:
        self._said.pop((kind, name), None)
        if kind == "PodGroup":
            self._said.pop(("Job", name), None)
            self._groups.pop(name, None)

    def _pod(self, name: Name, pod: Object) -> None:
        """Report on a pod; the PodGroup of an evicted pod gets an event as well."""
        if self._about("Pod", name, pod, self._of_pod(pod)) and (why := _evicted_for(pod)):
            group = text_map(pod["metadata"].get("annotations")).get(GROUP_NAME, "")
            if (known := self._groups.get((name[0], group))) is not None:
                self._news.append((known, of_group_evicted(why), False))

    def _about(self, kind: str, name: Name, obj: Object, sayings: Iterator[Said]) -> bool:
        """Return whether the event is new. `name`: of the object in which the change was seen."""
        # What an object says when it is seen first may have been written before a restart, and must not count once
        # more.
        first = (kind, name) not in self._said
        before, now = self._said.get((kind, name), ()), tuple(sayings)
        news = [(obj, said, first) for said in now if said not in before]
        self._news += news
        self._said[(kind, name)] = now
        return bool(news)

    def _of_pod(self, pod: Object) -> Iterator[Said]:
        """Yield all events for the pod in its present state."""
        if self._scheduler:
            yield from _of_scheduling(pod)
        if section(pod, "spec").get("nodeName"):
            yield from _of_running(pod)

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        for name in self._fresh:
            self._kept.set(name, now + self._kept_s)
        self._fresh.clear()
        news, self._news = self._news, []
        requests = [request for each in news if (request := self._saying(*each, now)) is not None]
        return requests + [Delete("Event", *name, user=USER) for name in self._kept.take_due(now)]

    def _saying(self, about: Object, said: Said, first: bool, now: float) -> ApiRequest | None:
        """Return a new event, or one more of it; None where it was written before this process began."""
        obj = _event(about, said, now)
        name = (obj["metadata"]["namespace"], obj["metadata"]["name"])
        if name not in self._counts:
            self._counts[name] = 1
            return Create(pack(obj), user=USER)
        if first:
            return None
        self._counts[name] += 1
        again = {"count": self._counts[name], "lastTimestamp": obj["lastTimestamp"]}
        return Patch("Event", *name, pack(again), user=USER)

    def next_due(self) -> float | None:
        """Return the time when `step` has work without any change; None for never."""
        return self._kept.next_due()


def _of_scheduling(pod: Object) -> Iterator[Said]:
    meta, spec = pod["metadata"], section(pod, "spec")
    node, conditions = spec.get("nodeName"), conditions_of(pod)
    said_by = (DEFAULT_SCHEDULER,) if spec.get("schedulerName") == DEFAULT_SCHEDULER else ()
    if node:
        yield of_placed(meta["namespace"], meta["name"], node, *said_by)
    elif (condition := conditions.get("PodScheduled", {})).get("status") == "False" and condition.get("message"):
        yield of_waiting(condition["message"], *said_by)
    if str(conditions.get("DisruptionTarget", {}).get("message")).startswith(f"{DEFAULT_SCHEDULER}: "):
        yield Said("Preempted", f"Preempted by a pod of higher priority on node {node}", DEFAULT_SCHEDULER)
    if (condition := conditions.get("Ready", {})).get("reason") == "Evict":
        yield of_evicted(condition.get("message", ""))


def _evicted_for(pod: Object) -> str:
    condition = conditions_of(pod).get("Ready", {})
    return str(condition.get("message") or "").removeprefix(EVICTED) if condition.get("reason") == "Evict" else ""


def _jobs_of(group: Object) -> Iterator[Object]:
    """Yield the pod's Volcano Job, as far as it is known."""
    meta = group["metadata"]
    for owner in meta.get("ownerReferences") or ():
        if owner.get("controller") and owner["kind"] == "Job":
            whose = {"name": owner["name"], "namespace": meta["namespace"], "uid": owner["uid"]}
            yield {"apiVersion": owner["apiVersion"], "kind": "Job", "metadata": whose}


def _of_pending(job: Object, group: Object) -> Iterator[Said]:
    """Yield the message of its PodGroup's newest condition, unless that is scheduled (Volcano's
    `recordPodGroupEvent`).
    """
    held = [each for each in section(group, "status").get("conditions") or () if each.get("status") == "True"]
    # As texts: times in UTC of one form (RFC 3339) sort as they come.
    latest = max(held, key=lambda each: str(each.get("lastTransitionTime") or ""), default=None)
    if latest is not None and latest.get("type") != "Scheduled":
        where = f"{job['metadata']['namespace']}:{job['metadata']['name']}"
        message = f"PodGroup {where} {str(latest.get('type')).lower()}, reason: {latest.get('message') or ''}"
        yield Said("PodGroupPending", message, CONTROLLER, warning=True)


def _of_running(pod: Object) -> Iterator[Said]:
    names = [str(container.get("name")) for container in section(pod, "spec").get("containers") or ()]
    status = section(pod, "status")
    if status.get("startTime") or status.get("phase") not in (None, "Pending"):
        yield from (Said("Started", f"Started container {name}", KUBELET) for name in names)
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        if section(section(container, "state"), "waiting").get("reason") == "CrashLoopBackOff":
            whose = f"{pod['metadata']['name']}_{pod['metadata']['namespace']}({pod['metadata']['uid']})"
            message = f"Back-off restarting failed container {container.get('name')} in pod {whose}"
            yield Said("BackOff", message, KUBELET, warning=True)
    if pod["metadata"].get("deletionTimestamp") and status.get("phase") == "Running":
        yield from (Said("Killing", f"Stopping container {name}", KUBELET) for name in names)


def _event(about: Object, said: Said, now: float) -> Object:
    obj = event(about, said.reason, said.message, now, source=said.source, warning=said.warning)
    meta = about["metadata"]
    # By the uid, too: a pod made anew under the name of one that has gone says all of it anew.
    mark = blake2b(f"{meta['uid']} {said.reason} {said.message}".encode(), digest_size=8).hexdigest()
    obj["metadata"] = {"name": f"{meta['name']}.{mark}", "namespace": meta["namespace"]}
    if said.source == KUBELET:
        obj["source"]["host"] = section(about, "spec")["nodeName"]
    return obj
