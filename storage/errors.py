# SPDX-License-Identifier: Apache-2.0
"""Storage's branch of the error tree: the outside world (disks, files) failed, or bytes are damaged.

config.errors.WorldError
└── StorageError
    ├── OpenError               the journal's file cannot be used at all
    │   ├── MissingFileError        there is none, and it was to be read
    │   ├── ForeignFileError        it belongs to another program, or is not a database
    │   ├── NewerSchemaError        a newer Pumice wrote it
    │   ├── TakenError              something is there already, where a new file was to be made
    │   ├── UnwritableError         missing folder, no permission, read-only disk, not a file
    │   └── LockedError             another process (or another journal of this one) has it open
    ├── DiskFullError           an append did not fit; nothing of it was written
    ├── ReadOnlyError           the disk became read-only; nothing was written
    ├── DiskFailedError         the disk failed; what an append in flight left is known only after opening again
    ├── GoneError               its files were removed or replaced while it was open
    ├── ClosedError             used after close, or after DiskFailedError or GoneError
    ├── DamagedError            a record was edited or lost: carries its sequence number
    │   └── EditedCheckpointError   a checkpoint was; carries which, and which were not
    └── CodecError              not MessagePack, not the expected shape, or not plain data
        └── NewerPayloadError       a message whose version is newer than the ones known here
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.config.errors import WorldError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.storage.journal import Checkpoint


class StorageError(WorldError):
    """Root of this layer's errors."""


class OpenError(StorageError):
    """The file at `path` cannot be opened as a journal, for the reason in `problem`."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}")


class MissingFileError(OpenError):
    """The journal to read does not exist."""


class ForeignFileError(OpenError):
    """The file is not a Pumice journal; it was left as it is."""


class NewerSchemaError(OpenError):
    """The journal was written by a newer Pumice: `found` is its schema version, `known` the newest one known here."""

    def __init__(self, path: str, found: int, known: int) -> None:
        self.found = found
        self.known = known
        super().__init__(
            path, f"its schema version {found} is newer than {known}, the newest known here; upgrade Pumice"
        )


class TakenError(OpenError):
    """A new file was to be created where one exists; it was left as it is."""


class UnwritableError(OpenError):
    """The file cannot be created or written."""


class LockedError(OpenError):
    """Another process has the journal open for writing."""


class DiskFullError(StorageError):
    """The disk is full; the append was undone as a whole and the journal is intact."""


class ReadOnlyError(StorageError):
    """The journal can be read but not written; the append was undone as a whole."""


class DiskFailedError(StorageError):
    """Reading or writing failed below SQLite. The journal takes no more appends until it is opened again."""


class JournalGoneError(StorageError):
    """The journal's files are not the ones that were opened. It takes no more appends."""


class ClosedError(StorageError):
    """The journal is closed."""


class DamagedError(StorageError):
    """The record `sequence` differs from what was written, or is gone; `why` describes the evidence."""

    def __init__(self, sequence: int, why: str) -> None:
        self.sequence = sequence
        self.why = why
        super().__init__(f"the journal is damaged at record {sequence}: {why}")


class EditedCheckpointError(DamagedError):
    """No record vouches for the checkpoints `edited`; `kept` are the unchanged ones."""

    def __init__(self, edited: Sequence[Checkpoint], kept: Sequence[Checkpoint]) -> None:
        self.edited = edited
        self.kept = kept
        super().__init__(edited[0].sequence, "the checkpoint that stands for it and all before it was changed")

    def is_needless(self, cut: int) -> bool:
        """Return whether the records say all that these said, where those up to `cut` are gone."""
        return not cut or any(checkpoint.sequence >= cut for checkpoint in self.kept)


class CodecError(StorageError):
    """Data that cannot be packed, or bytes that cannot be unpacked as the expected type."""


class NewerPayloadError(CodecError):
    """A newer Pumice wrote the message `name`, in version `found`; `known` is the newest version known here."""

    def __init__(self, name: str, found: int, known: int) -> None:
        self.name = name
        self.found = found
        self.known = known
        super().__init__(f"{name} has version {found}, newer than {known}, the newest known here; upgrade Pumice")
