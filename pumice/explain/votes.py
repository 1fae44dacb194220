"""Who said what when victims were chosen, and when a job asked to be admitted: the votes of one cycle, listened to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from core.session.points.votes import Vote

if TYPE_CHECKING:
    from core.objects.pod import Task
    from core.session.points import votes as points_of_votes
    from core.session.points.all_points import Points
    from core.session.points.victims import FirstTierUnion, TieredIntersection
    from core.state.jobs import Job

NAMES: Final = {Vote.REJECT: "rejects", Vote.ABSTAIN: "abstains", Vote.PERMIT: "permits"}


@dataclass
class Ballot:
    """What one plugin said of the candidates: `gave` + `kept` + `abstained` are all of them. `vote`: of the victim."""

    tier: int
    plugin: str
    vote: str
    gave: int = 0
    kept: int = 0
    abstained: int = 0


@dataclass
class Election:
    """One choice of victims. `tier` (from 1) decided; `candidates` were to choose from, `victims` could be had."""

    point: str
    preemptor: str
    candidates: int
    victims: int
    tier: int = 0
    ballots: list[Ballot] = field(default_factory=list[Ballot])

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `pumice explain` prints it."""
        return asdict(self)

    def sentence(self) -> str:
        """Who agreed to the eviction, in the tier that decided."""
        agreed = [each.plugin for each in self.ballots if each.tier == self.tier and each.vote == "evict"]
        if not agreed:
            return ""
        chosen = f"{self.victims} of {self.candidates} candidates"
        return f"in tier {self.tier} {' and '.join(agreed)} agreed ({chosen} could be had)"


@dataclass
class Votes:
    """`elections`: victim ("namespace/name") -> preemptor -> the last choice in which it was offered.

    `admission`: job -> plugin -> what it said when the job asked to be admitted.
    """

    asked: frozenset[str]
    jobs: frozenset[str]
    elections: dict[str, dict[str, Election]] = field(default_factory=dict[str, "dict[str, Election]"])
    admission: dict[str, dict[str, str]] = field(default_factory=dict[str, "dict[str, str]"])

    def of(self, victim: str, preemptor: str) -> Election | None:
        """The choice that led to this eviction."""
        held = self.elections.get(victim, {})
        return held.get(preemptor) or next(iter(reversed(held.values())), None)


def listen(points: Points, asked: frozenset[str], jobs: frozenset[str]) -> Votes:
    """Listen to the votes about these pods and jobs from here on."""
    votes = Votes(asked, jobs)
    for name in ("preemptable", "reclaimable", "unified_evictable"):
        setattr(points, name, HeardElections(getattr(points, name), votes))
    points.victim_tasks = cast("FirstTierUnion", HeardUnions(points.victim_tasks, votes))
    points.job_enqueueable = cast("points_of_votes.Ballot[Job]", HeardAdmissions(points.job_enqueueable, votes))
    return votes


class HeardElections:
    """A point of victims, listened to. Whoever could answer for many nodes at once is asked node by node, with the same
    answers: they can be heard then.
    """

    by_columns = False

    def __init__(self, point: TieredIntersection[Any], votes: Votes) -> None:
        self._point, self._votes = point, votes

    def __call__(self, subject: Any, candidates: Sequence[Task]) -> list[Task]:
        """As the point itself."""
        victims = self._point(subject, candidates)
        for task in candidates:
            if task.key in self._votes.asked:
                election = self._election(subject, candidates, victims, task)
                self._votes.elections.setdefault(task.key, {})[election.preemptor] = election
        return victims

    def _election(self, subject: Any, candidates: Sequence[Task], victims: Sequence[Task], victim: Task) -> Election:
        job = getattr(subject, "job", "")
        preemptor = getattr(subject, "key", "") or getattr(job, "key", "") or str(job)
        election = Election(self._point.name, preemptor, len(candidates), len(victims))
        for number, tier in enumerate(self._point.tiers, 1):
            for name, rule in tier:
                answer, said = self._point.answer(rule, subject, candidates)
                ballot = Ballot(number, name, "abstains", abstained=len(candidates))
                if said != Vote.ABSTAIN:
                    gave = {task.uid for task in answer}
                    vote = "evict" if victim.uid in gave else "keep"
                    ballot = Ballot(number, name, vote, len(gave), len(candidates) - len(gave))
                election.ballots.append(ballot)
        election.tier = _deciding(election) if victims else 0
        return election


def _deciding(election: Election) -> int:
    """The first tier in which somebody answered and nobody refused all candidates."""
    for tier in sorted({each.tier for each in election.ballots}):
        said = [each for each in election.ballots if each.tier == tier and each.vote != "abstains"]
        if said and all(each.gave for each in said):
            return tier
    return 0


class HeardUnions:
    """VictimTasks, listened to."""

    def __init__(self, point: FirstTierUnion, votes: Votes) -> None:
        self._point, self._votes = point, votes

    def __call__(self, candidates: Sequence[Task]) -> list[Task]:
        """As the point itself."""
        victims = self._point(candidates)
        for victim in victims:
            if victim.key in self._votes.asked:
                self._votes.elections.setdefault(victim.key, {})[""] = self._union(candidates, victims, victim)
        return victims

    def _union(self, candidates: Sequence[Task], victims: Sequence[Task], victim: Task) -> Election:
        election = Election(self._point.name, "", len(candidates), len(victims))
        for number, tier in enumerate(self._point.tiers, 1):
            for name, functions in tier:
                gave = {task.uid for ask in functions for task in ask(candidates)}
                vote = "evict" if victim.uid in gave else "keep"
                election.ballots.append(Ballot(number, name, vote, len(gave), len(candidates) - len(gave)))
                if gave and not election.tier:
                    election.tier = number
        return election


class HeardAdmissions:
    """JobEnqueueable, listened to."""

    def __init__(self, point: points_of_votes.Ballot[Job], votes: Votes) -> None:
        self._point, self._votes = point, votes

    def rejecter(self, job: Job) -> str | None:
        """As the point itself."""
        if job.key in self._votes.jobs:
            self._votes.admission[job.key] = {
                name: NAMES[Vote(max(-1, min(1, int(ask(job)))))] for name, ask in self._point.named
            }
        return self._point.rejecter(job)
