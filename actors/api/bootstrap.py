"""What a new cluster holds before anybody has asked for anything: Volcano's two system queues."""

from __future__ import annotations

from core.objects.metadata import Object

API_VERSION = "scheduling.volcano.sh/v1beta1"


def system_queues() -> list[Object]:
    """`root`, which nobody reclaims from, then `default` below it, as Volcano's scheduler creates them at its start."""
    return [_queue("root", reclaimable=False, parent=""), _queue("default", reclaimable=True, parent="root")]


def _queue(name: str, *, reclaimable: bool, parent: str) -> Object:
    spec: Object = {"weight": 1, "reclaimable": reclaimable}
    if parent:
        spec["parent"] = parent
    return {"apiVersion": API_VERSION, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
