"""What a plugin is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

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


PluginBuilder = Callable[[dict[str, Any]], Plugin]
