"""What a new cluster holds before anybody has asked for anything: Volcano's two system queues; namespaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import anyio

from actors.api.namespaces import FIRST, new_namespace
from actors.api.verbs.creation import SUBMIT
from actors.errors import ActorFailedError
from core.messages.commands import Create
from core.objects.metadata import Object
from storage import codec

if TYPE_CHECKING:
    from actors.system.ports import ApiPort

AGAIN_S = 0.02
API_VERSION = "scheduling.volcano.sh/v1beta1"


def system_queues() -> list[Object]:
    """`root`, which nobody reclaims from, then `default` below it, as Volcano's scheduler creates them at its start."""
    return [_queue("root", reclaimable=False, parent=""), _queue("default", reclaimable=True, parent="root")]


def first_objects(queues: bool, namespaces: bool) -> list[Object]:
    """What there is to be created: the system queues, and the namespaces that every cluster has."""
    return [new_namespace(name) for name in FIRST if namespaces] + (system_queues() if queues else [])


async def create_first_objects(api: ApiPort, objects: Sequence[Object]) -> None:
    """Create those that are not there; again when the api crashed over it."""
    while objects:
        try:
            await api.ask_many([Create(codec.pack(obj), user=SUBMIT) for obj in objects])
        except ActorFailedError:
            await anyio.sleep(AGAIN_S)
        else:
            return


def _queue(name: str, *, reclaimable: bool, parent: str) -> Object:
    spec: Object = {"weight": 1, "reclaimable": reclaimable}
    if parent:
        spec["parent"] = parent
    return {"apiVersion": API_VERSION, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
