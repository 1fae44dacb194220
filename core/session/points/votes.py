# SPDX-License-Identifier: Apache-2.0
"""The plugins' votes about jobs, groups and queues, and how they are counted. Source: Volcano
`framework/session_plugins.go` (reference section 3).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar, TypeVarTuple

import numpy as np

from pumice.core.cached import cached
from pumice.core.session.points.point import Point

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.session.demand import BoolArray, JobRows
    from pumice.core.session.jobs import SubJob
    from pumice.core.session.points.point import Listed
    from pumice.core.session.trail.records import AdmissionVotes
    from pumice.core.state.jobs import Job

S = TypeVar("S")
A = TypeVar("A")
Subject = TypeVarTuple("Subject")


class Vote(IntEnum):
    """A plugin's vote."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


WORDS: Final = {-1: "rejects", 0: "abstains", 1: "permits"}


def sign(number: int) -> int:
    """Return -1, 0 or 1."""
    return (number > 0) - (number < 0)


class ValidateResult(NamedTuple):
    """The reason why a job is not valid."""

    reason: str
    message: str


class AllAgree(Point[Callable[[*Subject], bool]], Generic[*Subject]):
    """The merge rule: True when all plugins of all tiers agree, or without any plugin."""

    __slots__ = ()

    def __call__(self, *subject: *Subject) -> bool:
        """Ask until one disagrees."""
        for test in self.rules:  # noqa: SIM110 - asked for every task, several times
            if not test(*subject):
                return False
        return True


class AnyAgrees(Point[Callable[[*Subject], bool]], Generic[*Subject]):
    """The merge rule: True when some plugin of some tier agrees."""

    __slots__ = ()

    def __call__(self, *subject: *Subject) -> bool:
        """Ask until one agrees."""
        for test in self.rules:  # noqa: SIM110 - a generator costs more than the answer
            if test(*subject):
                return True
        return False


class FirstTierAgrees(Point[Callable[[S], bool]], Generic[S]):
    """The merge rule: True when all plugins of the first tier that has one agree; later tiers are not asked. False
    without any plugin.
    """

    __slots__ = ()

    def __call__(self, subject: S) -> bool:
        """Ask the first tier."""
        return bool(self.tiers) and all(test(subject) for _, test in self.tiers[0])


class StarvingPoint(FirstTierAgrees["Job"]):
    """The merge rule: True when all plugins of the first tier that has one agree; later tiers are not asked. False
    without any plugin. A plugin may also answer for all jobs in one call.
    """

    # Most jobs of a cluster run, and each was asked in each cycle: with a thousand jobs that was a quarter of a cycle.
    __slots__ = ("_columns",)

    def __init__(self, name: str, listed: Listed) -> None:
        super().__init__(name, listed)
        self._columns: dict[str, Callable[[], BoolArray]] = {}

    def add_column(self, plugin: str, column: Callable[[], BoolArray]) -> None:
        """Register a plugin's answers as of now, bool [J], equal to those of its rule."""
        self._columns[plugin] = column

    def in_columns(self) -> BoolArray | None:
        """Return which jobs starve now, bool [J]; None where a plugin only answers about one job."""
        if not self.tiers or any(name not in self._columns for name, _ in self.tiers[0]):
            return None
        found: BoolArray = np.logical_and.reduce([self._columns[name]() for name, _ in self.tiers[0]])
        return found


class Ballot(Point[Callable[[S], Vote]], Generic[S]):
    """The merge rule: a Reject decides immediately, a Permit at the end of its tier; without a decision the job is
    permitted.
    """

    __slots__ = ("heard_by",)

    def __init__(self, name: str, listed: Listed) -> None:
        super().__init__(name, listed)
        self.heard_by: Callable[[S], AdmissionVotes | None] | None = None

    def __call__(self, subject: S) -> bool:
        """Return whether the plugin permits it."""
        return self.rejecter(subject) is None

    def rejecter(self, subject: S) -> str | None:
        """Return the plugin that rejects the job, None when it is permitted."""
        heard = None if self.heard_by is None else self.heard_by(subject)
        for place, tier in enumerate(self.tiers):
            permitted = False
            for plugin, ask in tier:
                answer = ask(subject)
                if heard is not None:
                    # Recorded before the verdict: a reader also wants the votes of the plugins that permitted.
                    heard.votes.append((self.tier_numbers[place], plugin, WORDS[sign(answer)]))
                if answer < 0:
                    return plugin
                # Only at the end of the tier: a later plugin of the same tier may still reject (session_plugins.go,
                # JobEnqueueable).
                permitted = permitted or answer > 0
            if permitted:
                return None
        return None


