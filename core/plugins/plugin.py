"""The interface of a plugin."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pumice.core.session.session import Session


class Plugin(Protocol):
    """Built anew for every session from its arguments; registers functions when the session opens."""

    name: str

    def on_session_open(self, session: Session) -> None:
        """Read the session, register functions and event handlers."""
        ...

    def on_session_close(self, session: Session) -> None:
        """Write conditions; the actions are over."""
        ...


class KnowsDevices:
    """A plugin that says which devices nodes have: as nodes have them before any plugin opens, so all plugins find
    them, before that plugin or after it. Inherited from, and not only looked like: every session asks of every
    plugin, and to find out by its methods is a tenth of what a small session costs.
    """

    def find_devices(self, session: Session) -> None:
        """Give the session what there is."""
        raise NotImplementedError


PluginBuilder = Callable[[dict[str, Any]], Plugin]


class BuiltInPlugin:
    """The base of all built-in plugins: a record of what else is stated about a plugin, beside its code.

    `says` completes "it …" in `pumice check`. `listens`: the points at whose flags it registers rules. `only_answers`:
    in a session where it is not asked it writes and remembers nothing; `only_places`: it answers about nodes only, too.
    `asks_outside`: it asks a process over HTTP.
    """

    name: str
    says: str
    listens: tuple[str, ...]
    only_answers: bool = False
    only_places: bool = False
    asks_outside: bool = False

    def __init__(self, arguments: dict[str, Any]) -> None:
        """Read the plugin's arguments. Raises ConfigError."""
        raise NotImplementedError

    def on_session_open(self, session: Session) -> None:
        """Read the session, register functions and event handlers."""
        raise NotImplementedError

    def on_session_close(self, session: Session) -> None:
        """Write conditions, of a plugin that has any; the actions are over."""
