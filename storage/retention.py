# SPDX-License-Identifier: Apache-2.0
"""Retention of a journal. A cut never goes beyond the oldest checkpoint, so that a restart is always possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from pumice.core.messages.events import CycleRecord
from pumice.storage.journal import CYCLE
from pumice.storage.records import read_as

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.storage.journal import Journal, Stored

DAY_S = 86_400.0


class Rotation(Struct, frozen=True):
    """Limits at which records leave the journal's file: so many `records` for a segment, a span of so many `seconds`,
    or so many `bytes` in the file. None: never for that.
    """

    records: int | None = None
    seconds: float | None = None
    bytes: int | None = None


class Retention(Struct, frozen=True):
    """Lower limits on what is kept: the last `seconds`, the last `cycles`, the last `events` (records). None: no limit.

    A record stays as long as any rule keeps it; with no rule at all everything stays. `rotation`: records leave the
    file for segments; then `bytes` limits the file and its segments together, whatever the rules keep.
    """

    seconds: float | None = None
    cycles: int | None = None
    events: int | None = None
    rotation: Rotation | None = None
    bytes: int | None = None


KEEP_ALL: Final = Retention()


def parse_keep(
    keep: str | None, events: int | None = None, segments: str | None = None, most: int | None = None
) -> Retention:
    """Read limits: `keep` is days (`7d`) or cycles, `events` a number of records; `segments` is records, or days, and
    `most` bytes. Raises ValueError for another text.
    """
    days = keep is not None and keep.endswith("d")
    return Retention(
        seconds=float(keep[:-1]) * DAY_S if keep is not None and days else None,
        cycles=int(keep) if keep is not None and not days else None,
        events=events,
        rotation=None if segments is None else _rotation(segments, most),
        bytes=most,
    )


PARTS: Final = 8
"""So many segments at least fill the bytes that a journal may take: whole ones are deleted."""


def _rotation(segments: str, most: int | None) -> Rotation:
    size = None if most is None else most // PARTS
    if segments.endswith("d"):
        return Rotation(seconds=float(segments[:-1]) * DAY_S, bytes=size)
    return Rotation(records=int(segments), bytes=size)


async def trim(journal: Journal, retention: Retention, now: float) -> None:
    """Forget the records that no rule keeps, except those that recovery needs."""
    through = await cut_point(journal, retention, now)
    if through:
        await journal.cut(through)


KEPT_CHECKPOINTS: Final = 2
"""Of a journal without segments: the newest, and one in case that cannot be read."""
APART: Final = 16_000
"""Records between two checkpoints of a segment, at least; 10,000 take a tenth of a second to fold."""
BYTES_PER_RECORD: Final = 32
"""Of checkpoints within a segment, at most; the records take 100 to 200."""


def apart(size: int) -> int:
    """Return after how many records a segment keeps the next checkpoint, if that has so many bytes."""
    return max(APART, size // BYTES_PER_RECORD)


def interval(every: int, retention: Retention, size: int) -> int:
    """Return the number of records between two checkpoints of so many bytes: `every`, or fewer if records go into
    segments, since a question about a moment folds those since the checkpoint before it, and a segment ends at one.
    """
    if (rotation := retention.rotation) is None:
        return every
    # A segment of fewer records would be a checkpoint rather than records.
    wanted = every if rotation.records is None else max(rotation.records, size // BYTES_PER_RECORD)
    # A quarter more than segments ask for: the next checkpoint may be larger.
    return min(every, wanted, apart(size) * 5 // 4)


def too_near(checkpoints: Sequence[tuple[int, int]]) -> list[int]:
    """Return which of the checkpoints, rising (last record, bytes), are too near to the first of them, or to the one
    before that is kept.
    """
    kept, near = checkpoints[0][0] if checkpoints else 0, list[int]()
    for sequence, size in checkpoints[1:]:
        if sequence - kept < apart(size):
            near.append(sequence)
        else:
            kept = sequence
    return near


async def cut_point(journal: Journal, retention: Retention, now: float) -> int:
    """Return the last record that no rule keeps; 0 when none is to be cut. The journal spares the records that recovery
    needs.
    """
    head = await journal.head()
    points: list[int] = []
    if retention.events is not None:
        points.append(head.sequence - retention.events)
    if retention.seconds is not None:
        oldest = now - retention.seconds
        points.append(await _last_before(journal, head.cut, head.sequence, lambda record: record.at < oldest))
    if retention.cycles is not None:
        points.append(await _before_cycles(journal, head.cut, head.sequence, retention.cycles))
    # The least: a record stays as long as any rule keeps it.
    point = min(points, default=0)
    # Rules may ask for less than was cut already, after a change of the settings.
    return point if point > head.cut else 0


async def _before_cycles(journal: Journal, cut: int, end: int, kept: int) -> int:
    newest = await journal.last(CYCLE)
    if newest is None:
        return 0
    first = read_as(newest, CycleRecord).cycle - kept + 1
    return await _last_before(journal, cut, end, lambda record: read_as(record, CycleRecord).cycle < first, kind=CYCLE)


async def _last_before(
    journal: Journal, low: int, high: int, early: Callable[[Stored], bool], *, kind: str | None = None
) -> int:
    """Return the largest number such that all records up to it are `early`; times and cycles only rise. It takes some
    twenty reads.
    """
    # Halving over reads of one record, since times and cycles rise: a scan would read the whole journal.
    while low < high:
        middle = (low + high) // 2
        found = await _next(journal, middle, kind)
        if found is not None and found.sequence <= high and early(found):
            low = found.sequence
        else:
            high = middle
    return low


async def _next(journal: Journal, after: int, kind: str | None) -> Stored | None:
    records = await journal.read(after, None if kind is None else (kind,), 1)
    return records[0] if records else None
