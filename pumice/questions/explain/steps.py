# SPDX-License-Identifier: Apache-2.0
"""Steps of each action for a job, and the step that stopped it: in the order of Volcano's own debugging guide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pumice.core.life.task import LABELS, READY_STATUSES, TaskStatus
from pumice.core.session.trail.records import UNSEEN, Ending
from pumice.core.state.hypernodes import TOP
from pumice.questions.adviser.wait_reasons import told_of_strangers
from pumice.questions.explain.room_left import amounts
from pumice.questions.explain.victims import GANGS, opinions_of, standing_of, who_could_go
from pumice.units import listed

if TYPE_CHECKING:
    from pumice.core.session.trail.records import Election, Ended
    from pumice.core.state.jobs import Job
    from pumice.core.state.view import View
    from pumice.questions.explain.jobs import JobLook
    from pumice.questions.explain.watch import Watched

EVICTING: Final = ("preempt", "reclaim", *GANGS)
READY: Final = tuple(LABELS[status] for status in READY_STATUSES)
PIPELINED: Final = LABELS[TaskStatus.PIPELINED]
WELL: Final = frozenset(
    (
        Ending.ADMITTED,
        Ending.COMMITTED,
        Ending.PROMISED,
        Ending.ROOM_MADE,
        Ending.ROOM_TO_COME,
        Ending.PLACED,
        Ending.NOTHING_TO_PLACE,
        Ending.NOT_STARVING,
    )
)
UNADMITTED: Final = ("", "Pending")
BEFORE_VICTIMS: Final = frozenset(
    (
        Ending.NOT_STARVING,
        Ending.NOT_VALID,
        Ending.ASKS_FOR_TOPOLOGY,
        Ending.QUEUE_OVERUSED,
        Ending.NEVER_PREEMPTS,
        Ending.ROOM_IS_MADE,
        Ending.MAY_NOT_TAKE,
        Ending.NO_CANDIDATES,
        Ending.GATED,
        Ending.QUEUE_HAS_NO_ROOM,
        Ending.NO_DOMAIN,
    )
)
LONE: Final = {
    Ending.ROOM_TO_COME: "pods that had room to come without evictions",
    Ending.PLACED: "pods placed",
}
"""Endings for the better of single tasks, which are counted: the others may have ended otherwise."""
SUMMED: Final = frozenset((Ending.DISCARDED, Ending.NO_VICTIMS, Ending.AS_BEFORE, Ending.NOT_IN_DOMAIN))
"""Endings that follow from one before."""
OF_VICTIMS: Final = frozenset((Ending.TOO_LITTLE, Ending.NO_CANDIDATES_THERE, Ending.NO_VICTIMS))
"""Endings of a node and of a task when victims were considered, even if none existed."""


HOPES: Final = "can possibly be assigned to"
"""Volcano's words for a pod that an action had a place for, also where the place was lost again."""


@dataclass
class ActionSteps:
    """The steps of an action. `stopped`: the step that stopped it, "" when none did; `steps`: all known ones,
    in order.
    """

    action: str
    stopped: str = ""
    steps: list[str] = field(default_factory=list[str])


def steps_of(view: View, watched: Watched, job: Job, actions: Sequence[str]) -> list[ActionSteps]:
    """Return the steps action by action."""
    return [_steps(view, watched, job, action) for action in actions]


def undone(steps: Sequence[ActionSteps]) -> str:
    """Return how the last placement that an action found was undone, because its gang did not get enough; "" if none
    was."""
    last = next((each for each in reversed(steps) if Ending.DISCARDED.value in each.steps), None)
    return "" if last is None else f"; but what {last.action} had found was undone: {last.stopped}"


def _is_for(view: View, election: Election, job: Job) -> bool:
    task = view.tasks.by_key.get(election.preemptor)
    return election.preemptor == job.key or (task is not None and task.job == job.key)


def _steps(view: View, watched: Watched, job: Job, action: str) -> ActionSteps:
    told = ActionSteps(action)
    look = watched.jobs[job.key]
    ended = [each for each in watched.trail.of_job(job.key) if each.action == action and _counts(each, job)]
    if look.valid:  # whatever it has of what it needs: no reader would look at it
        ended = [each for each in ended if each.ending is not Ending.NOT_STARVING]
    if not ended:
        _tell_unseen(told, look, job)
        return told
    stop = _stop(ended)
    if stop is None:
        told.steps = [*([] if ended[-1].ending is Ending.PLACED else [_sentence(ended[-1:], job)]), *_lone(ended)]
        return told
    groups: dict[tuple[str, Ending], list[Ended]] = {}
    for each in ended:
        if each.who in (stop.who, job.key):
            groups.setdefault((each.who, each.ending), []).append(each)
    told.steps = [_sentence(group, job) for group in groups.values()]
    rest = _lone([each for each in ended if each.who != stop.who])
    told.stopped = _sentence(groups.get((stop.who, stop.ending), [stop]), job)
    if action == "allocate" and look.confined and stop.ending in (Ending.NO_NODE, *SUMMED):
        told.stopped = look.confined
    if stop.ending is Ending.MAY_NOT_TAKE:
        told.stopped += f" ({_why_not_take(view, watched, job, stop)})"
    if action in EVICTING and stop.ending not in BEFORE_VICTIMS and any(each.ending in OF_VICTIMS for each in ended):
        _tell_victims(told, view, watched, job, stop, groups)
    told.steps += rest
    return told


