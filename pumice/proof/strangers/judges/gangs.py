# SPDX-License-Identifier: Apache-2.0
"""Judge of gangs: when all is quiet a gang has at least its minimum of pods on nodes, or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pumice.core.messages.events import Mutation
from pumice.proof.storm.invariants.pod_book import PodBook
from pumice.proof.storm.invariants.truth import StormTruth
from pumice.proof.strangers.history import ApiChange, ApiHistory, Broken, Found
from pumice.proof.strangers.judges.evictions import evicted_by


@dataclass(slots=True)
class _Gang:
    """State of a gang. `began`: when it had its first pod on a node; `was_whole`: since then it had its minimum
    at some moment. `lost`, `victims`: times at which members went, by themselves and by a subject. `raised`: when its
    minimum last rose, and `added` the pods that were bound later than that.
    """

    began: float | None = None
    was_whole: bool = False
    lost: list[float] = field(default_factory=list[float])
    victims: list[float] = field(default_factory=list[float])
    minimum: int = 0
    raised: float | None = None
    added: list[str] = field(default_factory=list[str])


def judge_gangs(history: ApiHistory) -> Found:
    """Yield gangs with some pods on nodes, but fewer than their minimum, while all is quiet.

    A gang that had its minimum and lost members since is what the subject cannot help, unless the subject evicted them.
    One that lost members or was given a greater minimum while it was being started is not judged: what the subject
    decided on was right. But no pod is bound `slack_s` after a minimum was raised, unless the gang gets all that it
    needs since (`grows-whole`): a subject that believes an old PodGroup breaks the gang, though no read was wrong.
    """
    truth, gangs, quiet = StormTruth(), dict[str, _Gang](), [*history.quiet]
    for change in history.changes:
        revision = change.mutation.revision
        while quiet and quiet[0] < revision:
            yield from _at_rest(truth, gangs, history, quiet.pop(0))
        before = _members(truth, change.mutation)
        truth.apply(change.mutation)
        _note(truth, gangs, change.mutation, before, change.at)
        _note_growth(truth, gangs, change, before, history.slack_s)
    for revision in quiet:
        yield from _at_rest(truth, gangs, history, revision)


def _members(truth: StormTruth, mutation: Mutation) -> PodBook | None:
    return truth.pods.get(f"{mutation.namespace}/{mutation.name}") if mutation.kind == "Pod" else None


def _note(truth: StormTruth, gangs: dict[str, _Gang], mutation: Mutation, before: PodBook | None, at: float) -> None:
    """Note what a change did to the gang of its pod, or to the gang itself."""
    job = f"{mutation.namespace}/{mutation.name}"
    if mutation.kind == "Pod":
        after = truth.pods.get(job) if mutation.type != "DELETED" else None
        known = after or before
        if known is None:
            return
        job = known.job
        if before is not None and not before.leaves and (after is None or after.leaves or after.uid != before.uid):
            gang = gangs.setdefault(job, _Gang())
            (gang.victims if evicted_by(mutation) else gang.lost).append(at)
    elif mutation.kind != "PodGroup":
        return
    gang = gangs.setdefault(job, _Gang())
    placed = len(_placed(truth, job))
    if not placed:
        gang.began, gang.was_whole = None, False
        return
    gang.began = at if gang.began is None else gang.began
    gang.was_whole = gang.was_whole or placed >= _minimum(truth, job, truth.revision)


def _note_growth(
    truth: StormTruth, gangs: dict[str, _Gang], change: ApiChange, before: PodBook | None, slack_s: float
) -> None:
    """Note a minimum that rises, and pods that are bound afterwards."""
    mutation, name = change.mutation, f"{change.mutation.namespace}/{change.mutation.name}"
    if mutation.kind == "PodGroup":
        gang, minimum = gangs.setdefault(name, _Gang()), _minimum(truth, name, truth.revision)
        if gang.minimum and minimum > gang.minimum:
            gang.raised, gang.added = change.at, []
        gang.minimum = minimum
    elif mutation.kind == "Pod" and (pod := truth.pods.get(name)) is not None and pod.node:
        gang = gangs.setdefault(pod.job, _Gang())
        is_new = before is None or not before.node
        if is_new and gang.raised is not None and change.at > gang.raised + slack_s:
            gang.added.append(mutation.name)


def _placed(truth: StormTruth, job: str) -> list[PodBook]:
    """Return the members that are on nodes, or were until they succeeded."""
    return [pod for pod in truth.members(job) if pod.node and pod.phase != "Failed"]


def _minimum(truth: StormTruth, job: str, revision: int) -> int:
    """Return the least that the gang has needed since then; 0 when it does not exist."""
    history = truth.groups.get(job)
    known: Sequence[tuple[int, str] | None] = [] if history is None else history.since(revision)
    return min((each[0] for each in known if each is not None), default=0)


def _at_rest(truth: StormTruth, gangs: dict[str, _Gang], history: ApiHistory, revision: int) -> Iterator[Broken]:
    for job, gang in sorted(gangs.items()):
        if gang.began is None:
            continue
        seen = history.seen_by(gang.began)
        needed, placed = _minimum(truth, job, seen), _placed(truth, job)
        if not placed or len(placed) >= needed:
            yield from _grown_in_part(truth, job, gang, revision)
            continue
        names = ", ".join(sorted(pod.key.partition("/")[2] for pod in placed))
        if gang.was_whole:
            if gang.victims and not gang.lost:
                words = f"gang {job} needs {needed}, evictions by the subject leave it {len(placed)} ({names})"
                yield Broken("whole-gangs", words, revision)
            else:
                yield from _grown_in_part(truth, job, gang, revision)
        elif not any(at >= gang.began - history.lag_s for at in (*gang.lost, *gang.victims)):
            words = f"gang {job} needs {needed}, and was started with {len(placed)} ({names})"
            yield Broken("whole-gangs", words, revision)


def _grown_in_part(truth: StormTruth, job: str, gang: _Gang, revision: int) -> Iterator[Broken]:
    """Yield a gang that got pods after its minimum was raised, and not all that it needs since."""
    if gang.raised is None or not gang.added or any(at >= gang.raised for at in (*gang.lost, *gang.victims)):
        return
    placed = len(_placed(truth, job))
    if placed < gang.minimum:
        words = f"gang {job} needs {gang.minimum} since it grew, and has {placed}; bound since: {', '.join(gang.added)}"
        yield Broken("grows-whole", words, revision)
