# SPDX-License-Identifier: Apache-2.0
"""Queue of the changes from reflectors, until the mirror takes them; and their failures, reported once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

from pumice.actors.errors import CredentialsError, RemoteError
from pumice.actors.real_clusters.mirror.changes import Key, RemoteChange, change_of
from pumice.actors.real_clusters.mirror.cycles import PodSeen, decision_of, seen
from pumice.actors.real_clusters.remote.reflector import RemoteListing, RemoteResource
from pumice.cluster.api.kinds import KINDS, Kind
from pumice.config.settings import ConfigMapName
from pumice.core.objects.metadata import Object
from pumice.core.objects.parts import WATCHED

if TYPE_CHECKING:
    from pumice.actors.real_clusters.mirror.redaction import Redaction

# --- Resources that are followed

CONFIG_MAP: Final = "ConfigMap"
JOB: Final = "Job"
ORDER: Final = (*WATCHED, JOB)
"""Kinds as they are taken in from new lists: pods find their nodes, queues and groups when they come."""


def resources(config_map: ConfigMapName) -> list[RemoteResource]:
    """Return the resources in the order of ORDER. Of ConfigMaps only the scheduler's configuration is read."""
    return [_config(config_map) if key == CONFIG_MAP else _resource(KINDS[key]) for key in ORDER]


def _resource(kind: Kind) -> RemoteResource:
    return RemoteResource(kind.key, kind.api_version, kind.kind, f"{_root(kind)}/{kind.plural}")


def _config(name: ConfigMapName) -> RemoteResource:
    kind = KINDS[CONFIG_MAP]
    path = f"{_root(kind)}/namespaces/{name.namespace}/{kind.plural}"
    return RemoteResource(kind.key, kind.api_version, kind.kind, path, only=name.name)


def _root(kind: Kind) -> str:
    return f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"


# --- Bursts: binds and evictions that come close after each other
# A look that ends between two of them would take one cycle of the scheduler's for two, and the second saw what
# the first had done.

QUIET: Final = 0.3
"""Periods without a decision, after which a cycle is over: between two of its cycles a scheduler waits a whole one."""
LONGEST: Final = 1.5
"""Periods that a cycle is waited for: a scheduler that always binds something shows no end."""


class Burst:
    """Detects bursts of changes from every pod, in order; `period_s`: seconds that the scheduler waits between two
    cycles.
    """

    def __init__(self, period_s: float) -> None:
        self._quiet_s, self._longest_s = QUIET * period_s, LONGEST * period_s
        self._waiting, self._leaving = set[str](), set[str]()
        self._first = self._last = float("-inf")

    def hear(self, pod: Object, now: float, *, gone: bool = False) -> None:
        """Note a change. `now`: seconds of any clock that does not go back."""
        found = seen(pod)
        # All that `decision_of` asks of the last state: two sets of uids instead of a record for each pod.
        before = PodSeen(found.uid, "" if found.uid in self._waiting else found.node, found.uid in self._leaving)
        if decision_of(before, pod, gone=gone) is not None:
            self._first = now if now - self._last >= self._quiet_s else self._first
            self._last = now
        for uids, member in ((self._waiting, not found.node), (self._leaving, found.leaving)):
            (uids.add if member and not gone else uids.discard)(found.uid)

    def left_s(self, now: float) -> float:
        """Return the seconds until the burst has ended, as far as is known now; 0 after its end."""
        return max(0.0, min(self._last + self._quiet_s, self._first + self._longest_s) - now)


NOT_THERE: Final = (404, 405)
"""Answers of a server for kinds that it does not serve or let be watched: clusters differ in that."""
NO_KIND: Final = "404"
SERVER: Final = "the cluster"
UNREACHED: Final = ("0", "401", CredentialsError.__name__)
"""No answer, or nothing to show that would do: every resource has the same to say of it."""
VOLCANO: Final = ("PodGroup", "Queue")
"""A cluster that does not have these has no Volcano: that is said."""
POD: Final = "Pod"
FORBIDDEN: Final = 403
FINAL: Final = (FORBIDDEN, *NOT_THERE)
"""Nothing waits for these."""
NEEDED: Final = ("Node", POD)
"""Without them nothing can be shown: a user without permission to read them waits for it."""

MOST: Final = 16_384
"""Changes that wait to be taken, at most."""
MOST_BYTES: Final = 32 << 20
"""Bytes of their objects, at most; one more change may come of each resource."""

log = logging.getLogger(__name__)


class ListedResource(NamedTuple):
    """All objects of a resource."""

    resource: RemoteResource
    objects: list[RemoteChange]


