# SPDX-License-Identifier: Apache-2.0
"""The contents of records, and the message about a record that cannot be read."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from pumice.core.messages.decisions import Bind, Evict
from pumice.core.messages.events import CheckpointTaken, ConfigLoaded, CycleRecord, Mutation
from pumice.storage import codec
from pumice.storage.errors import CodecError, DamagedError, EditedCheckpointError, NewerPayloadError
from pumice.storage.journal import API, CHECKPOINT, CONFIG, CYCLE, DECISION, RECORDS, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.storage.journal import Checkpoint, Stored

T = TypeVar("T")
Content = Mutation | CycleRecord | Bind | Evict | ConfigLoaded

_DECODERS: Final[dict[str, Callable[[bytes], Any]]] = {kind: codec.decoder(type_) for kind, type_ in RECORDS.items()}
_OF_STATES: Final = frozenset((API, CYCLE, DECISION, CONFIG))


@overload
def read_as(stored: Stored, type: type[T]) -> T: ...
@overload
def read_as(stored: Stored, type: object) -> Any: ...
def read_as(stored: Stored, type: object) -> Any:  # noqa: A002
    """Return the message of this type in a record. Raises DamagedError, with the record's number, for another content;
    NewerPayloadError where a newer Pumice wrote it.
    """
    return _decoded(stored, codec.decoder(type))


def content(stored: Stored) -> Content | None:
    """Return the message in a record that belongs to a state; None for other kinds. Raises as `read_as`."""
    found: Content | None = told(stored) if stored.kind in _OF_STATES else None
    return found


def told(stored: Stored) -> Any:
    """Return the message in a record; None for a kind of a newer Pumice. Raises as `read_as`."""
    decode = _DECODERS.get(stored.kind)
    return None if decode is None else _decoded(stored, decode)


def _decoded(stored: Stored, decode: Callable[[bytes], Any]) -> Any:
    try:
        return decode(stored.payload)
    except NewerPayloadError:
        raise
    except CodecError as problem:
        raise DamagedError(stored.sequence, f"changed: it cannot be read ({problem})") from problem


# --- Vouchers: a record of each checkpoint's hash


def voucher(checkpoint: Checkpoint) -> Record:
    """Return the record that vouches for a checkpoint."""
    return Record(CHECKPOINT, codec.encode(_said(checkpoint)), at=checkpoint.at)


def is_vouched(checkpoint: Checkpoint, records: Sequence[Stored]) -> bool:
    """Return whether one of these records vouches for the checkpoint."""
    ours = _said(checkpoint)
    return any(
        record.at == checkpoint.at and read_as(record, CheckpointTaken) == ours
        for record in records
        if record.kind == CHECKPOINT
    )


def demand_vouched(checkpoints: Sequence[Checkpoint], records: Sequence[Stored]) -> None:
    """Check that a record vouches for every checkpoint. Raises EditedCheckpointError."""
    edited = [checkpoint for checkpoint in checkpoints if not is_vouched(checkpoint, records)]
    if edited:
        raise EditedCheckpointError(edited, [checkpoint for checkpoint in checkpoints if checkpoint not in edited])


def _said(checkpoint: Checkpoint) -> CheckpointTaken:
    return CheckpointTaken(checkpoint.sequence, blake2b(checkpoint.content, digest_size=16).digest())
