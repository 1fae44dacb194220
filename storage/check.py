"""The integrity of a whole journal, streamed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.chain import Verifier
from storage.errors import DamagedError

if TYPE_CHECKING:
    from storage.journal import ChainReport, Head, Journal

CHUNK = 2048
"""Records at a time: a few milliseconds of work between two chances for other tasks to run."""


async def check(journal: Journal) -> ChainReport:
    """Verify every record there was when the check began. The first bad one is named by its sequence number."""
    head = await journal.head()
    verifier = Verifier.of(head)
    while verifier.first_bad is None and verifier.sequence < head.written:
        await _check_chunk(journal, head, verifier)
    if verifier.first_bad is None:
        await _check_checkpoints(journal, verifier)
    return verifier.report()


async def _check_checkpoints(journal: Journal, verifier: Verifier) -> None:
    try:
        await journal.checkpoints()
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
