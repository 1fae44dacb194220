# SPDX-License-Identifier: Apache-2.0
"""Tables of `pumice decide`: a line for each gang, then evictions, then queues, in units that people write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rich.console import Console

from pumice.belonging import group_of, owner_of
from pumice.cli.tables.table import WholeTable
from pumice.core.objects.metadata import Object, controlling_owner, section
from pumice.questions.oneshot.between import object_key
from pumice.questions.oneshot.cycles import Cycle
from pumice.questions.oneshot.outcome import waits
from pumice.questions.oneshot.pending import LeftPending
from pumice.units import amounts_of

if TYPE_CHECKING:
    from pumice.cli.decide import DecideResult

NODES_SHOWN: Final = 3
PODS_SHOWN: Final = 20
QUEUE_COLUMNS: Final = ("allocated", "deserved", "guarantee", "real_capacity", "inqueue")


@dataclass(slots=True)
class GangRow:
    """Outcome of a PodGroup's pods. `bound`, `volumes` (bound after their volumes), `promised`: pods by node; `waits`:
    pods by reason; `remarks`: what is said of the first pod with it; `absent`: why there are none.
    """

    bound: Counter[str] = field(default_factory=Counter[str])
    volumes: Counter[str] = field(default_factory=Counter[str])
    promised: Counter[str] = field(default_factory=Counter[str])
    waits: Counter[str] = field(default_factory=Counter[str])
    remarks: dict[str, str] = field(default_factory=dict[str, str])
    absent: str = ""


def show(console: Console, decided: Sequence[Cycle], result: DecideResult) -> None:
    """Print every cycle's gangs and evictions, then each queue's amounts; unchanged gangs are only counted."""
    for cycle in decided:
        if len(decided) > 1:
            console.print(f"cycle {cycle.result.cycle}:")
        _show_gangs(console, cycle, result if cycle is decided[-1] else None)
        _show_evictions(console, cycle)
        counts = f"{len(cycle.result.binds)} bound, {len(cycle.result.evicts)} evicted"
        console.print(f"{counts}, {len(cycle.outcome['pipelined'])} pipelined")
    _show_queues(console, result.queues)
    _show_cards(console, result.cards)
    waiting = len(result.pending)
    console.print(f"{waiting} left pending" if waiting else "No task is left pending.")
    for sentence in result.supposed:
        console.print(sentence)


def _show_cards(console: Console, cards: Mapping[str, Sequence[str]]) -> None:
    """Print the cards; only the first pods, if there are many."""
    for pod, given in list(cards.items())[:PODS_SHOWN]:
        console.print(f"cards of {pod}: {', '.join(given)}")
    if len(cards) > PODS_SHOWN:
        console.print(f"and of {len(cards) - PODS_SHOWN} more pods")


def _show_gangs(console: Console, cycle: Cycle, result: DecideResult | None) -> None:
    """Print the gangs of the last cycle, with the reasons for waiting from the `result`."""
    ended = {} if result is None else result.ended
    gangs = _gangs(cycle, {} if result is None else result.pending)
    groups = {object_key(obj): obj for obj in cycle.objects if obj["kind"] == "PodGroup"}
    made_for = {_title(key, group): key for key, group in groups.items()}
    for job, said in ({} if result is None else result.without_pods).items():
        gangs[made_for.get(job, job)] = GangRow(absent=said["message"])
    table = WholeTable("job", "queue", "phase", "pods", "why", sentences=True)
    newest_first = {job: -place for place, job in enumerate(groups, 1)}  # what was handed in last is asked about
    for job, gang in sorted(gangs.items(), key=lambda each: newest_first.get(each[0], 0)):
        queue = str(section(groups.get(job, {}), "spec").get("queue") or "")
        phase = cycle.outcome["phases"].get(job, "")
        why = "; ".join(dict.fromkeys((*_reasons(gang), *ended.get(job, ()))))
        table.add_row(_title(job, groups.get(job)), queue, phase, ", ".join(_placed(gang)), why)
    console.print(table if table.row_count else "Nothing to bind or evict.")
    quiet = len(groups.keys() - gangs.keys())
    if quiet:
        console.print(f"{quiet} more PodGroup{'s' if quiet > 1 else ''}: nothing to decide")


def _gangs(cycle: Cycle, pending: Mapping[str, LeftPending]) -> dict[str, GangRow]:
    """Return those with a pod that was placed, promised a place, or waits."""
    jobs = {object_key(obj): _job_of(obj) for obj in cycle.objects if obj["kind"] == "Pod"}
    gangs: dict[str, GangRow] = {}
    for bind in cycle.result.binds:
        pod = f"{bind.namespace}/{bind.name}"
        gang = gangs.setdefault(bind.job or jobs.get(pod, pod), GangRow())
        (gang.volumes if waits(bind) else gang.bound)[bind.node] += 1
    for pod, why in pending.items():
        gang = gangs.setdefault(jobs.get(pod, pod), GangRow())
        node = cycle.outcome["pipelined"].get(pod) or cycle.outcome["uncommitted"].get(pod)
        if node:
            gang.promised[node] += 1
        # Pods that wait for the same reason have one line: Volcano's own remarks about them may name each pod.
        cause = why.message or why.reason if why.wait is None else why.wait.sentence
        gang.waits[cause] += 1
        gang.remarks.setdefault(cause, why.message or why.reason)
    return gangs


def _job_of(pod: Object) -> str:
    """Return the pod's PodGroup, else its owner, else the pod itself."""
    namespace = pod["metadata"].get("namespace") or ""
    return group_of(namespace, pod) or f"{namespace}/{(controlling_owner(pod) or pod['metadata'])['name']}"


