"""What a new cluster holds before anybody has asked for anything: Volcano's two system queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from actors.errors import ActorFailedError
from core.messages.commands import Create
from core.objects.metadata import Object
from storage import codec

if TYPE_CHECKING:
    from actors.ports import ApiPort

AGAIN_S = 0.02
API_VERSION = "scheduling.volcano.sh/v1beta1"


def system_queues() -> list[Object]:
    """`root`, which nobody reclaims from, then `default` below it, as Volcano's scheduler creates them at its start."""
    return [_queue("root", reclaimable=False, parent=""), _queue("default", reclaimable=True, parent="root")]


async def create_system_queues(api: ApiPort) -> None:
    """Create those that are not there; again when the api crashed over it."""
    while True:
        try:
            await api.ask_many([Create(codec.pack(queue), user="submit") for queue in system_queues()])
        except ActorFailedError:
            await anyio.sleep(AGAIN_S)
        else:
            return


def _queue(name: str, *, reclaimable: bool, parent: str) -> Object:
    spec: Object = {"weight": 1, "reclaimable": reclaimable}
    if parent:
        spec["parent"] = parent
    return {"apiVersion": API_VERSION, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
