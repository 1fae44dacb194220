# SPDX-License-Identifier: Apache-2.0
"""The coverage of a cycle's digest: fields declared here by version, whatever classes hold them and however they are
encoded. A new field of a class is not covered, and changes no digest, until a new version lists it.

A version is written once and never changed, for a journal says for every cycle by which version its digest was made.
What a new version covers is kept apart from what was decided before it existed, so journals of all versions verify.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

import msgspec

from pumice.config.errors import NewerVersionError

if TYPE_CHECKING:
    from pumice.core.messages.decisions import Bind, Evict, PodCondition, PodGroupStatus, QueueStatus

VERSION: Final = 3
"""The one that new cycles are digested by."""


BATCH: Final = 512
_MANY: Final = (tuple, list)
_Rows = Callable[[Sequence[Any]], list[Any]]
_Order = Literal["deterministic"] | None


class Fields(NamedTuple):
    """Fields by name, in the order of coverage. `inner`: those that hold records themselves (one, a sequence or None).
    Version 1 was an encoding: `tag` stood in front, and fields of `omits` only where they had a value.
    """

    names: tuple[str, ...]
    inner: Mapping[str, Fields] = {}
    tag: str = ""
    omits: tuple[str, ...] = ()


class Covered(NamedTuple):
    """The fields covered of each kind of thing that a cycle decides or writes."""

    bind: Fields
    evict: Fields
    pod: Fields
    pod_group: Fields
    queue: Fields


_DEVICES = Fields(("claim", "devices", "node"))
_CARRIED = ("volumes", "provisions", "devices", "timeout_s")
_BIND = ("namespace", "name", "uid", "node", "job", "pre_bind")
_EVICT = ("namespace", "name", "uid", "node", "job", "reason", "preemptor", "action", "score")
_POD = ("namespace", "name", "uid", "reason", "message", "nominated")
_GROUP = ("namespace", "name", "phase", "conditions", "running", "succeeded", "failed", "annotations")
_CONDITION = Fields(("type", "status", "reason", "message"))
_QUEUE = ("name", "allocated")

COVERED: Final[Mapping[int, Covered]] = {
    1: Covered(
        Fields(_BIND, {"pre_bind": Fields(_CARRIED, {"devices": _DEVICES})}, "Bind", ("pre_bind",)),
        Fields(_EVICT, tag="Evict"),
        Fields(_POD, tag="PodCondition"),
        Fields(_GROUP, {"conditions": _CONDITION}, "PodGroupStatus"),
        Fields(_QUEUE, tag="QueueStatus"),
    ),
    2: Covered(
        Fields(_BIND, {"pre_bind": Fields((*_CARRIED, "annotations"), {"devices": _DEVICES})}),
        Fields(_EVICT),
        Fields(_POD),
        Fields(_GROUP, {"conditions": _CONDITION}),
        Fields(_QUEUE),
    ),
    3: Covered(
        Fields(_BIND, {"pre_bind": Fields((*_CARRIED, "annotations", "locks"), {"devices": _DEVICES})}),
        Fields(_EVICT),
        Fields(_POD),
        Fields(_GROUP, {"conditions": _CONDITION}),
        Fields(_QUEUE),
    ),
}


def digest(
    binds: Sequence[Bind],
    evicts: Sequence[Evict],
    pods: Sequence[PodCondition],
    pod_groups: Sequence[PodGroupStatus],
    queues: Sequence[QueueStatus],
    version: int = VERSION,
) -> str:
    """Return the declared fields of what a cycle decides and writes (binds, evictions, conditions, statuses), in order,
    as 32 hexadecimal digits. Raises NewerVersionError.
    """
    kinds = list(zip(_rows_of(version), (binds, evicts, pods, pod_groups, queues), strict=True))
    # Version 1 encoded dictionaries in their own order, and digests of old journals must stay what they were.
    order: _Order = None if version == 1 else "deterministic"
    if sum([len(records) for _, records in kinds]) <= BATCH:
        said = msgspec.json.encode([rows(records) if records else () for rows, records in kinds], order=order)
        return blake2b(said, digest_size=16).hexdigest()
    found = blake2b(b"[", digest_size=16)
    start = b"["
    for rows, records in kinds:
        found.update(start)
        for piece in _pieces(rows, records, order):
            found.update(piece)
        # The very bytes that one encoding of all kinds would give, without holding all of them.
        start = b"],["
    found.update(b"]]")
    return found.hexdigest()


@lru_cache(maxsize=len(COVERED))
def _rows_of(version: int) -> tuple[_Rows, ...]:
    """Return what makes the rows of each kind, once a process. Raises NewerVersionError."""
    rows = _as_encoded_each if version == 1 else _as_rows
    return tuple([rows(fields) for fields in covered(version)])


def _pieces(rows: _Rows, records: Sequence[Any], order: _Order) -> Iterator[bytes]:
    """Yield the JSON of records without the brackets, a few at a time, while their inputs are in the processor's
    cache.
    """
    for first in range(0, len(records), BATCH):
        said = msgspec.json.encode(rows(records[first : first + BATCH]), order=order)
        yield b"," + said[1:-1] if first else said[1:-1]


def covered(version: int) -> Covered:
    """Return what a version covers. Raises NewerVersionError."""
    found = COVERED.get(version)
    if found is None:
        raise NewerVersionError("the digest of a cycle", version, VERSION)
    return found


def as_row(fields: Fields) -> Callable[[Any], Any]:
    """Return a function that turns the values of these fields of a record into a tuple."""
    rows = _as_rows(fields)
    return lambda record: rows((record,))[0]


def _as_rows(fields: Fields) -> _Rows:
    """Return the function that gives the rows of several records of one class, as `as_row` does of one: most hold no
    records themselves.
    """
    # One call a record: attrgetter reads all fields in C.
    by_name = attrgetter(*fields.names)
    inner = [(fields.names.index(name), _as_rows(each)) for name, each in fields.inner.items()]

    def rows(records: Sequence[Any]) -> list[Any]:
        found: list[Any] = list(map(by_name, records))
        for index, inner_rows in inner:
            for place, row in enumerate(found):
                held: Any = row[index]
                if held:
                    many = isinstance(held, _MANY)
                    said = inner_rows(cast("Sequence[Any]", held)) if many else inner_rows((held,))[0]
                    found[place] = (*row[:index], said, *row[index + 1 :])
        return found

    return rows


def as_encoded(fields: Fields) -> Callable[[Any], Any]:
    """Return a function that encodes a record as version 1 digested it: by field name, as its class was encoded
    then.
    """
    inner = {name: _each(as_encoded(each)) for name, each in fields.inner.items()}
    head = {"_": fields.tag} if fields.tag else {}

    def plain(record: object) -> Any:
        found = {name: getattr(record, name) for name in fields.names}
        there = {name: value for name, value in found.items() if name not in fields.omits or value is not None}
        return head | {name: inner[name](value) if name in inner else value for name, value in there.items()}

    return plain


def _as_encoded_each(fields: Fields) -> _Rows:
    one = as_encoded(fields)
    return lambda records: list(map(one, records))


def _each(row: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Apply a function to None, one record or several."""

    def each(value: object) -> Any:
        if value is None:
            return None
        if isinstance(value, _MANY):
            return list(map(row, cast("Sequence[Any]", value)))
        return row(value)

    return each
