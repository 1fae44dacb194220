"""What is heard of the cluster, by its watches and in answers, handed to the api here in its order."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio

from pumice.actors.real_clusters.cluster.places import POD
from pumice.actors.real_clusters.cluster.versions import RemoteVersions
from pumice.actors.real_clusters.mirror.followed import JOB, ORDER, resources
from pumice.actors.real_clusters.mirror.intake import Intake
from pumice.actors.real_clusters.remote.listing import named
from pumice.actors.runtime.asking import ask_again
from pumice.core.messages.commands import List
from pumice.core.messages.reflection import Reflect
from pumice.core.messages.replies import Accepted, Listing
from pumice.core.objects.metadata import Object
from pumice.storage import codec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.actors.real_clusters.cluster.settings import ClusterSettings
    from pumice.actors.real_clusters.mirror.changes import RemoteChange
    from pumice.actors.system.ports import ApiPort


BATCH = 500
"""So many changes are on their way to the api at once: all of a large cluster would be there twice."""

log = logging.getLogger(__name__)


class ClusterHearing:
    """`revision`: of the newest change here that a scheduler sees; `decided`: by uid, the decisions to bind a pod."""

    def __init__(self, name: str, api: ApiPort, settings: ClusterSettings) -> None:
        self._name = name
        self._api = api
        self._period_s = settings.period_s
        self.resources = {each.key: each for each in resources(settings.config_map)}
        self.intake = Intake(list(self.resources.values()))
        self.versions = RemoteVersions()
        self.decided: dict[str, int] = {}
        self.revision = 0
        self.synced = anyio.Event()
        self._turn = anyio.Lock()

    async def begin(self) -> None:
        """Know what is here."""
        for kind in ORDER:
            reply = await ask_again(self._api, List(kind))
            for blob in reply.blobs if isinstance(reply, Listing) else ():
                meta = codec.unpack(blob)["metadata"]
                self.versions.know((kind, meta.get("namespace") or "", meta["name"]), meta["uid"])

    async def run(self) -> None:
        """Take in what comes, until it is cancelled."""
        while True:
            await self.intake.wait()
            await anyio.sleep(self._period_s)
            await self._take()

    async def hear(self, kind: str, obj: Object) -> int:
        """An answer had this object in it; the revision here that has it at least."""
        resource = self.resources.get(kind)
        if resource is not None:
            await self.intake.changed(resource, "MODIFIED", named(resource, obj))
            await self._take()
        return self.revision

    async def _take(self) -> None:
        async with self._turn:
            whole = self.intake.whole
            changes = self.versions.news(self.intake.take(self.versions.names))
            for start in range(0, len(changes), BATCH):
                await self._store(changes[start : start + BATCH])
            if whole:
                self.synced.set()

    async def _store(self, changes: Sequence[RemoteChange]) -> None:
        replies = await self._api.ask_many([self._reflected(change) for change in changes])
        for change, reply in zip(changes, replies, strict=True):
            if not isinstance(reply, Accepted):
                log.error("%s %s/%s could not be kept: %s", *change.key, reply)
            elif change.kind != JOB:
                self.revision = max(self.revision, reply.revision)

    def _reflected(self, change: RemoteChange) -> Reflect:
        """A bind that comes true names its decision."""
        if change.gone or change.blob is None:
            return Reflect(*change.key, b"")
        decided = 0
        if change.kind == POD and self.decided and (obj := change.obj) and obj["spec"].get("nodeName"):
            decided = self.decided.pop(obj["metadata"]["uid"], 0)
        return Reflect(*change.key, change.blob, self._name if decided else "", decided)
