"""Checkpoints stand beside the chain of records; that nobody has changed one is said by a record of its hash."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from core.messages.events import CheckpointTaken
from storage import codec
from storage.errors import DamagedError
from storage.journal import CHECKPOINT, Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.journal import Checkpoint, Stored


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
    """Raises DamagedError naming the record up to which the first of them stands that no record vouches for."""
    for checkpoint in checkpoints:
        if not is_vouched(checkpoint, records):
            raise DamagedError(checkpoint.sequence, "the checkpoint that stands for it and all before it was changed")


def _said(checkpoint: Checkpoint) -> CheckpointTaken:
    return CheckpointTaken(checkpoint.sequence, blake2b(checkpoint.content, digest_size=16).digest())
