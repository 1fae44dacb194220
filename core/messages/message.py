"""What every message type has in common."""

from __future__ import annotations

from msgspec import Struct


class Message(Struct, frozen=True, tag=True, tag_field="_", gc=False):
    """Frozen, slotted, tagged with its class name under the key "_"."""
