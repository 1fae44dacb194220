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


class BuiltInPlugin(Protocol):
    """The class of a built-in plugin, with its record: what else is stated about it, beside its code.

    `says` completes "it …" in `pumice check`. `listens`: the points at whose flags it registers rules. May have besides
    `only_answers` (in a session where it is not asked it writes and remembers nothing), `only_places` (it answers about
    nodes only, too) and `asks_outside` (it asks a process over HTTP).
    """

    @property
    def name(self) -> str: ...
    @property
    def says(self) -> str: ...
    @property
    def listens(self) -> tuple[str, ...]: ...

    def __call__(self, arguments: dict[str, Any], /) -> Plugin: ...


def has(plugin: BuiltInPlugin, trait: str) -> bool:
    """Return whether a plugin's record states a trait (`only_answers`, `only_places`, `asks_outside`)."""
    return bool(getattr(plugin, trait, False))


def knows_devices(plugin: BuiltInPlugin) -> bool:
    """Return whether it is a plugin that says which devices nodes have."""
    return isinstance(plugin, type) and issubclass(plugin, KnowsDevices)
