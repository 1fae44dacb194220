# SPDX-License-Identifier: Apache-2.0
"""Pods that are resized in place: the resources and the status that their nodes give them (source: the kubelet's
`allocation`).

A node takes a resize that fits beside what its other pods were given, defers one that would fit without them, and calls
one infeasible that is larger than itself. What it deferred it looks at again when a pod of it ends, goes or shrinks.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from pumice.cluster.kube.min_resources import pod_usage
from pumice.cluster.kube.quota_usage import qos_class
from pumice.cluster.kube.statuses import timestamp
from pumice.cluster.timers import Timers
from pumice.core.errors import QuantityError
from pumice.core.life.task import ENDED_PHASES
from pumice.core.objects.metadata import Object, section
from pumice.core.objects.pod_template import INFEASIBLE, PENDING
from pumice.core.quantity import quantity_of

PodKey = tuple[str, str]
Room = tuple[int, int]
"""Milli-cpu and bytes of memory."""

ACTUATION_S: Final = 1.0
"""Seconds from the moment at which a node takes a resize until the containers have what was asked for."""
RESIZABLE: Final = ("cpu", "memory")
DEFERRED: Final = "Deferred"
IN_PROGRESS: Final = "PodResizeInProgress"
_KEPT: Final = ("name", "resources", "resizePolicy", "restartPolicy")
_GROUPS: Final = ("containers", "initContainers")
_STATUSES: Final = ("containerStatuses", "initContainerStatuses")


class PodShare(Struct):
    """Request, allocation and present resources of a pod: specs with nothing but resources. `reason`, `message`: why
    its node has not taken the request; `since`: the begin of that refusal, or of the resize under way.
    """

    uid: str
    node: str
    asked: Object
    given: Object
    actual: Object
    priority: int = 0
    generation: int = 0
    reason: str = ""
    message: str = ""
    since: float = 0.0
    began: float = 0.0

    def grows(self) -> bool:
        """Return whether the pod asks for more than its allocation."""
        return any(asked > given for asked, given in zip(needs(self.asked), needs(self.given), strict=True))


class Resizes:
    """The pods of all nodes. Pure, on the given clock."""

    def __init__(self) -> None:
        self._shares: dict[PodKey, PodShare] = {}
        self._of_node: dict[str, dict[PodKey, None]] = {}
        self._room: dict[str, Room] = {}
        self._open: dict[str, None] = {}  # nodes to look at
        self._begun: dict[PodKey, None] = {}  # pods with a resize that an earlier agent accepted
        self._timers: Timers[PodKey] = Timers()

    def node(self, node: Object, *, deleted: bool) -> None:
        """Note a node that exists, or was deleted."""
        name = node["metadata"]["name"]
        if deleted:
            self._room.pop(name, None)
            return
        try:
            amounts = section(section(node, "status"), "allocatable")
            cpu, memory = (quantity_of(amounts.get(each) or "0") for each in RESIZABLE)
        except QuantityError:
            return
        room = cpu.milli_value(), memory.value()
        # Most changes of a node are heartbeats and conditions: they reopen no question.
        if self._room.get(name) != room:
            self._room[name] = room
            self._open[name] = None

    def pod(self, key: PodKey, pod: Object) -> None:
        """Note a pod on a node, as the api has it."""
        status, spec, meta = section(pod, "status"), section(pod, "spec"), pod["metadata"]
        if status.get("phase") in ENDED_PHASES:
            self.gone(key)
            return
        known, asked = self._shares.get(key), sized(spec)
        if known is None or known.uid != meta["uid"]:
            self.gone(key)
            actual, given = _found(asked, status)
            known = PodShare(meta["uid"], spec["nodeName"], asked, given, actual, int(spec.get("priority") or 0))
            self._shares[key] = known
            self._of_node.setdefault(known.node, {})[key] = None
            if not _alike(actual, given):
                self._begun[key] = None
            # No open resize, as nearly always: the node needs no look.
            if _alike(given, asked):
                return
        elif known.asked == asked:
            return
        known.asked, known.generation = asked, int(meta.get("generation") or 0)
        self._open[known.node] = None

    def gone(self, key: PodKey) -> None:
        """Note that a pod holds nothing any more."""
        share = self._shares.pop(key, None)
        self._timers.cancel(key)
        if share is not None:
            pods = self._of_node[share.node]
            del pods[key]
            # there is room again for what the node has deferred
            if any(self._shares[each].reason for each in pods):
                self._open[share.node] = None

    def turn(self, now: float) -> dict[PodKey, tuple[str, ...]]:
        """Check the changes, and return the pods with a new state, each with the containers to restart."""
        news: dict[PodKey, tuple[str, ...]] = {}
        nodes, self._open = self._open, {}
        begun, self._begun = self._begun, {}
        for key in (each for each in begun if each in self._shares):
            self._shares[key].began = now
            self._timers.set(key, now + ACTUATION_S)
        for node in nodes:
            news.update(dict.fromkeys(self._look_at(node, now), ()))
        for key in self._timers.take_due(now):
            share = self._shares[key]
            news[key] = _restarted(share)
            share.actual, share.began = share.given, 0.0
        return news

    def _look_at(self, node: str, now: float) -> list[PodKey]:
        """Decide about the pods of a node that ask for something else than they were given."""
        news: list[PodKey] = []
        waiting = [key for key in self._of_node.get(node, ()) if self._differs(self._shares[key])]
        for key in sorted(waiting, key=self._turn_of):
            share = self._shares[key]
            said = self._verdict(key, share)
            if said is None or said == (share.reason, share.message) != ("", ""):
                continue
            share.reason, share.message = said
            share.since = (share.since or now) if share.reason else 0.0
            if not share.reason and not _alike(share.given, share.asked):
                # Given now, in force when the timer rings: the room of a node is counted by what is given.
                share.given, share.began = share.asked, now
                self._timers.set(key, now + ACTUATION_S)
            news.append(key)
        return news

    @staticmethod
    def _differs(share: PodShare) -> bool:
        return not _alike(share.asked, share.given) or bool(share.reason)

    def _turn_of(self, key: PodKey) -> tuple[bool, int, bool, float, PodKey]:
        """Return the sort key: pods that do not grow first, then by priority, class of service and time."""
        share = self._shares[key]
        # What was refused first is asked first; a request that is new is behind all of them.
        late = share.since or float("inf")
        return share.grows(), -share.priority, qos_class(share.asked) != "Guaranteed", late, key

    def _verdict(self, key: PodKey, share: PodShare) -> tuple[str, str] | None:
        """Return reason and message, both empty where the node takes the resize; None for an unknown node."""
        room = self._room.get(share.node)
        if room is None:
            return None
        asked = needs(share.asked)
        # Memory before cpu: where both are too much, the kubelet names memory (its canResizePod).
        for name, its, most in reversed(list(zip(RESIZABLE, asked, room, strict=True))):
            if its > most:
                why = f"Node didn't have enough capacity: {name}, requested: {its}, capacity: {most}"
                return INFEASIBLE, why
        # less fits always, even where the node is too full
        if not share.grows():
            return "", ""
        others = [needs(self._shares[each].given) for each in self._of_node[share.node] if each != key]
        for place, name in enumerate(RESIZABLE):
            used = sum(each[place] for each in others)
            if asked[place] + used > room[place]:
                told = f"{name}, requested: {asked[place]}, used: {used}, capacity: {room[place]}"
                return DEFERRED, f"Node didn't have enough resource: {told}"
        return "", ""

    def dress(self, key: PodKey, status: Object) -> None:
        """Write the resources of running containers and the progress of a resize into a status."""
        share = self._shares.get(key)
        if share is None:
            return
        for group, statuses in zip(_GROUPS, _STATUSES, strict=True):
            actual, given = ({each["name"]: each for each in spec[group]} for spec in (share.actual, share.given))
            for each in status.get(statuses) or ():
                if "running" in each["state"] and each["name"] in actual:
                    each["resources"] = section(actual[each["name"]], "resources")
                    if allocated := section(section(given[each["name"]], "resources"), "requests"):
                        each["allocatedResources"] = allocated
        if "conditions" in status:
            others = [each for each in status["conditions"] if each["type"] not in (PENDING, IN_PROGRESS)]
            status["conditions"] = others if status.get("phase") in ENDED_PHASES else [*others, *_conditions(share)]

    def next_due(self) -> float | None:
        """Return when a node has carried out a resize."""
        return self._timers.next_due()

    def __len__(self) -> int:
        return len(self._timers)


def sized(spec: Object) -> Object:
    """Return the spec with only names and resources."""
    found: Object = {
        group: [{name: each[name] for name in _KEPT if name in each} for each in spec.get(group) or ()]
        for group in _GROUPS
    }
    return {**found, "overhead": section(spec, "overhead")}


def needs(spec: Object) -> Room:
    """Return the requests of a pod."""
    usage = pod_usage(spec)
    cpu, memory = usage.get("requests.cpu"), usage.get("requests.memory")
    return 0 if cpu is None else cpu.milli_value(), 0 if memory is None else memory.value()


def _found(asked: Object, status: Object) -> tuple[Object, Object]:
    """Return the pod's present and allocated resources, from its status; its request where the status has none."""
    actual, given = dict(asked), dict(asked)
    for group, statuses in zip(_GROUPS, _STATUSES, strict=True):
        said = {each.get("name"): each for each in status.get(statuses) or ()}
        actual[group] = [_has(each, said.get(each["name"]) or {}) for each in asked[group]]
        given[group] = [_was_given(each, said.get(each["name"]) or {}) for each in asked[group]]
    return actual, given


