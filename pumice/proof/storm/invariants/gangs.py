"""What a cycle did to gangs, by what the scheduler could know: none starts in part, none that runs is broken up."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pumice.core.messages.decisions import Bind, Decision, Evict
    from pumice.proof.storm.invariants.pod_book import PodBook
    from pumice.proof.storm.invariants.truth import StormTruth


def partial_gangs(truth: StormTruth, binds: Iterable[Bind], decided: Set[str], revision: int) -> list[str]:
    """A gang that is started at all is started whole: what is wrong with those that a cycle's binds are for."""
    return [words for job in _jobs(binds) if (words := partial_gang(truth, job, decided, revision))]


def broken_gangs(
    truth: StormTruth, victims: Iterable[Evict], decided: Set[str], leaving: Set[str], revision: int
) -> list[str]:
    """What is wrong with the gangs that a cycle's victims are of."""
    return [words for job in _jobs(victims) if (words := broken_gang(truth, job, decided, leaving, revision))]


def _jobs(decisions: Iterable[Decision]) -> dict[str, None]:
    return dict.fromkeys(decision.job for decision in decisions)


def partial_gang(truth: StormTruth, job: str, decided: Set[str], revision: int) -> str:
    """Words when the job's pods that are placed or decided are fewer than it needs; "" when all is well."""
    needed = _needed(truth, job, revision)
    placed = [pod for pod in truth.members(job) if pod.phase != "Failed" and (pod.node or pod.uid in decided)]
    if len(placed) + len(truth.lost_after(job, revision)) >= needed:
        return ""
    return f"gang {job} needs {needed}, {len(placed)} are placed or on their way"


def broken_gang(truth: StormTruth, job: str, decided: Set[str], leaving: Set[str], revision: int) -> str:
    """Words when a cycle took victims of the job and left it fewer pods than it needs; "" when all is well.

    `decided`, `leaving`: uids. What happened after `revision` the scheduler could not know: a pod that has failed or
    gone since, or that somebody has begun to delete, still counted.
    """
    needed = _needed(truth, job, revision)
    stay = [pod for pod in truth.members(job) if _counts(truth, pod, decided, revision)]
    uids = {pod.uid for pod in stay} | {uid for uid in truth.lost_after(job, revision) if truth.stayed(uid, revision)}
    left = len(uids - leaving)
    return "" if left >= needed else f"gang {job} needs {needed}, its victims leave it {left}"


def _needed(truth: StormTruth, job: str, revision: int) -> int:
    """The least that it has needed since then; 0 when there is no such gang."""
    history = truth.groups.get(job)
    groups = [] if history is None else [each for each in history.since(revision) if each is not None]
    return min((each[0] for each in groups), default=0)


def _counts(truth: StormTruth, pod: PodBook, decided: Set[str], revision: int) -> bool:
    """Whether the pod counts for its gang as Volcano's ready tasks do."""
    if pod.ended:
        return pod.phase == "Succeeded"
    return bool(pod.node or pod.uid in decided) and truth.stayed(pod.uid, revision)
