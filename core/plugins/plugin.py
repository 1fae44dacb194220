"""What a plugin is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from core.session.session import Session


class Plugin(Protocol):
    """Built anew for every session from its arguments; registers functions when the session opens."""

    name: str

    def on_session_open(self, session: Session) -> None:
        """Read the session, register functions and event handlers."""
        ...

    def on_session_close(self, session: Session) -> None:
        """Write conditions; the actions are over."""
        ...


@runtime_checkable
class KnowsDevices(Protocol):
    """A plugin that says which devices nodes have: as nodes have them before any plugin opens, so all plugins find
    them, be it before that plugin or after it.
    """

    def find_devices(self, session: Session) -> None:
        """Give the session what there is."""
        ...


PluginBuilder = Callable[[dict[str, Any]], Plugin]