def _why_not_take(view: View, watched: Watched, job: Job, stop: Ended) -> str:
    """Return what the job's queue had by then, with the resources pipelined for the job's other tasks, and the task's
    request.
    """
    name = job.pod_group.queue
    queue = view.queues.get(name)
    if queue is not None and not queue.is_open:
        return f"queue {name} is {queue.state or 'not open: its status has no state'}"
    task = view.tasks.by_key.get(stop.who)
    asks = f", {stop.who} asks for {listed(amounts(task.template.request))}" if task is not None else ""
    return standing_of(name, watched.gauges.get(name, {}), listed(stop.held)) + asks


def _lone(ended: Sequence[Ended]) -> list[str]:
    """Return sentences with the number of tasks that each ended well by itself."""
    counts = {words: len({each.who for each in ended if each.ending is ending}) for ending, words in LONE.items()}
    return [f"{words}: {count}" for words, count in counts.items() if count]


def _counts(ended: Ended, job: Job) -> bool:
    """Return whether an ending counts: room for a gang is stated of the job, not of each task that was tried."""
    return ended.action not in GANGS or ended.who in (job.key, job.pod_group.queue)


def _tell_unseen(told: ActionSteps, look: JobLook, job: Job) -> None:
    """Explain why an action did not look at the job."""
    told.stopped = "it did not look at the job"
    if look.queue_state == "missing":
        told.stopped = f"its queue {look.queue} does not exist"
    elif look.strangers and not look.tasks:
        told.stopped = told_of_strangers(look.strangers)
    elif look.phase in UNADMITTED and told.action != "enqueue":
        told.stopped = "the job is not admitted"
    elif told.action == "enqueue" and look.phase not in UNADMITTED:
        told.stopped, told.steps = "", ["the job was admitted before"]
    elif look.valid:
        told.stopped = f"{Ending.NOT_VALID.value} ({look.valid})"
    elif not look.tasks:
        told.stopped = "the job has no pods"
    elif told.action == "backfill" and not any(task.template.best_effort for task in job.tasks.values()):
        told.stopped = "it places only pods without requests"


def _tell_victims(
    told: ActionSteps, view: View, watched: Watched, job: Job, stop: Ended, groups: Iterable[tuple[str, Ending]]
) -> None:
    """Explain how victims were chosen; without their resources if no victims were considered."""
    held = [each for each in watched.trail.elections.held if each.action == told.action and _is_for(view, each, job)]
    elections = [each for each in held if each.preemptor == stop.who] or held
    if not elections:
        told.stopped = who_could_go(view, job, told.action, _closed_to(watched, stop.who, told.action))
        told.steps = [each for group, each in zip(groups, told.steps, strict=True) if group[1] not in OF_VICTIMS]
        return
    candidates = {pod for each in elections for pod in each.candidates}
    victims = {pod for each in elections for pod in each.victims}
    nodes = {view.tasks.resides[view.tasks.by_key[pod].row] for pod in candidates} - {""}
    said = opinions_of(view, stop.who, elections, watched.gauges)
    told.steps += [f"pods considered: {len(candidates)}, on nodes: {len(nodes)}, may be evicted: {len(victims)}", *said]
    if not victims:
        against = next((each for each in said if " gave 0 of " in each), "those who gave some did not agree on any")
        told.stopped = f"none of {len(candidates)} considered pods may be evicted: {against}"


def _closed_to(watched: Watched, pod: str, action: str) -> dict[str, str]:
    """Return the nodes that a task may not use whatever is evicted, each with its obstacle, as an action found them
    last.
    """
    look = next((each for each in reversed(watched.trail.looks.get(pod, ())) if each.action == action), None)
    if look is None:
        return {}
    said = {node: " and ".join(each.words for each in reasons) for node, reasons in look.refused().items()}
    rows: list[int] = look.fitting.tolist()
    taken = {look.names[row] for row in rows}
    return {node: said.get(node, UNSEEN) for node in look.names if node not in taken}


def _stop(ended: Sequence[Ended]) -> Ended | None:
    """Return the first failure from which the last ending follows; None where the last one is a success. Room for a
    single task does not count as one.
    """
    telling = (each for each in reversed(ended) if not each.node and each.ending not in LONE)
    last = next(telling, ended[-1])
    if last.ending in WELL and last.ending is not Ending.NOT_STARVING:
        return None
    causes = [each for each in ended if each.ending not in WELL and each.ending not in SUMMED]
    return next(iter(causes), None) or next((each for each in ended if each.ending not in WELL), last)


def _sentence(group: Sequence[Ended], job: Job) -> str:
    """Return a sentence about endings that differ only in their nodes."""
    ended, nodes = group[0], list(dict.fromkeys(each.node for each in group if each.node))
    who = "" if ended.who in (job.key, job.pod_group.queue) else f"{ended.who}: "
    text = f"{who}{ended.ending.value}"
    placed = sum(ended.tasks.get(label, 0) for label in (*READY, PIPELINED))
    if ended.ending is Ending.NOT_STARVING:
        waiting = ended.tasks.get(PIPELINED, 0)
        text += f": {placed - waiting} ready + {waiting} waiting, its minimum is {ended.minimum}"
        text += "" if placed >= ended.minimum else ", but no plugin finds it starving"
    elif ended.ending is Ending.NO_NODE and ended.minimum > 1:
        text += f", when {placed} of at least {ended.minimum} had one"
    elif ended.detail:
        text += f" ({ended.detail.replace(TOP, 'the whole cluster')})"
    return text + _where(nodes, "HyperNode" if ended.action in GANGS else "node")


def _where(names: Sequence[str], kind: str) -> str:
    if not names:
        return ""
    if names[0] == TOP:
        return " in the whole cluster"
    if kind == "node":
        return f" on {names[0]}" if len(names) == 1 else f" on {len(names)} nodes"
    return f" in HyperNode {names[0]}" if len(names) == 1 else f" in {len(names)} HyperNodes"
