"""What all who watch read of the api's log: changes that are published once for everybody."""

from __future__ import annotations

from msgspec import Struct

from core.messages.events import Mutation


class Events(Struct, frozen=True):
    """Changes in revision order, the very ones that the journal has. The watcher continues from `revision`.

    `gone` (410): the log no longer reaches back that far; the watcher must list again. `more`: the limit cut it.
    """

    revision: int
    events: tuple[Mutation, ...] = ()
    gone: bool = False
    more: bool = False
