"""Checkpoints stand beside the chain of records; that nobody has changed one is said by a record of its hash."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from pumice.core.messages.events import CheckpointTaken
from pumice.storage import codec
from pumice.storage.errors import EditedCheckpointError
from pumice.storage.journal import CHECKPOINT, Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.storage.journal import Checkpoint, Stored


def voucher(checkpoint: Checkpoint) -> Record:
    """The record that vouches for a checkpoint."""
    return Record(CHECKPOINT, codec.encode(_said(checkpoint)), at=checkpoint.at)


def is_vouched(checkpoint: Checkpoint, records: Sequence[Stored]) -> bool:
    """Whether one of these records vouches for it."""
    ours = _said(checkpoint)
    return any(
        record.at == checkpoint.at and codec.decode(record.payload, CheckpointTaken) == ours
        for record in records
        if record.kind == CHECKPOINT
    )


def demand_vouched(checkpoints: Sequence[Checkpoint], records: Sequence[Stored]) -> None:
    """Raises EditedCheckpointError when there are some for which no record vouches."""
    edited = [checkpoint for checkpoint in checkpoints if not is_vouched(checkpoint, records)]
    if edited:
        raise EditedCheckpointError(edited, [checkpoint for checkpoint in checkpoints if checkpoint not in edited])


def _said(checkpoint: Checkpoint) -> CheckpointTaken:
    return CheckpointTaken(checkpoint.sequence, blake2b(checkpoint.content, digest_size=16).digest())
