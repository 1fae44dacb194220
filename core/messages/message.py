"""The properties that every message type has in common."""

from __future__ import annotations

from msgspec import Struct

from pumice.core.messages.wire import KEY, tag_of


class Message(Struct, frozen=True, tag=tag_of, tag_field=KEY, gc=False):
    """The form of all messages: frozen, slotted, tagged under the key "_" with the class name, or with the name in
    files (`core.messages.wire`).
    """
