"""Who said what when victims were chosen, and when a job asked to be admitted: the votes of one cycle, listened to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from core.session.points import Vote

if TYPE_CHECKING:
    from core.objects.pod import Task
    from core.session.points import Points

ADMISSION: Final = "JobEnqueueable"
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
    # whoever could answer for whole batches is asked node by node, with the same answers: they can be heard then
    points.batches.evictable.clear()
    setattr(points, "tiered_intersection", _elections(points, votes))  # noqa: B010
    setattr(points, "first_tier_union", _unions(points, votes))  # noqa: B010
    setattr(points, "vote", _admissions(points, votes))  # noqa: B010
    return votes


def _elections(points: Points, votes: Votes) -> Callable[[str, Any, Sequence[Task]], list[Task]]:
    original = points.tiered_intersection

    def listening(point: str, subject: Any, candidates: Sequence[Task]) -> list[Task]:
        victims = original(point, subject, candidates)
        for task in candidates:
            if task.key in votes.asked:
                election = _election(points, point, subject, candidates, victims, task)
                votes.elections.setdefault(task.key, {})[election.preemptor] = election
        return victims

    return listening


def _election(
    points: Points, point: str, subject: Any, candidates: Sequence[Task], victims: Sequence[Task], victim: Task
) -> Election:
    job = getattr(subject, "job", "")
    preemptor = getattr(subject, "key", "") or getattr(job, "key", "") or str(job)
    election = Election(point, preemptor, len(candidates), len(victims))
    for number, names in enumerate(points.tiers_of_names(point), 1):
        for name, ask in zip(names, points.tiers(point)[number - 1], strict=True):
            answer, said = ask(subject, candidates)
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


def _unions(points: Points, votes: Votes) -> Callable[[str, Sequence[Task]], list[Task]]:
    original = points.first_tier_union

    def listening(point: str, candidates: Sequence[Task]) -> list[Task]:
        victims = original(point, candidates)
        for victim in victims:
            if victim.key in votes.asked:
                votes.elections.setdefault(victim.key, {})[""] = _union(points, point, candidates, victims, victim)
        return victims

    return listening


def _union(points: Points, point: str, candidates: Sequence[Task], victims: Sequence[Task], victim: Task) -> Election:
    election = Election(point, "", len(candidates), len(victims))
    for number, names in enumerate(points.tiers_of_names(point), 1):
        for name, functions in zip(names, points.tiers(point)[number - 1], strict=True):
            gave = {task.uid for ask in functions for task in ask(candidates)}
            vote = "evict" if victim.uid in gave else "keep"
            election.ballots.append(Ballot(number, name, vote, len(gave), len(candidates) - len(gave)))
            if gave and not election.tier:
                election.tier = number
    return election


def _admissions(points: Points, votes: Votes) -> Callable[[str, Any], bool]:
    original = points.vote

    def listening(point: str, subject: Any) -> bool:
        if point == ADMISSION and subject.key in votes.jobs:
            votes.admission[subject.key] = {
                name: NAMES[Vote(max(-1, min(1, int(ask(subject)))))]
                for name, ask in zip(points.enabled_names(point), points.flat(point), strict=True)
            }
        return original(point, subject)

    return listening
