# SPDX-License-Identifier: Apache-2.0
"""Applying changes to the scheduler's view: one function for the cache's view and for views that are folded from a
journal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar, assert_never

from pumice.config.errors import RequestError
from pumice.core.messages.decisions import Bind
from pumice.core.messages.events import (
    AssumedCycle,
    BeganAnew,
    ForgotBind,
    HeldBind,
    HeldEviction,
    Relisted,
    Unevicted,
)
from pumice.core.objects.metadata import Object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pumice.core.messages.decisions import BindContext, Decision
    from pumice.core.messages.events import ViewOperation

_BINDS: Final = (Bind, HeldBind)
Change = tuple[str, Object]
"""ADDED, MODIFIED or DELETED, and the object."""


class Holds(Protocol):
    """The state that objects and decisions in flight make up: `pumice.core.state.view.View`, or a part of it."""

    def apply(self, event: str, obj: Object, /) -> None:
        """Apply an object as the api has it. Raises RequestError when it is unreadable."""
        ...

    def assume(
        self, namespace: str, name: str, node: str, pre_bind: BindContext | None = None, uid: str | None = None, /
    ) -> bool:
        """Note that a bind is in flight. False when the pod is not here or does not wait."""
        ...

    def evicting(self, namespace: str, name: str, uid: str | None = None, /) -> None:
        """Note that an eviction is in flight."""
        ...

    def forget(self, namespace: str, name: str, uid: str | None = None, /) -> bool:
        """Note that the bind failed. False when no bind of this pod was in flight."""
        ...

    def unevict(self, namespace: str, name: str, uid: str | None = None, /) -> bool:
        """Note that the eviction failed. False when no eviction of this pod was in flight."""
        ...


V = TypeVar("V", bound=Holds)


def unnoted(_obj: Object, _problem: RequestError) -> None:
    """Ignore objects that cannot be read."""


class Shown(Generic[V]):
    """Shows changes to a view, made by `make`: in the cache as in a replay, so that both get the same view.

    `unreadable` is called for unreadable objects.
    """

    def __init__(self, make: Callable[[], V], unreadable: Callable[[Object, RequestError], None] = unnoted) -> None:
        self._make = make
        self._unreadable = unreadable
        self.view = make()

    def see(self, event: str, obj: Object) -> bool:
        """Show it an object. An unreadable one is left out: it must not block the others (Volcano #2843)."""
        try:
            self.view.apply(event, obj)
        except RequestError as problem:
            self._unreadable(obj, problem)
            return False
        return True

    def operate(
        self, operation: ViewOperation, decided: Iterable[Decision] = (), listed: Iterable[Change] = ()
    ) -> list[str]:
        """Carry out the operation. `decided`: the decisions of an assumed cycle; `listed`: the objects of a listing,
        vanished ones first, as DELETED.

        The uids of pods with nothing to assume or to take back: they are gone, or not on their way.
        """
        match operation:
            case BeganAnew():
                self.view = self._make()
            case Relisted():
                for event, obj in listed:
                    self.see(event, obj)
            case AssumedCycle():
                return [decision.uid for decision in decided if not self._assume(decision)]
            case HeldBind() | HeldEviction():
                return [] if self._assume(operation) else [operation.uid]
            case ForgotBind() | Unevicted():
                back = self.view.forget if isinstance(operation, ForgotBind) else self.view.unevict
                return [] if back(operation.namespace, operation.name, operation.uid or None) else [operation.uid]
            case _:
                assert_never(operation)
        return []

    def _assume(self, flight: Decision | HeldBind | HeldEviction) -> bool:
        """Assume the decision for this pod, not for a namesake that has come since."""
        if isinstance(flight, _BINDS):
            return self.view.assume(flight.namespace, flight.name, flight.node, flight.pre_bind, flight.uid)
        self.view.evicting(flight.namespace, flight.name, flight.uid)
        return True
