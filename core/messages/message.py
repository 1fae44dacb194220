"""The properties that every message type has in common."""

from __future__ import annotations

from msgspec import Struct

from pumice.core.messages.wire import KEY, tag_of


class Message(Struct, frozen=True, tag=tag_of, tag_field=KEY, gc=False):
    """Frozen, slotted, tagged under the key "_" with its class name, or what files call it (`core.messages.wire`)."""
