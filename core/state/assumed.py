"""Binds in flight as a view holds them: pod -> node, and what their claims were promised."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from core.messages.decisions import PreBind


class Promised(NamedTuple):
    """What a pod that is being bound to `node` was promised."""

    node: str
    pre_bind: PreBind


class Assumed:
    """By "namespace/name" of the pod. `promised` is never changed in place: snapshots share it."""

    def __init__(self) -> None:
        self.promised: dict[str, Promised] = {}
        self._nodes: dict[str, str] = {}

    def __contains__(self, pod: str) -> bool:
        return pod in self._nodes

    def __getitem__(self, pod: str) -> str:
        return self._nodes[pod]

    def hold(self, pod: str, node: str, pre_bind: PreBind | None) -> None:
        """The bind is on its way."""
        self._nodes[pod] = node
        if pre_bind is not None:
            self.promised = {**self.promised, pod: Promised(node, pre_bind)}

    def drop(self, pod: str) -> None:
        """It has arrived, or never will."""
        if self._nodes.pop(pod, None) is not None and pod in self.promised:
            self.promised = {key: promise for key, promise in self.promised.items() if key != pod}
