# SPDX-License-Identifier: Apache-2.0
"""Names in a record: those of the objects that it is about, or part of, as `entries.entry_of` tells them.

Most of an object is skipped, not decoded: an index reads every record once, ten times as fast as a story is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.core.messages.decisions import Decision, Evict
from pumice.core.messages.events import BindRefused, BindTimedOut, Mutation, Outcome
from pumice.questions.history.entries import entry_of
from pumice.storage import codec
from pumice.storage.errors import CodecError
from pumice.storage.journal import API, CONFIG, CYCLE, DECISION, FAULT, OUTCOME, SHADOW
from pumice.storage.records import read_as

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.storage.journal import Stored

NAMING: Final = (API, DECISION, OUTCOME, SHADOW, FAULT)
"""Kinds of records that are about objects."""
LISTED: Final = {CYCLE: "\0cycle", CONFIG: "\0config"}
"""Kinds of records whose numbers are noted by kind, under names that no object has."""
REFUSED: Final = "\0refused"
"""The same for outcomes of binds that failed."""


class _Owner(msgspec.Struct, gc=False):
    name: Any = None


class _Annotations(msgspec.Struct, gc=False):
    group: Any = msgspec.field(default=None, name="scheduling.k8s.io/group-name")
    job: Any = msgspec.field(default=None, name="volcano.sh/job-name")


class _Metadata(msgspec.Struct, gc=False):
    owners: tuple[_Owner, ...] | None = msgspec.field(default=None, name="ownerReferences")
    annotations: _Annotations | None = None


class _Belonging(msgspec.Struct, gc=False):
    """The fields of an object that say what it is part of (`objects.belongs_to`)."""

    kind: Any = None
    metadata: _Metadata | None = None


_belonging = codec.decoder(_Belonging)


def names_in(stored: Stored) -> set[str]:
    """Return the bare names, and those of `LISTED` and `REFUSED`. Raises DamagedError, NewerPayloadError."""
    if stored.kind == API:
        found = set(_in_change(stored))
    elif stored.kind == DECISION:
        decision = read_as(stored, Decision)
        about = [decision.name, decision.job, decision.preemptor if isinstance(decision, Evict) else ""]
        found = set(map(_bare, about))
    elif stored.kind == OUTCOME:
        outcome: Any = read_as(stored, Outcome)
        found = {_bare(outcome.name), REFUSED if isinstance(outcome, BindRefused | BindTimedOut) else ""}
    elif stored.kind in LISTED:
        found = {LISTED[stored.kind]}
    else:
        found = _told(stored)
    return found - {""}


def _in_change(stored: Stored) -> Iterator[str]:
    mutation = read_as(stored, Mutation)
    try:
        obj = _belonging(mutation.blob) if mutation.blob else _Belonging()
    except CodecError:
        obj = None
    if obj is None or obj.kind == "Event":  # of an Event the subject counts
        yield from _told(stored)
        return
    metadata = obj.metadata
    yield _bare(mutation.name)
    if metadata is not None:
        notes = metadata.annotations
        each = [owner.name for owner in metadata.owners or ()] + ([notes.group, notes.job] if notes else [])
        yield from (_bare(str(name)) for name in each if str(name) != "None")


def _told(stored: Stored) -> set[str]:
    entry = entry_of(stored)
    return {_bare(name) for name in entry.about | entry.parts_of}


def _bare(name: str) -> str:
    return name.rpartition("/")[2]
