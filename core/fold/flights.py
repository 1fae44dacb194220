"""What is in flight, by name of the pod: what a view holds beside the api's objects, without the view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pumice.core.messages.decisions import BindContext

Name = tuple[str, str]
"""Namespace and name."""


class Flights:
    """`binds`: pod -> (uid, node), `promised`: what the bind of a pod carries, `evictions`: pod -> uid.

    Nobody tells it when a flight ends well, for that is seen at the pod.
    """

    def __init__(self) -> None:
        self.binds: dict[Name, tuple[str, str]] = {}
        self.promised: dict[Name, BindContext] = {}
        self.evictions: dict[Name, str] = {}

    def apply(self, event: str, obj: dict[str, Any], /) -> None:
        """Objects are somebody else's."""

    def assume(
        self, namespace: str, name: str, node: str, pre_bind: BindContext | None = None, uid: str | None = None, /
    ) -> bool:
        """A bind is on its way."""
        pod = (namespace, name)
        self.binds[pod] = (uid or "", node)
        self.promised.pop(pod, None)
        if pre_bind is not None:
            self.promised[pod] = pre_bind
        return True

    def evicting(self, namespace: str, name: str, uid: str | None = None, /) -> None:
        """An eviction is on its way."""
        self.evictions[namespace, name] = uid or ""

    def forget(self, namespace: str, name: str, uid: str | None = None, /) -> bool:
        """The bind failed, or is over."""
        known, _ = self.binds.get((namespace, name), (None, ""))
        if known is None or uid not in (None, known):
            return False
        del self.binds[namespace, name]
        self.promised.pop((namespace, name), None)
        return True

    def unevict(self, namespace: str, name: str, uid: str | None = None, /) -> bool:
        """The eviction failed, or is over."""
        known = self.evictions.get((namespace, name))
        if known is None or uid not in (None, known):
            return False
        del self.evictions[namespace, name]
        return True
