# SPDX-License-Identifier: Apache-2.0
"""A recorded cycle and the same cycle decided again: the first difference."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pumice.core import digest as digests
from pumice.core.digest import as_row, digest
from pumice.core.messages.commands import WriteStatus
from pumice.core.messages.decisions import Bind
from pumice.core.objects.metadata import Object
from pumice.core.session.carry import Carry
from pumice.storage import codec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.core.digest import Covered
    from pumice.core.messages.decisions import CycleResult, Decision
    from pumice.core.messages.events import CycleRecord
    from pumice.storage.history import RecordedCycle


@dataclass(frozen=True)
class CycleDifference:
    """The first difference. `task`: "namespace/name" (a queue: its name; "": the cycle as a whole).

    `recorded` and `decided` are what the journal and the core say of it; None: nothing.
    """

    cycle: int
    task: str
    recorded: Object | None
    decided: Object | None


def compare(cycle: RecordedCycle, result: CycleResult) -> CycleDifference | None:
    """Return the first difference, decisions before statuses before the digest; None when all is the same.

    Only what the digest covered when the cycle was recorded counts. Raises NewerVersionError.
    """
    record, number = cycle.record, cycle.record.cycle
    covered = digests.covered(record.digest_version)
    recorded, result_digest = _parts(covered, cycle.decisions), _digest(result, record.digest_version)
    decided = _parts(covered, (*result.binds, *result.evicts))
    for theirs, ours in zip_longest(recorded, decided):
        if theirs is None or ours is None or theirs.said != ours.said:
            return _difference(number, theirs, ours)
    if record.digest == result_digest and _carry(record.carry) == _carry(result.carry):
        return None
    return _status_difference(record, covered, result) or _whole_difference(record, result, result_digest)


class _Part(NamedTuple):
    """A kind of decision, and its compared fields."""

    what: Any
    said: Any


def _parts(covered: Covered, decisions: Iterable[Decision]) -> list[_Part]:
    bind, evict = as_row(covered.bind), as_row(covered.evict)
    return [_Part(each, bind(each) if isinstance(each, Bind) else evict(each)) for each in decisions]


def _digest(result: CycleResult, version: int) -> str:
    if version == digests.VERSION:
        return result.digest
    return digest(result.binds, result.evicts, result.pod_conditions, result.pod_groups, result.queues, version)


def _carry(plain: Object) -> Any:
    """Return the carry in the form that it has today: fields that older ones did not have start fresh."""
    return _plain(Carry.from_dict(plain).to_dict())


def _difference(number: int, recorded: _Part | None, decided: _Part | None) -> CycleDifference:
    theirs, ours = recorded and recorded.what, decided and decided.what
    return CycleDifference(number, _name(theirs or ours), _plain(theirs), _plain(ours))


def _status_difference(record: CycleRecord, covered: Covered, result: CycleResult) -> CycleDifference | None:
    written = codec.decode(record.statuses, WriteStatus) if record.statuses else WriteStatus(result.cycle)
    for fields, theirs, ours in (
        (covered.pod, written.pod_conditions, result.pod_conditions),
        (covered.pod_group, written.pod_groups, result.pod_groups),
        (covered.queue, written.queues, result.queues),
    ):
        row = as_row(fields)
        before, after = ({_name(each): _Part(each, row(each)) for each in some} for some in (theirs, ours))
        for name in [*before, *after]:
            was, came = before.get(name), after.get(name)
            if was is None or came is None or was.said != came.said:
                return _difference(record.cycle, was, came)
    return None


def _whole_difference(record: CycleRecord, result: CycleResult, result_digest: str) -> CycleDifference:
    if record.digest != result_digest:
        return CycleDifference(record.cycle, "", {"digest": record.digest}, {"digest": result_digest})
    return CycleDifference(record.cycle, "", {"carry": record.carry}, {"carry": result.carry})


def _name(what: Any) -> str:
    namespace = getattr(what, "namespace", "")
    return f"{namespace}/{what.name}" if namespace else str(what.name)


def _plain(what: object) -> Any:
    return None if what is None else msgspec.to_builtins(what)
