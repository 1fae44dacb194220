# SPDX-License-Identifier: Apache-2.0
"""Summary that `pumice run` prints at its end, and shows while it runs: counted from changes that it pulls from the
api."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, Struct, UnsetType

from pumice.actors.runtime.mailbox import ask_again
from pumice.core.messages.commands import OpenListing, Pull, Pulled, ReadRevision, RevisionRead
from pumice.core.messages.events import ShadowTold
from pumice.core.messages.replies import ListingOpened
from pumice.core.objects.metadata import Object, section
from pumice.storage import codec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.actors.runtime.actor import Context
    from pumice.actors.system.ports import ApiPort
    from pumice.cluster.handles import HandleTable
    from pumice.core.messages.events import Mutation

NAME = "summary"
NEVER = -1
MOST = 1000
"""Changes pulled in one batch."""
PHASES = ("running", "succeeded", "failed", "pending")
KINDS = ("Pod", "Job")


class PodCounts(Struct):
    """Number of pods with a node, and in each phase; a pending pod has no node."""

    bound: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    pending: int = 0


class JobSummary(Struct):
    """The phase of a Job, and the numbers of its pods with and without a node."""

    phase: str
    bound: int = 0
    pending: int = 0


class RunSummary(Struct, kw_only=True):
    """A run so far: pods by state, jobs by "namespace/name", `seconds` since the start, and the binds a second since
    then. `shadow`: the agreement of a shadow, where one ran.
    """

    cycles: int
    pods: PodCounts
    jobs: dict[str, JobSummary]
    seconds: float
    pods_per_s: float
    shadow: ShadowTold | UnsetType = UNSET


class SeenPod(Struct, frozen=True, gc=False):
    """Facts of a pod that count; `job` is "namespace/name" of its Volcano Job."""

    bound: bool
    phase: str
    job: str


class Summary:
    """Counts pods by state and jobs by "namespace/name", as far as the api has published them. `listings`: those that
    it has opened.
    """

    def __init__(self, api: ApiPort, context: Context, listings: HandleTable[tuple[bytes, ...]]) -> None:
        self._api = api
        self._listings = listings
        self._objects = context.objects
        self._revision = NEVER
        self._pods: dict[str, SeenPod] = {}
        self._jobs: dict[str, str] = {}

    async def report(self, cycles: int, seconds: float) -> RunSummary:
        """Return the summary; `seconds` is how long the system has been running.

        The rate is that of the binds since then, whatever has become of the pods.
        """
        await self._catch_up()
        pods = dict.fromkeys(("bound", *PHASES), 0)
        jobs = {name: JobSummary(phase) for name, phase in sorted(self._jobs.items())}
        for pod in self._pods.values():
            pods["bound"] += pod.bound
            # "Pending" is also the phase of a pod that is bound and has not started.
            if pod.phase in pods and (pod.phase != "pending" or not pod.bound):
                pods[pod.phase] += 1
            if pod.job in jobs:
                jobs[pod.job].bound += pod.bound
                jobs[pod.job].pending += not pod.bound
        come = await ask_again(self._api, ReadRevision())
        rate = come.bound / seconds if seconds > 0 and isinstance(come, RevisionRead) else 0.0
        return RunSummary(cycles=cycles, pods=PodCounts(**pods), jobs=jobs, seconds=seconds, pods_per_s=rate)

    async def _catch_up(self) -> None:
        """Pull changes; list at first, and after falling off the log."""
        while True:
            found = await ask_again(self._api, Pull(NAME, self._revision, KINDS, MOST, held=False))
            # The log does not reach back so far: everything is counted anew.
            if not isinstance(found, Pulled) or found.gone:
                return await self._list()
            self._note(self._objects.changes(found.revisions, found.events))
            self._revision = found.revision
            if not found.more:
                return None

    async def _list(self) -> None:
        self._pods.clear()
        self._jobs.clear()
        listed: list[int] = []
        for kind in KINDS:
            opened = await ask_again(self._api, OpenListing(kind))
            if isinstance(opened, ListingOpened):
                listed.append(opened.revision)
                for blob in self._listings.take(opened.handle):
                    self._put(kind, codec.unpack(blob))
        # The older revision: changes that the other listing has already are only put a second time.
        self._revision = min(listed, default=NEVER)

    def _note(self, events: Iterable[Mutation]) -> None:
        for event in events:
            if event.type == "DELETED":
                gone = self._pods if event.kind == "Pod" else self._jobs
                gone.pop(f"{event.namespace}/{event.name}", None)
            else:
                self._put(event.kind, codec.unpack(event.blob))

    def _put(self, kind: str, obj: Object) -> None:
        metadata, status = section(obj, "metadata"), section(obj, "status")
        namespace = metadata.get("namespace") or ""
        name = f"{namespace}/{metadata.get('name')}"
        if kind == "Job":
            self._jobs[name] = str(section(status, "state").get("phase") or "")
            return
        bound = bool(section(obj, "spec").get("nodeName"))
        phase = str(status.get("phase") or "Pending").lower()
        job = section(metadata, "annotations").get("volcano.sh/job-name") or ""
        self._pods[name] = SeenPod(bound, phase, f"{namespace}/{job}")
