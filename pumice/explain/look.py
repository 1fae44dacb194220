"""What a session thinks of every node at the moment when it looks for one for a task."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from core.cycle import close_session, open_session, run_action
from core.life.task import LABELS
from core.session.reasons import FitFailure
from core.session.search.node_search import NodeSearch
from pumice.explain.jobs import JobLook, conclude, look_at_jobs
from pumice.explain.votes import Votes, listen

if TYPE_CHECKING:
    from config.schema import SchedulerConfig
    from core.messages.decisions import CycleResult
    from core.objects.pod import Task
    from core.session.carry import Carry, Clock, SessionOptions
    from core.session.session import Session
    from core.state.snapshot import Snapshot

FITS = "fits"
SCORES = ("NodeOrder", "BatchNodeOrder")


@dataclass
class Look:
    """One look at all nodes, before the task was placed.

    `refused`: node -> (filter, reason text), one a node; every other node fits. `scores`: plugin -> node -> score, over
    the nodes that fit. `nominated`: the node that room was made on for the task. `lacking`: resource -> (what the task
    asks for, the most that any node has to come).
    """

    action: str
    nodes: int
    nominated: str = ""
    refused: dict[str, tuple[str, str]] = field(default_factory=dict[str, "tuple[str, str]"])
    scores: dict[str, dict[str, float]] = field(default_factory=dict[str, "dict[str, float]"])
    lacking: dict[str, tuple[float, float]] = field(default_factory=dict[str, "tuple[float, float]"])

    def by_reason(self) -> dict[str, int]:
        """Reason -> nodes, and how many fit: the counts add up to all nodes."""
        counts = Counter(text for _, text in self.refused.values())
        fitting = self.nodes - len(self.refused)
        return {**dict(counts.most_common()), **({FITS: fitting} if fitting else {})}

    def by_filter(self) -> dict[str, int]:
        """Filter -> nodes that it was the first to refuse: the counts add up to the nodes that do not fit."""
        return dict(Counter(who for who, _ in self.refused.values()).most_common())

    def totals(self) -> dict[str, float]:
        """Node -> sum of its scores, of the nodes that fit."""
        totals: dict[str, float] = {}
        for of_plugin in self.scores.values():
            for node, score in of_plugin.items():
                totals[node] = totals.get(node, 0.0) + score
        return totals


@dataclass
class Watched:
    """A cycle that was watched: its result, and the last look for each task ("namespace/name") that was asked about."""

    result: CycleResult
    looks: dict[str, Look]
    statuses: dict[str, str]
    nodes: int
    votes: Votes
    jobs: dict[str, JobLook]


class Asked(NamedTuple):
    """Pods and jobs (PodGroups) that are asked about, "namespace/name" each."""

    pods: frozenset[str]
    jobs: frozenset[str] = frozenset()


def watch_cycle(
    snapshot: Snapshot,
    config: SchedulerConfig,
    clock: Clock,
    carry: Carry,
    asked: Asked,
    options: SessionOptions | None = None,
) -> Watched:
    """Run the cycle; whenever it looks for a node for a task that is asked about, look on, and listen to the votes."""
    session = open_session(snapshot, config, clock, carry, options, report=True)
    found = look_at_jobs(session, sorted(asked.jobs))
    votes = listen(session.points, asked.pods, asked.jobs)
    looks: dict[str, Look] = {}
    search_for = session.search_for

    def looking_on(task: Task, *, room: bool = True) -> NodeSearch:
        if task.key in asked.pods and (room or task.key not in looks or session.action == "backfill"):
            looks[task.key] = look_at(session, task, room=room)
        return search_for(task, room=room)

    session.search_for = looking_on  # type: ignore[method-assign]
    for action in config.actions:
        run_action(session, action)
    session.search_for = search_for  # type: ignore[method-assign]
    statuses: dict[str, str] = {}
    for task in snapshot.tasks.handles:
        if task is not None and task.key in asked.pods:
            statuses[task.key] = _status(session, task)
            if task.key not in looks and statuses[task.key] == "Pending":
                looks[task.key] = look_at(session, task, room=True)
    nodes = session.nodes.count
    result = close_session(session)
    conclude(found, result, votes.admission)
    return Watched(result, looks, statuses, nodes, votes, found)


def look_at(session: Session, task: Task, *, room: bool) -> Look:
    """Look at every node anew, as the session is now."""
    names = session.nodes.names
    look = Look(session.action, session.nodes.count, task.nominated)
    try:
        session.points.pre_predicate(task)
        search = NodeSearch(session, task, room=room)
    except FitFailure as failure:
        look.refused = dict.fromkeys(names, (failure.reason.plugin, failure.reason.text))
        return look
    for row in np.flatnonzero(search.codes).tolist():
        reasons = session.reasons.reasons(int(search.codes[row]))
        look.refused[names[row]] = (reasons[0].plugin, " and ".join(reason.text for reason in reasons))
    fitting = np.flatnonzero(search.codes == 0)
    look.scores = _scores(session, task, fitting) if len(fitting) else {}
    future = session.nodes.future
    for dimension, asked in task.template.items:
        if len(names) and asked - (most := float(future[dimension].max())) >= 0.1:
            look.lacking[session.dims.names[dimension]] = (asked, most)
    return look


def _scores(session: Session, task: Task, rows: npt.NDArray[np.intp]) -> dict[str, dict[str, float]]:
    """Plugin -> node -> what it adds to the node's total."""
    names: list[str] = [session.nodes.names[int(row)] for row in rows]
    found: dict[str, dict[str, float]] = {}
    for point in (session.points.node_order, session.points.batch_node_order):
        for plugin, scorers in point.named:
            total = np.zeros(len(names))
            for scorer in scorers:
                score = scorer.prepare(session, task)
                if score is None:
                    continue
                if score.constant is not None:
                    total = total + score.constant
                else:
                    raw = score.score(slice(None))[rows]
                    total = total + (score.finish(raw) if score.normalised else raw)
            sums = found.setdefault(plugin, dict.fromkeys(names, 0.0))
            for name, value in zip(names, total.tolist(), strict=True):
                sums[name] += value
    return found


def _status(session: Session, task: Task) -> str:
    return LABELS[int(session.snapshot.tasks.status[task.row])]
