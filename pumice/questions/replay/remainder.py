# SPDX-License-Identifier: Apache-2.0
"""Rest of the record after the decisions have parted: the outside requests with their times, and the outcome of
decisions and pods in flight.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pumice.actors.system.roles import LINKS
from pumice.cluster.api.origin import LOAD
from pumice.cluster.controllers.endpoints import USER as ENDPOINTS
from pumice.cluster.controllers.nodes import USER as NODES
from pumice.cluster.controllers.quotas import USER as QUOTAS
from pumice.cluster.kube.merge_patch import diff_patch
from pumice.cluster.kubelets.cell_reports import USER as CELLS
from pumice.cluster.kubelets.device_plugin import USER as DEVICES
from pumice.core.life.task import ENDED_PHASES
from pumice.core.messages.commands import EMPTIES as NAMESPACES
from pumice.core.messages.commands import ApiRequest, Create, Delete, LoadObject, Patch
from pumice.core.messages.events import Bound, Evicted, Mutation, Outcome
from pumice.core.objects.metadata import Object, section
from pumice.questions.replay.replayer import NextProcess
from pumice.storage import codec
from pumice.storage.journal import API, OUTCOME, Stored
from pumice.storage.records import read_as

Key = tuple[str, str, str]
"""Kind, namespace and name."""

ITSELF: Final = frozenset((*LINKS, "scheduler", "", NAMESPACES, QUOTAS, ENDPOINTS, DEVICES, CELLS, NODES))
"""Users of the api that are parts of the system; some add, after a blank, their client."""

OURS: Final = ("uid", "resourceVersion", "creationTimestamp", "generation", "deletionTimestamp", "managedFields")
"""Fields that the api writes into an object's metadata."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request at a time (seconds since the epoch)."""

    at: float
    request: ApiRequest


@dataclass
class Remainder:
    """The remainder. `arrivals` and `restarts` in order; `done`: decisions, by their number in the journal, that were
    carried out; `ended`: when a pod ended by itself, and `gone` when it was removed, by uid; `stopped`: the exit code
    of one that ended because it was asked to stop.
    """

    arrivals: list[Arrival] = field(default_factory=list[Arrival])
    restarts: list[NextProcess] = field(default_factory=list[NextProcess])
    done: set[int] = field(default_factory=set[int])
    ended: dict[str, float] = field(default_factory=dict[str, float])
    gone: dict[str, float] = field(default_factory=dict[str, float])
    stopped: dict[str, int] = field(default_factory=dict[str, int])


class Reader:
    """Reads the record after the parting; `objects` are the earlier ones, by kind, namespace and name."""

    def __init__(self, objects: dict[Key, bytes]) -> None:
        self.remainder = Remainder()
        self._objects = objects

    def follow(self, stored: Stored) -> None:
        """Follow the next record."""
        if stored.kind == OUTCOME:
            outcome = read_as(stored, Outcome)
            if isinstance(outcome, Bound | Evicted):
                self.remainder.done.add(outcome.sequence)
        elif stored.kind == API:
            self._change(read_as(stored, Mutation), stored)

    def _change(self, mutation: Mutation, stored: Stored) -> None:
        blob = self._objects.get((mutation.kind, mutation.namespace, mutation.name))
        before: Object = codec.unpack(blob) if blob else {}
        after: Object = codec.unpack(mutation.blob)
        note(self._objects, mutation)
        if mutation.user.partition(" ")[0] not in ITSELF and not stored.cause:
            requests = requests_of(mutation, before, after)
            self.remainder.arrivals.extend(Arrival(stored.at, request) for request in requests)
        elif mutation.kind == "Pod":
            uid = section(after, "metadata").get("uid") or ""
            if mutation.type == "DELETED":
                self.remainder.gone[uid] = stored.at
            elif _has_ended(after) and not _has_ended(before):
                if _goes(after):
                    self.remainder.stopped[uid] = _exit_code(after)
                else:
                    self.remainder.ended[uid] = stored.at


def note(objects: dict[Key, bytes], mutation: Mutation) -> None:
    """Note the next change of all objects."""
    key = (mutation.kind, mutation.namespace, mutation.name)
    if mutation.type == "DELETED":
        objects.pop(key, None)
    else:
        objects[key] = mutation.blob


def requests_of(mutation: Mutation, before: Object, after: Object) -> list[ApiRequest]:
    """Return the requests that lead to this change again, of an object that may have changed meanwhile."""
    where = (mutation.kind, mutation.namespace, mutation.name)
    goes = section(after, "metadata")
    if mutation.type == "DELETED" or (goes.get("deletionTimestamp") and not _goes(before)):
        is_removed_pod = mutation.type == "DELETED" and mutation.kind == "Pod"
        grace = 0 if is_removed_pod else goes.get("deletionGracePeriodSeconds")
        return [Delete(*where, grace_period_s=grace, user=mutation.user)]
    if mutation.type == "ADDED" and mutation.user == LOAD:
        return [LoadObject(mutation.blob, user=LOAD)]
    if mutation.type == "ADDED":
        return [Create(codec.pack(asked(after)), user=mutation.user, uid=goes.get("uid") or "")]
    patch = diff_patch(asked(before), asked(after))
    status = patch.pop("status", None)
    requests: list[ApiRequest] = []
    if patch:
        requests.append(Patch(*where, codec.pack(patch), user=mutation.user))
    if status is not None:
        blob = codec.pack({"status": status})
        requests.append(Patch(*where, blob, user=mutation.user, subresource="status"))
    return requests


def asked(obj: Object) -> Object:
    """Return the requests without the api's own writes."""
    metadata = {key: value for key, value in section(obj, "metadata").items() if key not in OURS}
    return {**obj, "metadata": metadata}


def _goes(obj: Object) -> bool:
    return bool(section(obj, "metadata").get("deletionTimestamp"))


def _exit_code(pod: Object) -> int:
    """Return the first exit code of its containers that is not 0; 1 of a pod that failed otherwise."""
    status = section(pod, "status")
    ended = [section(section(each, "state"), "terminated") for each in status.get("containerStatuses") or ()]
    codes = (code for each in ended if (code := each.get("exitCode")))
    return 0 if status.get("phase") == "Succeeded" else next(codes, 1)


def _has_ended(pod: Object) -> bool:
    return section(pod, "status").get("phase") in ENDED_PHASES
