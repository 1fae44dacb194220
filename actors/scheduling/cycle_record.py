"""What the journal keeps of a cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.actors.scheduling.commit import statuses_of
from pumice.config import rules
from pumice.core import digest
from pumice.core.messages.events import CycleRecord

if TYPE_CHECKING:
    from pumice.actors.scheduling.decider import Moment
    from pumice.core.messages.decisions import CycleResult
    from pumice.core.messages.questions import OutsideAnswers
    from pumice.core.messages.replies import SnapshotTaken


def record_of(
    taken: SnapshotTaken,
    config_digest: str,
    moment: Moment,
    result: CycleResult,
    carry: dict[str, Any],
    answers: OutsideAnswers | None = None,
    scheduler: str = "",
) -> CycleRecord:
    """What it saw and what came out; `carry`: what it started with; `scheduler`: whose it is, "" for Volcano's."""
    return CycleRecord(
        cycle=moment.cycle,
        now=moment.now,
        seed=moment.seed,
        revision=taken.revision,
        version=taken.version,
        config_digest=config_digest,
        digest=result.digest,
        decisions=len(result.binds) + len(result.evicts),
        carry_before=carry,
        carry=result.carry,
        operations=taken.operations,
        statuses=statuses_of(result, taken.revision),
        wake_at=result.wake_at,
        rules=rules.VERSION,
        digest_version=digest.VERSION,
        answers=answers,
        scheduler=scheduler,
        failed=result.failed,
    )
