# SPDX-License-Identifier: Apache-2.0
"""Judge of accounts: a Job counts the pods that it has, and what the API acknowledged is in its history."""

from __future__ import annotations

from pumice.proof.storm.invariants.statuses import JobCounts
from pumice.proof.storm.invariants.truth import StormTruth
from pumice.proof.strangers.history import ApiHistory, Broken, Found


def judge_job_counts(history: ApiHistory) -> Found:
    """Yield Volcano Jobs whose counters differ from their pods when all is quiet."""
    truth, at = StormTruth(), 0.0
    counts = JobCounts(lambda: at)
    for change in history.changes:
        at = change.at
        truth.apply(change.mutation)
        if change.mutation.kind == "Pod":  # a Job may be behind until all is quiet: faults delay its controller
            list(counts.see(change.mutation, change.object))
    for words in counts.wrong_at_rest(truth) if history.quiet else ():
        yield Broken("job-counts", words, truth.revision)


def judge_losses(history: ApiHistory) -> Found:
    """Yield writes that were acknowledged and are not in the history, and gaps of the history."""
    known = {change.mutation.revision: change.mutation for change in history.changes}
    before = 0
    for revision in known:
        if before and revision != before + 1:
            yield Broken("nothing-lost", f"revision {revision} follows {before}", revision)
        before = revision
    for told in history.acknowledged:
        written = known.get(told.revision)
        what = f"{told.kind} {told.namespace}/{told.name}"
        if written is None:
            yield Broken("nothing-lost", f"{what} was acknowledged at {told.revision}, which is not in the history")
        elif (written.kind, written.namespace, written.name) != (told.kind, told.namespace, told.name):
            words = f"{what} was acknowledged at {told.revision}, where the history has {written.kind} {written.name}"
            yield Broken("nothing-lost", words, told.revision)
