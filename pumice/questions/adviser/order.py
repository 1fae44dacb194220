"""In which order jobs are tried, and which plugin's order put each where it is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from pumice.cluster.kube.times import timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.core.session.trail.records import Precedence, Turn

STAGES: Final = {"allocate": 0, "backfill": 1, "enqueue": 2}
"""Actions that take up jobs, as they matter: one that is admitted is nearer to its start than one that is not."""
NUMBERS: Final = {
    "priority": ("priority", -1.0),
    "gang": ("its gang is ready (1) or not (0):", 1.0),
    "drf": ("dominant share", 1.0),
    "tdm": ("preemptable (1) or not (0):", 1.0),
    "sla": ("deadline", 1e-9),
    "creation": ("created", 1.0),
}
"""What a plugin's numbers are, and what they are multiplied with to be read: whoever has the smaller one goes first,
but people say that the higher priority does, and count in seconds.
"""
TIMES: Final = ("sla", "creation")
LAST_TIME: Final = 253402300799.0


@dataclass(frozen=True, slots=True)
class Before:
    """The job that comes just before another in their queue: told apart `by` this plugin ("creation" or "name" where
    none does), with the numbers of that job and of the other where it goes by numbers, and in words.
    """

    job: str
    by: str
    its: float | None
    own: float | None
    words: str


@dataclass(frozen=True, slots=True)
class Place:
    """`stage`: the action that takes the job up, "" for none; `rank` among all, -1 for none; `tried`: it had its turn;
    `queue_share`: of its queue at that moment; `before_it`: None for the first of its queue.
    """

    stage: str = ""
    rank: int = -1
    tried: bool = False
    queue_share: float | None = None
    before_it: Before | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data; the rank shows as the position in the whole list."""
        return {name: value for name, value in asdict(self).items() if name != "rank"}


def places_of(turns: Iterable[Turn]) -> dict[str, Place]:
    """By job, out of the turns of a cycle. Of several actions the one that comes nearest to a start counts."""
    in_order = sorted(enumerate(turns), key=lambda each: (STAGES[each[1].action], not each[1].tried, each[0]))
    found: dict[str, Place] = {}
    before: dict[tuple[str, str], Before] = {}
    for _, turn in in_order:
        ahead = turn.ahead
        if ahead is not None:
            before.setdefault((turn.action, ahead.over), _before(turn.job, ahead))
    for rank, (_, turn) in enumerate(in_order):
        if turn.job not in found:
            earlier = before.get((turn.action, turn.job))
            found[turn.job] = Place(turn.action, rank, turn.tried, turn.share, earlier)
    return found


def _before(job: str, ahead: Precedence) -> Before:
    if ahead.numbers is None:
        words = "its name comes first" if ahead.plugin == "name" else f"{ahead.plugin} puts it first"
        return Before(job, ahead.plugin, None, None, words)
    label, factor = NUMBERS.get(ahead.plugin, (ahead.plugin, 1.0))
    its, own = (factor * number + 0.0 for number in ahead.numbers)  # no -0
    shown = [_time(each) if ahead.plugin in TIMES else f"{each:.6g}" for each in (its, own)]
    return Before(job, ahead.plugin, its, own, f"{label} {shown[0]} before {shown[1]}")


def _time(moment: float) -> str:
    return timestamp(moment) if moment < LAST_TIME else "none"
