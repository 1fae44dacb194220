"""What is asked of the cluster, answered: which request goes there as what, and how urgent it is.

Binds, evictions, statuses, events and updates go to the cluster, a pod is read there; watching and listing is left to
the api here, which has all that was heard.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import anyio

from pumice.actors.errors import RemoteError
from pumice.actors.real_clusters.cluster.line import Urgency
from pumice.actors.real_clusters.cluster.places import POD, collection, place
from pumice.core.messages import commands
from pumice.core.messages.message import Message
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object
from pumice.storage import codec

if TYPE_CHECKING:
    from pumice.actors.real_clusters.cluster.client import ClusterClient
    from pumice.actors.real_clusters.cluster.effects import ClusterEffects
    from pumice.actors.system.ports import ApiPort
    from pumice.core.messages.commands import ApiRequest
    from pumice.core.messages.replies import ApiReply


PATIENCE_S: Final = 30.0
"""So long one tries to write what nobody has set a time for."""
IN_STATUS: Final = ("ResourceClaim",)
"""Kinds of which what a scheduler writes stands in the status, a subresource."""
URGENCY: Final[dict[type[Message], Urgency]] = {
    commands.BindPod: Urgency.DECISIONS,
    commands.EvictPod: Urgency.DECISIONS,
    commands.Get: Urgency.DECISIONS,
    commands.Update: Urgency.DECISIONS,
    commands.ReportStatus: Urgency.STATUSES,
    commands.Create: Urgency.EVENTS,
    commands.Patch: Urgency.EVENTS,
}
"""Of what goes to the cluster; everything else is left to the api here."""
UNAVAILABLE: Final = 503
Where = tuple[str, str, str]


class Desk:
    """`may_write` says whether this is still the one who schedules; `heard`: the newest revision here."""

    def __init__(
        self,
        client: ClusterClient,
        effects: ClusterEffects,
        local: ApiPort,
        may_write: Callable[[], bool],
        heard: Callable[[], int],
    ) -> None:
        self._client = client
        self._effects = effects
        self._local = local
        self._may_write = may_write
        self._heard = heard
        self.decided: dict[str, int] = {}
        """By the uids of pods that are about to be bound, the journal numbers of the decisions."""

    async def answer(self, message: ApiRequest) -> ApiReply:
        """Raises RemoteError, CredentialsError."""
        if isinstance(message, commands.Get):
            return await self._read(message)
        if not self._may_write():
            raise RemoteError("another scheduler may be at work", UNAVAILABLE, "LeaseLost")
        match message:
            case commands.BindPod():
                self.decided[message.uid] = message.sequence
                try:
                    await self._effects.bind(message)
                except RemoteError:
                    self.decided.pop(message.uid, None)
                    raise
            case commands.EvictPod():
                await self._effects.evict(message)
            case commands.ReportStatus():
                return await self._effects.report(message, _until())
            case commands.Update():
                return await self._update(codec.unpack(message.blob))
            case commands.Create():
                await self._create(codec.unpack(message.blob))
            case commands.Patch():
                where = place(message.kind, message.namespace, message.name)
                await self._client.patch(where, codec.unpack(message.blob), _until())
            case _:
                raise AssertionError(f"{type(message).__name__} is nothing for the cluster")
        return Accepted(self._heard())

    async def _read(self, message: commands.Get) -> ApiReply:
        """A pod as it is by now, as it stands here then; other kinds as the cluster has them, to be written back."""
        obj = await self._effects.read(message.kind, message.namespace, message.name)
        if message.kind == POD:
            return await self._local.ask(message)
        return Accepted(self._heard(), codec.pack(obj))

    async def _update(self, obj: Object) -> ApiReply:
        meta = obj["metadata"]
        kind, namespace = obj["kind"], meta.get("namespace") or ""
        where = place(kind, namespace, meta["name"], "status" if kind in IN_STATUS else "")
        after = await self._client.replace(where, obj, _until())
        await self._effects.take_in(kind, after)
        return Accepted(self._heard(), codec.pack(after))

    async def _create(self, obj: Object) -> None:
        where = collection(obj["kind"], obj["metadata"].get("namespace") or "")
        await self._client.create(where, obj, _until())


def refused(error: RemoteError) -> Refused | None:
    """What an api would answer for the error; None: there was no answer."""
    return Refused(error.code, error.reason, str(error)) if error.code else None


def _until() -> float:
    return anyio.current_time() + PATIENCE_S
