"""What somebody else does to the cluster between a decision and its bind: the node goes, is cordoned or shrinks, or the
pod is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.core.messages.commands import BindPod, Delete, Patch, UpdateStatus
from pumice.storage import codec

if TYPE_CHECKING:
    from pumice.cluster.api.store import Store
    from pumice.core.messages.commands import StoreRequest

USER: Final = "somebody-else"
SHRUNK: Final = {"allocatable": {"cpu": "1", "memory": "1Gi"}}


def disrupt(store: Store, what: str, bind: BindPod, now: float) -> None:
    """Do it to the bind's node or pod, in the store, before the bind is carried out."""
    requests: dict[str, StoreRequest] = {
        "bind-node-removed": Delete("Node", "", bind.node, user=USER),
        "bind-node-cordoned": Patch("Node", "", bind.node, _packed({"spec": {"unschedulable": True}}), USER),
        "bind-node-shrunk": UpdateStatus("Node", "", bind.node, _packed(SHRUNK), None, USER),
        "bind-pod-deleted": Delete("Pod", bind.namespace, bind.name, user=USER),
    }
    store.apply(requests[what], now)


def _packed(patch: dict[str, Any]) -> bytes:
    return codec.pack(patch)
