"""The integrity of a whole journal, streamed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.storage.chain import Verifier
from pumice.storage.errors import DamagedError, EditedCheckpointError

if TYPE_CHECKING:
    from pumice.storage.journal import ChainReport, Head, Journal

REMEDY: Final = "all records are whole: go on with a copy that does without it (pumice journal FILE --backup TO)"
NO_REMEDY: Final = "the records that it stood for were cut, so nothing can take its place: go on with an earlier copy"
CHUNK = 2048
"""Records at a time: a few milliseconds of work between two chances for other tasks to run."""


async def check(journal: Journal) -> ChainReport:
    """Verify every record there was when the check began. The first bad one is named by its sequence number."""
    head = await journal.head()
    verifier = Verifier.of(head)
    while verifier.first_bad is None and verifier.sequence < head.written:
        await _check_chunk(journal, head, verifier)
    if verifier.first_bad is None:
        await _check_checkpoints(journal, head.cut, verifier)
    return verifier.report()


async def _check_checkpoints(journal: Journal, cut: int, verifier: Verifier) -> None:
    try:
        await journal.checkpoints()
    except EditedCheckpointError as edited:
        verifier.breaks(edited.sequence, f"{edited.why}; {REMEDY if edited.is_needless(cut) else NO_REMEDY}")
    except DamagedError as damage:
        verifier.breaks(damage.sequence, damage.why)


async def _check_chunk(journal: Journal, head: Head, verifier: Verifier) -> None:
    try:
        records = await journal.read(verifier.sequence, limit=CHUNK)
    except DamagedError as damage:
        # What is missing altogether comes before what cannot be read. Number 0: the file itself is broken thereabouts.
        lost = damage.sequence > verifier.sequence + 1
        verifier.breaks(verifier.sequence + 1, "lost" if lost else damage.why)
        return
    if not records:
        verifier.breaks(verifier.sequence + 1, f"lost: records up to {head.written} were written")
    for record in records:
        if not verifier.follow(record):
            return