def _has(container: Object, said: Object) -> Object:
    return container if said.get("resources") is None else {**container, "resources": said["resources"]}


def _was_given(container: Object, said: Object) -> Object:
    """Return the resources in a status. A status shows only present limits: they go with the requests."""
    allocated = said.get("allocatedResources")
    if allocated is None or allocated == section(section(container, "resources"), "requests"):
        return container if allocated is not None else _has(container, said)
    return {**container, "resources": {**section(said, "resources"), "requests": allocated}}


def _restarted(share: PodShare) -> tuple[str, ...]:
    """Return the containers whose policy for a changed resource is a restart."""
    names: list[str] = []
    for group in _GROUPS:
        for was, its in zip(share.actual[group], share.given[group], strict=True):
            policies = its.get("resizePolicy") or ()
            wanted = [each["resourceName"] for each in policies if each.get("restartPolicy") == "RestartContainer"]
            if any(_amounts(was, name) != _amounts(its, name) for name in wanted):
                names.append(its["name"])
    return tuple(names)


def _alike(one: Object, other: Object) -> bool:
    """Return whether two specs have the same cpu and memory in each container."""
    return all(
        _amounts(its, name) == _amounts(theirs, name)
        for group in _GROUPS
        for its, theirs in zip(one[group], other[group], strict=True)
        for name in RESIZABLE
    )


def _amounts(container: Object, name: str) -> tuple[Any, Any]:
    resources = section(container, "resources")
    return section(resources, "requests").get(name), section(resources, "limits").get(name)


def _conditions(share: PodShare) -> list[Object]:
    found: list[Object] = []
    seen = {"observedGeneration": share.generation} if share.generation else {}
    if share.reason:
        why = {"reason": share.reason, "message": share.message, "lastTransitionTime": timestamp(share.since)}
        found.append({"type": PENDING, "status": "True", **why, **seen})
    if share.began:
        found.append({"type": IN_PROGRESS, "status": "True", "lastTransitionTime": timestamp(share.began), **seen})
    return found
