# SPDX-License-Identifier: Apache-2.0
"""Objects that controllers make of Jobs, Deployments, other workloads and plain pods: pods and PodGroups, for one cycle
to see.

The controllers' own machines do it, on the objects that were handed in, with an API that only takes note. What is there
already is not made again, nothing is taken away, and no time passes. A PodGroup stays Pending: to admit it is the
cycle's; pods come with it immediately, so that the one cycle which is asked about sees them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from pumice.belonging import group_of
from pumice.cluster.api.admission.quotas import KIND as QUOTA
from pumice.cluster.api.admission.quotas import over_quota, with_taken
from pumice.cluster.api.kinds import KINDS, MAKERS, Kind
from pumice.cluster.controllers.groups import needs_group
from pumice.cluster.controllers.jobs.status import troubled
from pumice.cluster.controllers.pods_of import controller_of
from pumice.cluster.kernel.machine_host import MachineHost, rest
from pumice.cluster.kernel.roster import JOBS, POD_GROUPS, RULES, WORKLOADS, Surroundings
from pumice.cluster.kernel.turns import Turns
from pumice.cluster.kube.merge_patch import merge_patch
from pumice.core.messages.commands import ApiRequest, Create, Patch, UpdateStatus
from pumice.core.messages.replies import Accepted, ApiReply, Refused
from pumice.core.objects.metadata import Object, section
from pumice.core.objects.parts import VOLCANO_JOB, kind_of
from pumice.questions.measures.jobs import OVER
from pumice.questions.oneshot.between import object_key
from pumice.questions.oneshot.identity import Identity, identity, stored_as
from pumice.questions.oneshot.prepare import GivenObjects, admitted, completed
from pumice.storage.codec import pack, unpack
from pumice.units import format_moment

NO_TIME: Final = "nothing is made of it: Jobs come of it as time passes, and here none does (`pumice run` has time)"
ROUNDS: Final = 100
"""Turns of the machines; a Deployment needs four."""


@dataclass(slots=True)
class Expansion:
    """The objects with the made ones, in order of arrival, and remarks about them."""

    objects: list[Object]
    notes: list[str] = field(default_factory=list[str])


def expanded(objects: Sequence[Object], now: float) -> Expansion:
    """Return `objects`, as admission has left them, with the pods and PodGroups that controllers would make, as of
    `now`.
    """
    if not any(map(_is_expanded, objects)):
        return Expansion(list(objects))
    api, given = NotingApi(objects, now), Surroundings()
    owned = [machine for group in (WORKLOADS, JOBS) for machine in group.machines(given)]
    # the first kind of a machine is that of its owners; it sees all others from the first of these on
    hosts = [MachineHost(api, [machine], [kind_of(machine.kinds[0])], rounds=1) for machine in owned]
    api.rest([*hosts, MachineHost(api, POD_GROUPS.machines(given), rounds=1)])
    return api.expansion()


def _is_expanded(obj: Object) -> bool:
    return stored_as(obj) in MAKERS or (obj["kind"] == "Pod" and needs_group(obj))


def made_later(objects: Mapping[Identity, Object]) -> list[str]:
    """Return a sentence for each owner that has some of its children and gets others when these have come so far."""
    told = list[str]()
    for (kind, namespace, name), owner in objects.items():
        if (rule := RULES.get(kind)) is not None:
            exists = partial(_has, objects, namespace)
            told += [f"{kind} {namespace}/{name}: {said}" for said in rule.made_later(owner, exists)]
    return told


def _has(objects: Mapping[Identity, Object], namespace: str, kind: str, name: str) -> bool:
    return (kind, namespace, name) in objects


class NotingApi:
    """An API that takes note of what machines ask of it, and lets all see it immediately."""

    def __init__(self, objects: Iterable[Object], now: float) -> None:
        self.notes: list[str] = []
        self._now = now
        self._came = format_moment(now)
        self._objects: dict[Identity, Object] = {identity(obj): obj for obj in objects}
        self._lookup = GivenObjects(self._objects.values())
        self._news: list[tuple[str, Object]] = []
        self._kinds: set[str] = set()
        self._troubles: dict[Identity, str] = {}
        for obj in self._objects.values():
            self._tell(obj)
        self._revision = 1

    def _tell(self, obj: Object) -> None:
        """Show it to the machines, unless it is not what they can rely on."""
        kind = stored_as(obj)
        if kind == "Job" and section(section(obj, "status"), "state").get("phase") in OVER:
            return  # it makes no more pods, and its status states its end
        if kind in MAKERS:
            obj, causes = completed(obj, self._lookup)
            if causes:
                who = f"{obj['kind']} {object_key(obj)}"
                self.notes.append(f"{who}: nothing is made of it: {'; '.join(causes)}")
                return
        if obj["kind"] == "CronJob":
            self.notes.append(f"{obj['kind']} {object_key(obj)}: {NO_TIME}")
        self._hear(kind, self._observed(obj, 1))

    def _hear(self, kind: str, obj: Object) -> None:
        self._news.append((kind, obj))
        self._kinds.add(kind)

    def expansion(self) -> Expansion:
        """Return all there is, what was made last; a Job whose pods were refused says so."""
        for who, trouble in self._troubles.items():
            status = section(self._objects[who], "status")
            said = {**status, "state": {**section(status, "state"), **troubled(trouble)}}
            self._objects[who] = {**self._objects[who], "status": said}
        return Expansion(list(self._objects.values()), [*dict.fromkeys(self.notes), *made_later(self._objects)])

    def has(self, kinds: Sequence[str]) -> bool:
        """Return whether there is an object of one of these kinds."""
        return not self._kinds.isdisjoint(kinds)

    def tell_all(self, turns: Turns) -> int:
        """Tell machines of every object of their kinds."""
        return self.tell_news(turns, 0)

    def tell_news(self, turns: Turns, since: int) -> int:
        """Tell machines of what has come after the first `since` changes; returns the number of all."""
        for kind, obj in self._news[since:]:
            if kind in turns.whole_kinds:
                turns.observe(kind, obj, int(obj["metadata"]["resourceVersion"]))
        return len(self._news)

    def rest(self, hosts: Sequence[MachineHost]) -> None:
        """Let machines ask until they have nothing more to say."""
        rest(hosts, self._now, ROUNDS)

    def left(self, obj: Object) -> Object:
        """Return an object that was handed in, with what machines have written to its spec and status."""
        kept = self._objects[identity(obj)]
        return obj if kept is obj else {**obj, **{part: kept[part] for part in ("spec", "status") if part in kept}}

    def apply(self, request: ApiRequest, now: float) -> ApiReply:
        """Take note of a request; the time is that of the whole moment."""
        del now
        match request:
            case Create():
                return self._create(unpack(request.blob))
            case Patch():
                return self._change(request.kind, request.namespace, request.name, unpack(request.blob))
            case UpdateStatus():
                status = {"status": unpack(request.blob)}
                return self._change(request.kind, request.namespace, request.name, status)
            case _:  # what a controller would take away stays: it was handed in
                return Accepted(self._revision)

    def _create(self, obj: Object) -> ApiReply:
        if obj["kind"] == "Event":
            return Accepted(self._revision, pack(self._observed(obj, self._revision)))
        made, causes = admitted(self._named(obj), self._lookup)
        who = identity(made)
        if who in self._objects:
            return Refused(409, "AlreadyExists", f"{made['kind']} {made['metadata']['name']} already exists")
        row = KINDS.get(who[0])
        if row is not None and not causes and (why := over_quota(self._lookup, row, made)):
            causes = [why]
        if causes:
            said = "; ".join(causes)
            self.notes.append(f"{made['kind']} {who[1]}/{who[2]} could not be made: {said}")
            owner = controller_of(made, VOLCANO_JOB)
            if owner is not None:
                self._troubles.setdefault(("Job", who[1], owner["name"]), f"{made['kind']} {who[2]}: {said}")
            return Refused(422, "Invalid", said)
        if row is not None:
            self._charge(row, made)
        return self._put(who, made)

    def _charge(self, row: Kind, made: Object) -> None:
        """Let quotas count what it uses. The pods of a Job, which come here before their PodGroup is admitted, keep one
        another out, but the cycle sees quotas without them: admission counts what the whole PodGroup asks for.
        """
        early = self._is_early(made)
        for quota in self._lookup.all(QUOTA, made["metadata"]["namespace"]):
            who = identity(quota)
            known = None if early else with_taken(self._lookup, self._objects[who], row, made)
            taken = with_taken(self._lookup, quota, row, made)
            if taken is not None:
                self._lookup.put(taken)
            if known is not None:
                self._objects[who] = known

    def _is_early(self, made: Object) -> bool:
        namespace = made["metadata"]["namespace"]
        if made["kind"] != "Pod" or controller_of(made, VOLCANO_JOB) is None:
            return False
        group = self._objects.get(("PodGroup", namespace, group_of(namespace, made).partition("/")[2]))
        return group is not None and section(group, "status").get("phase", "Pending") == "Pending"

    def _named(self, obj: Object) -> Object:
        """Return the object with a name where it requests one, and a time: now, or when its owner came if that is
        known.
        """
        meta: Object = dict(obj["metadata"])
        if not meta.get("name"):
            prefix, number = str(meta.pop("generateName")), 0
            while (obj["kind"], meta["namespace"], f"{prefix}{number}") in self._objects:
                number += 1
            meta["name"] = f"{prefix}{number}"
        meta["creationTimestamp"] = self._created(meta)
        return {**obj, "metadata": meta}

    def _created(self, meta: Object) -> str:
        for owner in meta.get("ownerReferences") or ():
            known = self._objects.get((stored_as(owner), meta["namespace"], owner["name"]))
            if known is not None and known["metadata"].get("creationTimestamp"):
                return str(known["metadata"]["creationTimestamp"])
        return self._came

    def _change(self, kind: str, namespace: str, name: str, patch: Object) -> ApiReply:
        who = (kind, namespace, name)
        known = self._objects.get(who)
        if known is None:
            return Refused(404, "NotFound", f"{kind} {name} is not among the objects")
        return self._put(who, merge_patch(known, patch))

    def _put(self, who: Identity, obj: Object) -> Accepted:
        self._objects[who] = obj
        self._lookup.put(obj)
        self._revision += 1
        seen = self._observed(obj, self._revision)
        self._hear(stored_as(obj), seen)
        return Accepted(self._revision, pack(seen))

    def _observed(self, obj: Object, revision: int) -> Object:
        """Return the object that machines see: with a time, and a PodGroup that waits for admission as if it were
        admitted, for its pods to be made.
        """
        came = {"creationTimestamp": self._came}
        seen: Object = {**obj, "metadata": {**came, **obj["metadata"], "resourceVersion": str(revision)}}
        if obj["kind"] == "PodGroup" and section(obj, "status").get("phase", "Pending") == "Pending":
            seen["status"] = {**section(obj, "status"), "phase": "Inqueue"}
        return seen
