"""Binds in flight as a view holds them: pod -> node, and what their claims were promised."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pumice.core.messages.decisions import BindContext


class Promised(NamedTuple):
    """What a pod that is being bound to `node` was promised, and the annotations its bind writes."""

    node: str
    pre_bind: BindContext


class AssumedPods(dict[str, str]):
    """By "namespace/name" of the pod: its node. A dict itself, for of every pod that changes it is asked whether it is
    here.
    """

    def __init__(self) -> None:
        super().__init__()
        self._promised: dict[str, Promised] = {}
        self._shared = False

    def hold(self, pod: str, node: str, pre_bind: BindContext | None) -> None:
        """The bind is on its way."""
        self[pod] = node
        if pre_bind is not None:
            self._own()[pod] = Promised(node, pre_bind)

    def drop(self, pod: str) -> None:
        """It has arrived, or never will."""
        if self.pop(pod, None) is not None and pod in self._promised:
            del self._own()[pod]

    def check(self) -> list[str]:
        """Promises to pods that are not in flight, each as a sentence."""
        return [f"{pod} is promised something, and not in flight" for pod in self._promised if pod not in self]

    def share(self) -> dict[str, Promised]:
        """What the pods in flight were promised, as it is now: it never changes."""
        self._shared = True
        return self._promised

    def _own(self) -> dict[str, Promised]:
        """To be changed: a copy where a snapshot has it."""
        if self._shared:
            self._promised, self._shared = dict(self._promised), False
        return self._promised
