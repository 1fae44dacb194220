"""Reading a whole journal in order, in chunks, with the chain verified on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.storage.chain import Verifier
from pumice.storage.errors import DamagedError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from pumice.storage.journal import ChainReport, Head, Journal, Stored

CHUNK: Final = 4096


async def verified(journal: Journal, head: Head, after: Stored | None = None) -> AsyncGenerator[Sequence[Stored]]:
    """Everything above `after` (all there is: None) up to `head`, chunk by chunk.

    Raises DamagedError at the first record that was edited or is lost. Close it (`aclosing`) when leaving early.
    """
    verifier = Verifier.of(head) if after is None else Verifier(after.sequence, after.hash)
    while verifier.sequence < head.written:
        chunk = await journal.read(verifier.sequence, limit=min(CHUNK, head.written - verifier.sequence))
        if not chunk:
            verifier.breaks(verifier.sequence + 1, f"lost: records up to {head.written} were written")
        good = _while_whole(verifier, chunk)
        if good:
            yield good
        if verifier.first_bad is not None:
            raise DamagedError(verifier.first_bad.sequence, verifier.first_bad.why)


async def leniently(journal: Journal, after: int = 0) -> AsyncGenerator[tuple[Sequence[Stored], ChainReport]]:
    """Everything above `after` that can be read, chunk by chunk, with what the chain says so far.

    A record that was changed is handed out all the same; one that cannot be read ends it. Close it (`aclosing`).
    """
    head = await journal.head()
    verifier = Verifier.of(head)
    if after > head.cut:
        verifier = Verifier(after, (await journal.read(after - 1, limit=1))[0].hash)
    position = max(after, head.cut)
    while position < head.written:
        try:
            chunk = await journal.read(position, limit=min(CHUNK, head.written - position))
        except DamagedError as damage:
            verifier.breaks(damage.sequence or position + 1, damage.why)
            chunk = ()
        if not chunk:
            verifier.breaks(position + 1, f"lost: records up to {head.written} were written")
            yield (), verifier.report()
            return
        for record in chunk:
            if verifier.first_bad is not None or not verifier.follow(record):
                break
        position = chunk[-1].sequence
        yield chunk, verifier.report()


def _while_whole(verifier: Verifier, chunk: Sequence[Stored]) -> Sequence[Stored]:
    good: list[Stored] = []
    for record in chunk:
        if not verifier.follow(record):
            break
        good.append(record)
    return good
