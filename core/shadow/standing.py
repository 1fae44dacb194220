# SPDX-License-Identifier: Apache-2.0
"""The differences between two schedulers while nothing is decided: phases and reasons that one would write differently,
and decisions that only one would make.

A scheduler needs time to write what it found. So only what is there look after look, unchanged, is a difference. Nor is
what Volcano leaves to chance: which of equally good nodes a pod is held for (`SelectBestNodeAndScore`), and whose words
a PodGroup gives as the origin (`JobInfo.FitError` takes the first of a map).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from pumice.core.life.pod_group import LABELS as PHASES
from pumice.core.life.task import TaskStatus
from pumice.core.messages.decisions import Bind, Decision, PodGroupCondition
from pumice.core.messages.events import ShadowDifference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pumice.core.messages.decisions import CycleResult
    from pumice.core.objects.pod import Task
    from pumice.core.shadow.guide import Guide, OtherChoice
    from pumice.core.state.jobs import Job
    from pumice.core.state.snapshot import Snapshot

# --- Deeds of two schedulers, pod by pod

Deed = tuple[bool, str]
"""(True for a bind, the pod's uid)."""


class DeedDifference(NamedTuple):
    """A pod that only one of the two binds or evicts (None for the other), or that they put on different nodes: then
    `choice` says why, where a guide recorded it.
    """

    there: Decision | None
    here: Decision | None
    choice: OtherChoice | None = None

    @property
    def pod(self) -> Decision:
        """Return the decision about the pod."""
        found = self.there or self.here
        assert found is not None
        return found


def deed_of(decision: Decision) -> Deed:
    """Return what the decision does, without the place."""
    return isinstance(decision, Bind), decision.uid


def wishes_of(decisions: Iterable[Decision]) -> dict[str, str]:
    """Return the nodes that a guide follows, by uid."""
    return {each.uid: each.node for each in decisions if isinstance(each, Bind)}


def differing(decisions: Iterable[Decision], result: CycleResult, guide: Guide | None = None) -> list[DeedDifference]:
    """Return the differences between the other's `decisions` and the `result` here. Where a guide followed another
    node, the node that would have been taken here counts.
    """
    here: tuple[Decision, ...] = (*result.binds, *result.evicts)
    theirs, ours = ({deed_of(each): each for each in some} for some in (decisions, here))
    found: list[DeedDifference] = []
    # A dictionary, not a set: the order must not depend on the hash seed.
    for deed in dict.fromkeys((*theirs, *ours)):
        made, mine = theirs.get(deed), ours.get(deed)
        choice = guide.choices.get(deed[1]) if guide is not None and deed[0] else None
        # Both nodes are equally good: only the order of names told them apart.
        if choice is not None and choice.tie:
            choice = None
        if made is None or mine is None or made.node != mine.node or choice is not None:
            found.append(DeedDifference(made, mine, choice))
    return found


def ties(decisions: Iterable[Decision], result: CycleResult, guide: Guide) -> int:
    """Return how many pods are on the same node only because that node was as good as the first one by name."""
    bound = {each.uid: each.node for each in result.binds}
    made = [each for each in decisions if isinstance(each, Bind) and bound.get(each.uid) == each.node]
    return sum(each.uid in guide.choices and guide.choices[each.uid].tie for each in made)


# In Volcano's words about a pod that waits for its gang (`api/job_info.go`, TaskSchedulingReason).
HELD: Final = re.compile(r" can possibly be assigned to (\S+), once ")
ORIGIN: Final = ". Origin reason is "


class WrittenThere(NamedTuple):
    """The other cluster's written state when a session begins, by "namespace/name": the phase and conditions of
    PodGroups, the conditions of waiting pods; by uid, the nodes that these could have once their gang fits.
    """

    phases: dict[str, str]
    conditions: dict[str, tuple[PodGroupCondition, ...]]
    waiting: dict[str, tuple[str, str]]
    held: dict[str, str]


def standing_of(snapshot: Snapshot) -> WrittenThere:
    """Return the written state; to be called before a session takes the snapshot over."""
    jobs = _jobs(snapshot)
    waits = [task for task in snapshot.tasks.handles if task is not None and _waits(snapshot, task)]
    return WrittenThere(
        {job.key: PHASES[snapshot.jobs.phase[job.row]] for job in jobs},
        {job.key: job.pod_group.conditions for job in jobs},
        {task.key: task.condition or ("", "") for task in waits},
        {task.uid: held.group(1) for task in waits if (held := HELD.search((task.condition or ("", ""))[1]))},
    )


def _jobs(snapshot: Snapshot) -> list[Job]:
    return snapshot.jobs.named(snapshot.jobs.order)


def _waits(snapshot: Snapshot, task: Task) -> bool:
    status: int = snapshot.tasks.status[task.row]
    return status == TaskStatus.PENDING and bool(task.job) and not task.gated


def differences(there: WrittenThere, result: CycleResult) -> list[ShadowDifference]:
    """Return all decisions and writes of the cycle that differ from the written state."""
    decisions: tuple[Decision, ...] = (*result.binds, *result.evicts)
    decided = {f"{each.namespace}/{each.name}" for each in decisions}
    return [*_decided(there, decisions), *_groups(there, result), *_pods(there, result, decided)]


def _decided(there: WrittenThere, decisions: Sequence[Decision]) -> Iterator[ShadowDifference]:
    for each in decisions:
        name, what = f"{each.namespace}/{each.name}", "bind" if isinstance(each, Bind) else "evict"
        if isinstance(each, Bind):
            told = said(there.waiting.get(name, ("", ""))) or of_group(there, each.job)
            yield ShadowDifference(what, name, "", each.node, told, "")
        else:  # what is said there of the pod that waits for the room
            why = f"{each.reason} for {each.preemptor}" if each.preemptor else each.reason
            yield ShadowDifference(what, name, "", each.node, said(there.waiting.get(each.preemptor, ("", ""))), why)


def _groups(there: WrittenThere, result: CycleResult) -> Iterator[ShadowDifference]:
    words = _words(there, result)
    for each in result.pod_groups:
        name = f"{each.namespace}/{each.name}"
        phase = there.phases.get(name, "")
        if phase != each.phase:
            yield ShadowDifference("phase", name, phase, each.phase, of_group(there, name), latest(each.conditions))
            continue
        theirs = {(one.type, one.status): (one.reason, one.message) for one in there.conditions.get(name, ())}
        for one in each.conditions:
            found = theirs.get((one.type, one.status), ("", ""))
            if not _alike(found, (one.reason, one.message), each.namespace, words):
                yield ShadowDifference("condition", name, said(found), said((one.reason, one.message)))


def _words(there: WrittenThere, result: CycleResult) -> dict[str, str]:
    """Return the conditions of pods here, by "namespace/name": where nothing new is written, the written ones."""
    words = {name: message for name, (_, message) in there.waiting.items()}
    return words | {f"{each.namespace}/{each.name}": each.message for each in result.pod_conditions if each.message}


def _alike(there: tuple[str, str], here: tuple[str, str], namespace: str, words: Mapping[str, str]) -> bool:
    """Return whether reason and message are equal, or those there name another pod of the gang as the origin, with that
    pod's words here.
    """
    if there == here or there[0] != here[0]:
        return there == here
    (state, _, origin), (mine, named, _) = there[1].partition(ORIGIN), here[1].partition(ORIGIN)
    pod, _, why = origin.partition(": ")
    return bool(pod and named) and state == mine and words.get(f"{namespace}/{pod}") == why


def _pods(there: WrittenThere, result: CycleResult, decided: set[str]) -> Iterator[ShadowDifference]:
    words = _words(there, result)
    for each in result.pod_conditions:
        name = f"{each.namespace}/{each.name}"
        told = there.waiting.get(name)
        mine = each.reason, each.message
        if told is None or not each.message or name in decided or _alike(told, mine, each.namespace, words):
            continue
        yield ShadowDifference("reason", name, said(told), said(mine))


def of_group(there: WrittenThere, job: str) -> str:
    """Return the newest condition of a PodGroup."""
    return latest(there.conditions.get(job, ()))


def latest(conditions: Iterable[PodGroupCondition]) -> str:
    """Return the reason and message of the newest condition."""
    found = [said((each.reason, each.message)) for each in conditions]
    return found[-1] if found else ""


def said(told: tuple[str, str]) -> str:
    """Return reason and message as one text."""
    return ": ".join(filter(None, told))


class Persistence:
    """Differences of consecutive looks."""

    def __init__(self) -> None:
        self._before: dict[tuple[str, str], tuple[str, str]] = {}
        self._told: dict[tuple[str, str], tuple[str, str]] = {}

    def confirmed(self, found: Sequence[ShadowDifference]) -> list[ShadowDifference]:
        """Return those that the look before had already."""
        now = _keyed(found)
        stays = [each for each in found if self._before.get(_key(each)) == now[_key(each)]]
        self._before = now
        return stays

    def new(self, confirmed: Sequence[ShadowDifference]) -> list[ShadowDifference]:
        """Return the confirmed differences that were not reported yet."""
        now = _keyed(confirmed)
        found = [each for each in confirmed if self._told.get(_key(each)) != now[_key(each)]]
        self._told = now
        return found


def _key(each: ShadowDifference) -> tuple[str, str]:
    return each.what, each.name


def _keyed(found: Iterable[ShadowDifference]) -> dict[tuple[str, str], tuple[str, str]]:
    return {_key(each): (each.there, each.here) for each in found}


def counted(differences: Iterable[ShadowDifference]) -> Mapping[str, int]:
    """Return the number of each sort; several of one name count once."""
    names: dict[str, set[str]] = {}
    for each in differences:
        names.setdefault(each.what, set()).add(each.name)
    return {what: len(some) for what, some in names.items()}
