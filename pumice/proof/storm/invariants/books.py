# SPDX-License-Identifier: Apache-2.0
"""Invariants when a storm is over and the system at rest: every book agrees with every other one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict, astuple, replace

from pumice.cluster.api.store import Store
from pumice.cluster.kubelets.pod_life import PodState
from pumice.cluster.kubelets.pod_runs import read_run
from pumice.core.life.task import COMPLETED_STATUSES, ENDED_PHASES, TaskStatus
from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import section
from pumice.core.objects.node import read_node
from pumice.core.objects.pod import Task, read_task
from pumice.core.state.tasks import NOWHERE
from pumice.core.state.volumes import attachable_on
from pumice.proof.storm.invariants.budget_books import BUDGET
from pumice.proof.storm.invariants.card_books import miscounted_cells, without_cards
from pumice.proof.storm.invariants.pod_book import unscheduled
from pumice.proof.storm.invariants.queue_sums import wrong_at_rest
from pumice.proof.storm.invariants.statuses import wrong_statuses
from pumice.proof.storm.invariants.truth import SCHEDULERS
from pumice.storage.journal import API
from pumice.storage.records import read_as

if TYPE_CHECKING:
    from pumice.actors.system.system import System
    from pumice.core.objects.metadata import Object
    from pumice.core.state.view import View
    from pumice.proof.storm.invariants.monitor import Monitor
    from pumice.storage.journal import Journal

Found = tuple[str, str]
Objects = dict[tuple[str, str, str], bytes]
MOST: Final = 3
EVERYTHING: Final = 10_000_000
KNOWN: Final = (*Task.__struct_fields__[1:], "counted as", "home", "member")
"""Facts that the cache knows of a task, except its row, which comes first and has no counterpart in the api."""


def final_problems(system: System, monitor: Monitor, view: View | None) -> list[Found]:
    """Return broken invariants by name, with sentences."""
    found = [("books-agree", problem) for problem in compare_view(view, system.store)] if view else []
    found += different(objects_of(system.store), monitor.truth.blobs)
    found += [("budgets-counted", words) for words in miscounted(system.store, monitor)]
    found += [("outcomes", words) for words in without_outcome(monitor)]
    found += [("pods-end", words) for words in never_ending(system.store)]
    found += [("reasons", words) for words in without_reason(system.store, monitor)]
    gang = system.source.loaded.config.plugin("gang") is not None
    found += [("group-status", words) for words in wrong_statuses(monitor.truth, gang=gang)]
    truth = monitor.truth
    found += [("cards-handed-out", words) for words in without_cards(truth.all_of("Pod"))]
    found += [("cells-come-back", words) for words in miscounted_cells(truth.all_of("Numatopology"), truth.on)]
    found += [("nominations", words) for words in monitor.nominations.left_over(truth)]
    found += [("queue-sums", words) for words in wrong_at_rest(truth)]
    found += [("evictions-told-once", words) for words in monitor.evictions.unreported(monitor.lives)]
    found += [("job-counts", words) for words in monitor.job_counts.wrong_at_rest(truth)]
    found += monitor.truth.claims.left_over({pod.uid for pod in monitor.truth.pods.values() if not pod.ended})
    return found


def compare_view(view: View, store: Store) -> list[str]:
    """Return the differences between the cache's books and the api's objects, read anew: the view checks its own
    sums."""
    queues = {queue["metadata"]["name"] for queue in _listed(store, "Queue")}
    problems = list(view.check())
    problems += _wrong_tasks(view, store)
    problems += _wrong_nodes(view, store)
    problems += _strangers("queue", view.queues.keys(), queues)
    return problems[:MOST]


def _listed(store: Store, kind: str) -> list[Object]:
    return [store.tables.seen(record) for _, record in store.tables.of_kind(kind)]


def _strangers(what: str, ours: Set[str], theirs: Set[str]) -> Iterator[str]:
    for each in sorted(ours - theirs):
        yield f"{what} {each} is in the cache's books and not in the api's"
    for each in sorted(theirs - ours):
        yield f"{what} {each} is in the api's books and not in the cache's"


def _wrong_tasks(view: View, store: Store) -> Iterator[str]:
    listed = {task.key: task for task in (read_task(pod, NOWHERE, view.templates) for pod in _listed(store, "Pod"))}
    yield from _strangers("task", view.tasks.by_key.keys(), listed.keys())
    for key, ours in view.tasks.by_key.items():
        theirs = listed.get(key)
        if theirs is not None:
            mine, said = _known_of(view, ours), _said_of(theirs)
            if mine != said:
                yield from _differences(f"task {key}", _named(mine), _named(said))
    members = sum(len(job.tasks) for job in view.jobs.by_key.values())
    if members != sum(1 for task in listed.values() if task.job):
        yield f"jobs have {members} tasks in the cache's books, but not in the api's"


def _known_of(view: View, task: Task) -> tuple[Any, ...]:
    """Return all facts that the view has of a task, in flight or not, except its row: `KNOWN` names it."""
    row, job = task.row, view.jobs.by_key.get(task.job)
    member = job is not None and job.tasks.get(task.uid) is task
    template = view.templates.asking_for(task.template, ())  # volumes follow at the next snapshot
    plain = task if template is task.template else replace(task, template=template)
    return (*astuple(plain)[1:], view.tasks.status_at[row], view.tasks.resides[row], member)


def _said_of(task: Task) -> tuple[Any, ...]:
    """Return the facts of a pod in the view that the api also has."""
    home = task.node_name if task.status not in COMPLETED_STATUSES else ""
    return (*astuple(task)[1:], task.status, home, bool(task.job))


def _named(known: tuple[Any, ...]) -> Object:
    named = dict(zip(KNOWN, known, strict=True))
    return named | {"counted as": TaskStatus(named["counted as"])}


def _wrong_nodes(view: View, store: Store) -> Iterator[str]:
    drivers = {each["metadata"]["name"]: attachable_on(each) for each in _listed(store, "CSINode")}
    nodes = [(node, drivers.get(node["metadata"]["name"])) for node in _listed(store, "Node")]
    listed = {spec.name: spec for spec in (read_node(*each, view.uncounted) for each in nodes)}
    yield from _strangers("node", view.nodes.row.keys(), listed.keys())
    for name, row in view.nodes.row.items():
        theirs = listed.get(name)
        if theirs is not None:
            column: list[float] = view.nodes.allocatable[:, row].tolist()
            room = _by_name(view, view.dimensions.items(theirs.allocatable))
            ours = asdict(view.nodes.specs[row]) | {"room": _by_name(view, enumerate(column))}
            yield from _differences(f"node {name}", ours, asdict(theirs) | {"room": room})


def _by_name(view: View, amounts: Iterable[tuple[int, float]]) -> dict[str, float]:
    return {view.dimensions.names[dimension]: amount for dimension, amount in amounts if amount}


def _differences(what: str, ours: Object, theirs: Object) -> Iterator[str]:
    if ours != theirs:
        for name, mine in ours.items():
            if mine != theirs[name]:
                yield f"{what} has {name} {mine!r} in the cache's books and {theirs[name]!r} in the api's"


async def lost_in_journal(store: Store, journal: Journal) -> list[Found]:
    """Return the differences between the journal, played back, and the store."""
    replayed = Store()
    for stored in await journal.read(kinds=(API,), limit=EVERYTHING):
        replayed.restore(read_as(stored, Mutation))
    return different(objects_of(store), objects_of(replayed))


def different(ours: Objects, theirs: Objects) -> list[Found]:
    """Compare the api's objects with the journal's."""
    if ours == theirs:
        return []
    keys = sorted(key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key))
    return [("nothing-lost", f"the journal has another {' '.join(key)} than the api") for key in keys[:MOST]]


def objects_of(store: Store) -> Objects:
    """Return the bytes of everything in a store."""
    return {(kind, *name): record.blob for kind in store.tables.kinds() for name, record in store.tables.of_kind(kind)}


def miscounted(store: Store, monitor: Monitor) -> list[str]:
    """Yield budgets whose status disagrees with the pods."""
    problems: list[str] = []
    for name, book in monitor.budgets.by_name.items():
        record = store.tables.get((BUDGET, *name))
        status: Object = {} if record is None else store.tables.seen(record).get("status") or {}
        said = (status.get("currentHealthy"), status.get("disruptionsAllowed"))
        if said != (book.healthy, max(book.spare, 0)):
            problems.append(f"budget {name[1]} says (healthy, allowed) {said}, it has {book.healthy}: {book.spare}")
    return problems[:MOST]


def without_outcome(monitor: Monitor) -> list[str]:
    """Return binds of this life of the process without an outcome in the journal."""
    left = [each.bind for each in monitor.decided.values() if each.open and each.life == monitor.lives]
    return [f"the journal has no outcome of the bind of {bind.namespace}/{bind.name}" for bind in left[:MOST]]


def never_ending(store: Store) -> list[str]:
    """Return pods on an existing node that run though they have an end: at rest no timer is left to end them."""
    nodes = {node["metadata"]["name"] for node in _listed(store, "Node")}
    pods = _listed(store, "Pod")
    runs = [read_run(pod, 0) for pod in pods if section(pod, "status").get("phase") not in ENDED_PHASES]
    problems = [
        f"pod {run.namespace}/{run.name} runs on {run.node}, for {run.duration_s:g} s and longer"
        for run in runs
        if run is not None and run.state is PodState.RUNNING and run.duration_s and run.node in nodes
    ]
    return problems[:MOST]


def without_reason(store: Store, monitor: Monitor) -> list[str]:
    """Return pods that wait for this scheduler without a stated reason."""
    problems: list[str] = []
    for pod in monitor.truth.pods.values():
        if pod.node or pod.phase != "Pending" or pod.deleting:
            continue
        obj = monitor.truth.object_of(pod)
        if not unscheduled(obj) and (_is_left_alone(obj, pod.job) or not _group_says_why(store, pod.job)):
            problems.append(f"pod {pod.key} is pending without a reason")
    return problems[:MOST]


def _is_left_alone(obj: Object, job: str) -> bool:
    """Return whether a pod of this scheduler is in no group, so that the scheduler never sees it."""
    return obj["spec"].get("schedulerName") == SCHEDULERS[0] and job.endswith("/")


def _group_says_why(store: Store, job: str) -> bool:
    namespace, _, name = job.partition("/")
    record = store.tables.get(("PodGroup", namespace, name))
    if record is None:
        return True  # a pod of another scheduler's, or of a group that has gone: no scheduler was asked to place it
    status: Object = store.tables.seen(record).get("status") or {}
    conditions: list[Object] = status.get("conditions") or []
    return any(
        each.get("type") == "Unschedulable" and each.get("status") == "True" and each.get("message")
        for each in conditions
    )
