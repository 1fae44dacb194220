# SPDX-License-Identifier: Apache-2.0
"""Devices of a resource claim are freed when its last pod has ended, as a pure machine.

Source: Kubernetes' resourceclaim controller (`syncClaim`). Claims made from templates
are made in `pod_claims_machine`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.machine import Machine
from pumice.core.life.task import ENDED_PHASES
from pumice.core.messages.commands import ApiRequest, Get, Update
from pumice.core.messages.replies import Accepted, ApiReply, Refused
from pumice.core.objects.metadata import Object, rows, section
from pumice.core.objects.parts import POD_WITH_CLAIMS
from pumice.storage.codec import pack, unpack

Name = tuple[str, str]

USER: Final = "volume-controller"
RETRY_S: Final = 1.0
SERVER_FAULT: Final = 500


class DeviceMachine(Machine):
    """Frees the devices of resource claims. Only pods that request devices are kept."""

    kinds = (POD_WITH_CLAIMS, "ResourceClaim")

    def __init__(self) -> None:
        self._live: dict[Name, str] = {}  # pod -> uid
        self._gone: set[str] = set()  # uids of pods that have ended and may still stand in a claim
        self._claims: dict[Name, Object] = {}
        self._asking: dict[Name, list[str]] = {}  # claim -> uids of pods it was asked for
        self._dirty: dict[Name, None] = {}
        self._retries: dict[Name, float] = {}  # when to try again what the api could not do
        self._stale: dict[Name, None] = {}

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        if kind == "Pod":
            self._pod(obj, deleted=deleted)
            return
        name = _name(obj)
        old = self._claims.get(name)
        if old is None or revision > int(old["metadata"]["resourceVersion"]):
            self._claims.pop(name, None)
            if not deleted:
                self._claims[name] = obj
                self._dirty[name] = None

    def _pod(self, pod: Object, *, deleted: bool) -> None:
        if not deleted and section(pod, "status").get("phase") not in ENDED_PHASES:
            if section(pod, "spec").get("resourceClaims"):
                self._live[_name(pod)] = pod["metadata"]["uid"]
            return
        name = _name(pod)
        uid = self._live.pop(name, None)
        if uid is not None:
            self._gone.add(uid)
            self._dirty.update(dict.fromkeys(claim for claim in self._claims if claim[0] == name[0]))

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        for name in [name for name, due in self._retries.items() if due <= now]:
            del self._retries[name]
            self._dirty[name] = None
        dirty, self._dirty = self._dirty, {}
        stale, self._stale = self._stale, {}
        requests: list[ApiRequest] = [Get("ResourceClaim", *name) for name in stale]
        for name in dirty:
            claim = self._claims.get(name)
            if claim is None or name in stale:
                continue
            unknown = [user for user in _pods(claim) if self._is_unknown(name[0], user)]
            after = None if unknown else self._without_the_ended(claim)
            if unknown:
                requests += [Get("Pod", name[0], str(user.get("name"))) for user in unknown]
                self._asking[name] = [str(user.get("uid")) for user in unknown]
            elif after is not None:
                requests.append(Update(pack(after), user=USER))
        return requests

    def _is_unknown(self, namespace: str, user: Object) -> bool:
        """Return whether a pod was never seen: it may be so new that the list of pods did not have it."""
        uid = user.get("uid")
        return uid not in self._gone and self._live.get((namespace, str(user.get("name")))) != uid

    def _without_the_ended(self, claim: Object) -> Object | None:
        """Return the claim without pods that do not exist any more, and without devices once it has no pod; None when
        it does not change.
        """
        status = section(claim, "status")
        users: list[Object] = status.get("reservedFor") or []
        kept = [user for user in users if user.get("resource") != "pods" or user.get("uid") not in self._gone]
        if len(kept) == len(users):
            return None
        after = {key: value for key, value in status.items() if key not in ("reservedFor", "allocation")}
        if kept:
            after.update(reservedFor=kept, allocation=status.get("allocation"))
        return {**claim, "status": after}

    def answered(self, request: ApiRequest, reply: ApiReply, now: float) -> None:
        """Take the answer to one request of the last step; answers come in order, before the next step."""
        if isinstance(request, Get) and request.kind == "Pod":
            self._heard_of_pod((request.namespace, request.name), reply)
        elif isinstance(reply, Accepted) and reply.blob:
            claim: Object = unpack(reply.blob)
            self.observe("ResourceClaim", claim, int(claim["metadata"]["resourceVersion"]))
            if isinstance(request, Get):  # perhaps no news, but nothing was done about it while it was asked for
                self._dirty[request.namespace, request.name] = None
        elif isinstance(request, Update) and isinstance(reply, Refused):
            meta = unpack(request.blob)["metadata"]
            if reply.code == 409:
                self._stale[meta["namespace"], meta["name"]] = None
            elif reply.code >= SERVER_FAULT:
                self._retries[meta["namespace"], meta["name"]] = now + RETRY_S

    def _heard_of_pod(self, pod: Name, reply: ApiReply) -> None:
        if isinstance(reply, Refused) and reply.code >= SERVER_FAULT:
            return  # heard nothing; the claim's next change asks again
        found: Object = unpack(reply.blob) if isinstance(reply, Accepted) else {}
        uid = section(found, "metadata").get("uid")
        if uid is not None and section(found, "status").get("phase") not in ENDED_PHASES:
            self._live[pod] = str(uid)
        for claim in [name for name in self._asking if name[0] == pod[0]]:
            self._dirty[claim] = None
            users = _pods(self._claims.get(claim, {}))
            named = {str(user.get("uid")) for user in users if user.get("name") == pod[1]}
            self._gone.update(named.intersection(self._asking[claim]) - {self._live.get(pod, "")})
            self._asking[claim] = [one for one in self._asking[claim] if one not in named]
            if not self._asking[claim]:
                del self._asking[claim]

    def next_due(self) -> float | None:
        """Return the time when `step` has work without any change; None for never."""
        return min(self._retries.values(), default=None)

    def running_timers(self) -> int:
        """Return the number of running timers."""
        return len(self._retries)


def _name(obj: Object) -> Name:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _pods(claim: Object) -> list[Object]:
    return [user for user in rows(section(claim, "status"), "reservedFor") if user.get("resource") == "pods"]
