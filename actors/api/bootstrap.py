"""What a new cluster holds before anybody has asked for anything: Volcano's two system queues; namespaces, and
the API server's Service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import anyio

from actors.api.admission.service_addresses import API_ADDRESS
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
    """What there is to be created: the system queues, and where the api is served the namespaces and
    the Service that every cluster has."""
    served = [*map(new_namespace, FIRST), api_service()] if namespaces else []
    return served + (system_queues() if queues else [])


def api_service() -> Object:
    """The Service by which pods would know the API server (source: kube-apiserver's `kubernetesservice`)."""
    labels = {"component": "apiserver", "provider": "kubernetes"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "spec": {"clusterIP": API_ADDRESS, "ports": [{"name": "https", "port": 443, "targetPort": 6443}]},
    }


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