class Intake:
    """A sink for all reflectors. It hands out nothing before every resource was listed, or is known not to exist: the
    first look is at a whole cluster. `burst` receives every pod immediately.

    Where changes come faster than they are taken, their watches wait, and with them the server that sends them.
    """

    def __init__(
        self, resources: Sequence[RemoteResource], redaction: Redaction | None = None, burst: Burst | None = None
    ) -> None:
        self._redaction, self._burst = redaction, burst
        self._order = {resource.key: number for number, resource in enumerate(resources)}
        self._missing = set(self._order)
        self._heard: list[RemoteChange | ListedResource] = []
        self._bytes = 0  # of the changes among them
        self._news, self._full, self._taken = anyio.Event(), anyio.Event(), anyio.Event()
        self._said: dict[str, str] = {}

    def kept(self, kind: str, obj: Object, *, gone: bool = False) -> RemoteChange:
        """Return the kept part of an object."""
        if self._burst is not None and kind == POD:
            self._burst.hear(obj, anyio.current_time(), gone=gone)
        return change_of(kind, obj, gone=gone, redaction=self._redaction)

    async def listed(self, resource: RemoteResource, listing: RemoteListing) -> None:
        """Take a listing: these objects exist, and no others; the kept form of each object is its change."""
        # What was heard of this kind before is in the list; while another kind cannot be listed, lists may come often.
        self._heard = [each for each in self._heard if _kind_of(each) != resource.key]
        self._bytes = sum(len(each.blob or b"") for each in self._heard if isinstance(each, RemoteChange))
        self._heard.append(ListedResource(resource, listing.objects))
        if not self._missing:
            self._news.set()
        self._settle(resource)
        self._recovered(resource)

    async def changed(self, resource: RemoteResource, type_: str, obj: Object) -> None:
        """Take a change: ADDED, MODIFIED or DELETED. Waits until there is room."""
        while len(self._heard) >= MOST or self._bytes >= MOST_BYTES:
            self._full.set()
            await self._taken.wait()
        change = self.kept(resource.key, obj, gone=type_ == "DELETED")
        self._heard.append(change)
        self._bytes += len(change.blob or b"")
        self._recovered(resource)
        self._news.set()

    def failed(self, resource: RemoteResource, error: RemoteError | CredentialsError) -> None:
        """Take a failure of a list or watch, which is tried again: a lasting failure is reported once."""
        kind = str(error.code) if isinstance(error, RemoteError) else type(error).__name__
        needed = resource.key in NEEDED
        if isinstance(error, RemoteError) and error.code in FINAL and not (needed and error.code == FORBIDDEN):
            self._settle(resource)
            if error.code in NOT_THERE:
                self._absent(resource, error)
                return
        what = SERVER if kind in UNREACHED else resource.key
        if self._said.get(what) != kind:
            self._said[what] = kind
            log.warning("%s: %s; tried again", what, error)

    def _absent(self, resource: RemoteResource, error: RemoteError) -> None:
        if resource.key not in VOLCANO:
            log.info("%s: %s", resource.key, error)
        elif self._said.get(resource.key) != NO_KIND:
            self._said[resource.key] = NO_KIND
            log.warning("%s: %s: Volcano is not installed there; looked for again", resource.key, error)

    async def wait(self, timeout_s: float | None = None) -> None:
        """Wait until there are changes to take, at most so long."""
        with anyio.move_on_after(timeout_s):
            await self._news.wait()

    async def is_full(self, timeout_s: float) -> bool:
        """Wait until watches wait for room, at most so long, and return whether they do."""
        with anyio.move_on_after(timeout_s):
            await self._full.wait()
        return self._full.is_set()

    @property
    def whole(self) -> bool:
        """Return whether everything was listed once."""
        return not self._missing

    def take(self, known: Callable[[str], list[Key]]) -> list[RemoteChange]:
        """Return all changes; `known`: the known objects of a kind, which a new list may no longer name."""
        if self._missing:
            return []
        heard, self._heard, self._bytes = self._heard, [], 0
        if self._full.is_set():
            self._taken.set()
            self._full, self._taken = anyio.Event(), anyio.Event()
        if self._news.is_set():  # else a reader waits for this one
            self._news = anyio.Event()
        lists = [each for each in heard if isinstance(each, ListedResource)]
        lists.sort(key=lambda each: self._order[each.resource.key])  # kinds build on each other
        found = [change for listed in lists for change in _replaced(listed, known(listed.resource.key))]
        return found + [each for each in heard if isinstance(each, RemoteChange)]

    def _settle(self, resource: RemoteResource) -> None:
        self._missing.discard(resource.key)
        if not self._missing:
            self._news.set()

    def _recovered(self, resource: RemoteResource) -> None:
        for what in (SERVER, resource.key):
            if self._said.pop(what, None) is not None:
                log.warning("%s: followed again", what)


def _kind_of(heard: RemoteChange | ListedResource) -> str:
    return heard.resource.key if isinstance(heard, ListedResource) else heard.kind


def _replaced(listed: ListedResource, known: list[Key]) -> list[RemoteChange]:
    there = {each.key for each in listed.objects}
    return [*(RemoteChange(*key, None, gone=True) for key in known if key not in there), *listed.objects]