def _title(job: str, group: Object | None) -> str:
    """Return the owner of the PodGroup, or the PodGroup itself without one."""
    return job if group is None else owner_of(group)


def _placed(gang: GangRow) -> Iterator[str]:
    if gang.bound:
        yield f"{gang.bound.total()} bound: {_on(gang.bound)}"
    if gang.volumes:
        yield f"{gang.volumes.total()} bound once its volumes are bound: {_on(gang.volumes)}"
    if gang.promised:
        yield f"{gang.promised.total()} promised: {_on(gang.promised)}"
    if gang.waits:
        yield f"{gang.waits.total()} pending"
    if gang.absent:
        yield "none"


def _on(nodes: Counter[str]) -> str:
    most = nodes.most_common(NODES_SHOWN)
    named = ", ".join(f"{node} ×{count}" if count > 1 else node for node, count in most)
    return f"{named} and {len(nodes) - len(most)} more" if len(nodes) > len(most) else named


def _reasons(gang: GangRow) -> Iterable[str]:
    """Return each once, the most frequent first."""
    if gang.absent:
        return [gang.absent]
    most, several = gang.waits.most_common(NODES_SHOWN), len(gang.waits) > 1
    return [f"{count}: {gang.remarks[why]}" if several else gang.remarks[why] for why, count in most]


def _show_evictions(console: Console, cycle: Cycle) -> None:
    if not cycle.result.evicts:
        return
    titles = {object_key(obj): _title(object_key(obj), obj) for obj in cycle.objects if obj["kind"] == "PodGroup"}
    table = WholeTable("evicted", "node", "job", "for", "by")
    for evict in cycle.result.evicts:
        who = f"{evict.namespace}/{evict.name}"
        job = titles.get(evict.job, evict.job)
        table.add_row(who, evict.node, job, evict.preemptor, evict.action or evict.reason)
    console.print(table)


def _show_queues(console: Console, queues: Mapping[str, Mapping[str, float]]) -> None:
    """Print shares and amounts at the opening of the last cycle, without empty columns."""
    rows = {name: {column: amounts_of(figures, column) for column in QUEUE_COLUMNS} for name, figures in queues.items()}
    columns = [column for column in QUEUE_COLUMNS if any(row[column] for row in rows.values())]
    table = WholeTable(
        "queue", "share", *(column.replace("_", " ") for column in columns), title="queues when it opened"
    )
    for name, row in rows.items():
        share = queues[name].get("share")
        table.add_row(name, "" if share is None else f"{share:.3g}", *(row[column] for column in columns))
    if table.row_count:
        console.print(table)
