"""What must hold when a storm is over and the system at rest: every book agrees with every other one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from actors.api.store import Store
from core.messages.events import Mutation
from core.messages.replies import Listing
from core.state.view import View
from core.state.watched import WATCHED
from pumice.storm.budget_books import BUDGET
from pumice.storm.pod_book import unscheduled
from storage import codec
from storage.journal import API

if TYPE_CHECKING:
    from actors.system import System
    from pumice.storm.monitor import Monitor
    from storage.journal import Journal

Found = tuple[str, str]
Objects = dict[tuple[str, str, str], bytes]
MOST: Final = 3
EVERYTHING: Final = 10_000_000


def final_problems(system: System, monitor: Monitor, view: View | None) -> list[Found]:
    """Broken invariants by name, in words."""
    found = [("books-agree", problem) for problem in compare_views(view, fresh_view(system.store))] if view else []
    found += different(objects_of(system.store), monitor.truth.blobs)
    found += [("budgets-counted", words) for words in miscounted(system.store, monitor)]
    found += [("reasons", words) for words in without_reason(system.store, monitor)]
    found += monitor.truth.claims.left_over({pod.uid for pod in monitor.truth.pods.values() if not pod.ended})
    return found


def fresh_view(store: Store) -> View:
    """A view made of nothing but what the api has now."""
    view = View()
    for kind in WATCHED:
        listing = store.list(kind)
        if isinstance(listing, Listing):
            for blob in listing.blobs:
                view.apply("ADDED", codec.unpack_shared(blob))
    return view


def compare_views(ours: View, fresh: View) -> list[str]:
    """How the cache's books differ from the api's."""
    problems = list(ours.check())
    problems += _differences("task", _tasks(ours), _tasks(fresh))
    problems += _differences("node", _nodes(ours), _nodes(fresh))
    problems += _differences("job", _jobs(ours), _jobs(fresh))
    problems += _differences("queue", set(ours.queues), set(fresh.queues))
    return problems[:MOST]


def _differences(what: str, ours: set[Any], fresh: set[Any]) -> Iterator[str]:
    for each in sorted(ours - fresh):
        yield f"{what} {each} is in the cache's books and not in the api's"
    for each in sorted(fresh - ours):
        yield f"{what} {each} is in the api's books and not in the cache's"


def _tasks(view: View) -> set[Any]:
    status, resides = view.tasks.status, view.tasks.resides
    return {(task.key, task.uid, int(status[task.row]), resides[task.row]) for task in view.tasks.by_key.values()}


def _nodes(view: View) -> set[Any]:
    table, names = view.nodes, view.dimensions.names
    return {
        (name, tuple((names[d], round(float(table.idle[d, row]), 3)) for d in range(len(names)) if table.idle[d, row]))
        for name, row in table.row.items()
    }


def _jobs(view: View) -> set[Any]:
    return {
        (job.key, tuple(int(number) for number in view.jobs.counts[:, job.row]))
        for job in view.jobs.by_key.values()
        if job.tasks
    }


async def lost_in_journal(store: Store, journal: Journal) -> list[Found]:
    """The journal, played back, is the store."""
    replayed = Store()
    for stored in await journal.read(kinds=(API,), limit=EVERYTHING):
        replayed.restore(codec.decode(stored.payload, Mutation))
    return different(objects_of(store), objects_of(replayed))


def different(ours: Objects, theirs: Objects) -> list[Found]:
    """What the api has, against what the journal says it has."""
    keys = sorted(key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key))
    return [("nothing-lost", f"the journal has another {' '.join(key)} than the api") for key in keys[:MOST]]


def objects_of(store: Store) -> Objects:
    """The bytes of everything in a store."""
    return {(kind, *name): record.blob for kind in store.tables.kinds() for name, record in store.tables.of_kind(kind)}


def miscounted(store: Store, monitor: Monitor) -> list[str]:
    """Budgets whose status is not what the pods are."""
    problems: list[str] = []
    for name, book in monitor.budgets.by_name.items():
        record = store.tables.get((BUDGET, *name))
        status: dict[str, Any] = {} if record is None else codec.unpack_shared(record.blob).get("status") or {}
        said = (status.get("currentHealthy"), status.get("disruptionsAllowed"))
        if said != (book.healthy, max(book.spare, 0)):
            problems.append(f"budget {name[1]} says (healthy, allowed) {said}, it has {book.healthy}: {book.spare}")
    return problems[:MOST]


def without_reason(store: Store, monitor: Monitor) -> list[str]:
    """Pods that wait for this scheduler and nobody says why."""
    problems: list[str] = []
    for pod in monitor.truth.pods.values():
        if pod.node or pod.phase != "Pending" or pod.deleting or unscheduled(monitor.truth.object_of(pod)):
            continue
        if not _group_says_why(store, pod.job):
            problems.append(f"pod {pod.key} is pending without a reason")
    return problems[:MOST]


def _group_says_why(store: Store, job: str) -> bool:
    namespace, _, name = job.partition("/")
    record = store.tables.get(("PodGroup", namespace, name))
    if record is None:
        return True  # a pod of no group, or of one that has gone: nobody was asked to place it
    status: dict[str, Any] = codec.unpack_shared(record.blob).get("status") or {}
    conditions: list[dict[str, Any]] = status.get("conditions") or []
    return any(
        each.get("type") == "Unschedulable" and each.get("status") == "True" and each.get("message")
        for each in conditions
    )
