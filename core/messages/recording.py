"""Commands to the recorder."""

from __future__ import annotations

from msgspec import Struct

from pumice.core.messages.message import Message


class Entry(Struct, frozen=True, gc=False):
    """One record for the journal; `payload` is the very bytes that travelled.

    `cause` is the sequence number of the record it follows from (0: none; -k: the k-th entry of the same Append).
    """

    kind: str
    payload: bytes
    cause: int = 0


class Append(Message, frozen=True):
    """Write these records, in order, in one transaction. Reply (when asked): Appended, once they are on disk."""

    entries: tuple[Entry, ...]


class SaveCheckpoint(Message, frozen=True):
    """Keep a state that stands for all records up to `sequence`, and a record of its hash.

    Reply (when asked): Appended, of that record; (0, 0) when it could not be kept, which loses nothing but time.
    """

    sequence: int
    at: float
    content: bytes


RecorderCommand = Append | SaveCheckpoint
