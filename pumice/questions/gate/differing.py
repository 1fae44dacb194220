# SPDX-License-Identifier: Apache-2.0
"""A difference is the first decision in which both futures part, with the reasons of either side."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from pumice.cluster.kernel.life import Life
from pumice.config.errors import PumiceError
from pumice.core.messages.decisions import CycleResult
from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import object_key
from pumice.core.session.carry import Carry, CycleClock
from pumice.questions.explain.account import account_of
from pumice.questions.explain.scene import Scene
from pumice.questions.gate.judging import Pair
from pumice.questions.gate.record import RunRecord
from pumice.questions.gate.run import RunTask, fork_of

BEFORE_S: Final = 0.001
"""Time before the difference at which a side that decides nothing is asked for its reason, in seconds."""
KINDS: Final = ("job", "podgroup", "pod")
"""Kinds that the name of a job may belong to, in the order of the search."""

Decisions = list[tuple[str, str, str]]
"""Decisions of one moment: (job, pod, its node, or "evicted")."""
EVICTED: Final = "evicted"


class SideDecision(Struct, frozen=True):
    """Lists the decisions of one side about the job then: binds (pod -> node) and evictions that the other side
    lacks; and the reason where it made none.
    """

    binds: dict[str, str]
    evictions: list[str]
    reason: str = ""


class FirstDifference(Struct, frozen=True):
    """Names the first moment (seconds from the beginning) at which the sides decide differently, and the job."""

    at: float
    job: str
    base: SideDecision
    head: SideDecision


def first_difference(base: RunTask, head: RunTask, pair: Pair) -> FirstDifference | None:
    """Return the first decision that differs; None where there is none."""
    before, after = _by_moment(pair.base), _by_moment(pair.head)
    for at in sorted({*before, *after}):
        one, other = before.get(at, []), after.get(at, [])
        if sorted(one) != sorted(other):
            return _told(at, one, other, base, head)
    return None


def _by_moment(record: RunRecord) -> dict[float, Decisions]:
    found = dict[float, Decisions]()
    for bind in record.binds:
        found.setdefault(bind.at, []).append((bind.job, bind.pod, bind.node))
    for each in record.evictions:
        # about the job that needs the room: why it waits on the other side is the question
        found.setdefault(each.at, []).append((each.by or each.job, each.pod, EVICTED))
    return found


def _told(at: float, one: Decisions, other: Decisions, base: RunTask, head: RunTask) -> FirstDifference:
    alone = [each for each in one if each not in other], [each for each in other if each not in one]
    job = min((*alone[0], *alone[1]), key=lambda each: each[2] != EVICTED)[0]
    return FirstDifference(at, job, _side([*alone[0]], job, base, at), _side([*alone[1]], job, head, at))


def _side(decided: Decisions, job: str, task: RunTask, at: float) -> SideDecision:
    own = [each for each in decided if each[0] == job]
    binds = {pod: node for _, pod, node in own if node != EVICTED}
    evictions = [pod for _, pod, node in own if node == EVICTED]
    return SideDecision(binds, evictions, "" if own else why_waits(task, job, at))


def why_waits(task: RunTask, job: str, at: float) -> str:
    """Return why a job waits just before a moment of a run, "" where it does not."""
    fork = fork_of(task)
    life = Life(fork, task.seed, _unheard, _undecided)
    life.run(max(0.0, at - BEFORE_S))
    kernel = life.kernel
    clock = CycleClock(kernel.cycle + 1, life.now, task.seed)
    scene = Scene(kernel.view, fork.config, clock, Carry.from_dict(kernel.carry.to_dict()))
    for kind in KINDS:
        try:
            return account_of(scene, kind, job).message
        except PumiceError:
            continue
    return next((answer.message for obj, answer in life.refused if object_key(obj) == job), "")


def _unheard(mutation: Mutation, at: float) -> None:
    """Ignore a change: there is no listener."""


def _undecided(result: CycleResult, at: float) -> None:
    """Ignore a cycle: there is no listener."""