class Refusals(NamedTuple):
    """A plugin's vote about admission in columns: which of the jobs in these rows, all with minResources, it rejects
    now, bool [rows]. It permits all others.

    Jobs of one queue with equal minResources get one answer, in equal words. Admissions never end a rejection.
    `charges`: to permit a job changes the answers about the next ones.
    """

    of: Callable[[JobRows], BoolArray]
    charges: bool = False


class AdmissionBallot(Ballot["Job"]):
    """The ballot about jobs that ask for admission."""

    __slots__ = ("_refusals",)

    def __init__(self, name: str, listed: Listed) -> None:
        super().__init__(name, listed)
        self._refusals: dict[str, Refusals] = {}

    def add_in_columns(self, plugin: str, rule: Callable[[Job], Vote], refusals: Refusals) -> None:
        """Register a plugin's rule, and the same in columns."""
        self.add(plugin, rule)
        self._refusals[plugin] = refusals

    @cached
    def in_columns(self) -> tuple[Refusals, ...] | None:
        """Return the plugins that decide, in columns; None where one of them must be asked job by job.

        Those of the first tier decide: they permit a task that none of them rejects. A permit that charges must be the
        last one, since it stands although a later plugin rejects the job.
        """
        # The first tier alone: when all of its plugins permit or reject, later tiers are never asked.
        names = [name for name, _ in self.tiers[0]] if self.tiers else []
        found = tuple([self._refusals[name] for name in names if name in self._refusals])
        asked_last = not any(refusals.charges for refusals in found[:-1])
        return found if len(found) == len(names) and asked_last else None


class FirstAnswer(Point[Callable[[*Subject], A | None]], Generic[A, *Subject]):
    """The merge rule: the first plugin with an answer decides; None when no plugin has one."""

    __slots__ = ()

    def __call__(self, *subject: *Subject) -> A | None:
        """Ask until one answers."""
        for ask in self.rules:
            answer = ask(*subject)
            if answer is not None:
                return answer
        return None


class Notified(Point[Callable[[S], object]], Generic[S]):
    """Tell every plugin."""

    __slots__ = ()

    def __call__(self, subject: S) -> None:
        """Tell them, in tier order."""
        for tell in self.rules:
            tell(subject)


class VotePoints:
    """The points of votes. `job_valid` gives the first verdict against a job. `job_enqueued` is called for an admitted
    job.
    """

    def __init__(self, listed: Listed) -> None:
        self.job_valid: FirstAnswer[ValidateResult, Job] = FirstAnswer("JobValid", listed)
        self.job_ready: AllAgree[Job] = AllAgree("JobReady", listed)
        self.sub_job_ready: AllAgree[SubJob] = AllAgree("SubJobReady", listed)
        self.job_pipelined: Ballot[Job] = Ballot("JobPipelined", listed)
        self.sub_job_pipelined: Ballot[SubJob] = Ballot("SubJobPipelined", listed)
        self.job_enqueueable = AdmissionBallot("JobEnqueueable", listed)
        self.job_enqueued: Notified[Job] = Notified("JobEnqueued", listed)
        self.job_starving = StarvingPoint("JobStarving", listed)
        self.overused: AnyAgrees[Queue] = AnyAgrees("Overused", listed)
        self.preemptive: AllAgree[Queue, Sequence[Task]] = AllAgree("Preemptive", listed)
        self.allocatable: AllAgree[Queue, Task] = AllAgree("Allocatable", listed)
