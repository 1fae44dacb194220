"""How many faults a storm has made, as messages between who shows them and the api."""

from __future__ import annotations

from pumice.core.messages.message import Message


class ReadFaults(Message, frozen=True):
    """How many faults of which kind have struck. Reply: FaultsRead."""


class FaultsRead(Message, frozen=True):
    """`struck`: how many so far, by kind; empty where nobody makes any."""

    struck: dict[str, int]
