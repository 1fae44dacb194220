"""What the mirror of another cluster asks of the api here."""

from __future__ import annotations

from pumice.core.messages.message import Message


class Reflect(Message, frozen=True):
    """Another cluster has this object (MessagePack), or (b"") no longer has it: store it as it is there, unjudged.

    Only its resourceVersion becomes the store's own. What is stored already changes nothing; an object of another uid
    takes the place of the one of that name. `sequence`: the journal number of the decision that it carries out, 0: of
    none. Reply: Accepted | Refused, for a kind that is unknown.
    """

    kind: str
    namespace: str
    name: str
    blob: bytes
    user: str = ""
    sequence: int = 0
