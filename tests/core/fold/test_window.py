"""What a cycle sees together is the same whether every change is shown or only the telling ones."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pumice.core.fold.past import show
from pumice.core.fold.shown import Shown
from pumice.core.messages.events import Mutation
from pumice.core.state.view import View
from pumice.storage import codec
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.pods import pod

NODES = ("n0", "n1")
PODS = ("a", "b")
PHASES = ("Pending", "Running", "Succeeded", "Failed")


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    kind = draw(st.sampled_from(("ADDED", "MODIFIED", "MODIFIED", "DELETED")))
    name, on = draw(st.sampled_from(PODS)), draw(st.sampled_from((None, *NODES)))
    obj = pod(name, group="g", node=on, phase=draw(st.sampled_from(PHASES)), uid=name + draw(st.sampled_from("12")))
    if draw(st.integers(0, 9)) == 0:
        obj["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "nonsense"
    return kind, obj


FLIGHTS = st.lists(st.tuples(st.sampled_from(("assume", "evicting")), st.sampled_from(PODS), st.sampled_from(NODES)))


def started(flights: list[tuple[str, str, str]]) -> Shown[View]:
    view = View()
    first = [node("n0"), node("n1"), *gang("g", pods=0), pod("a", group="g", uid="a1"), pod("b", node="n0", uid="b1")]
    for obj in first:
        view.apply("ADDED", obj)
    for flight, name, on in flights:
        view.assume("default", name, on) if flight == "assume" else view.evicting("default", name)
    return Shown(lambda: view)


def seen(view: View) -> dict[str, Any]:
    """What a session would see of it."""
    assert view.check() == []
    snapshot = view.snapshot()
    rows = {task.key: task.row for task in snapshot.tasks.handles if task is not None}
    jobs = {job.key: snapshot.jobs.counts[:, job.row].tolist() for job in snapshot.jobs.handles if job is not None}
    return {
        "tasks": {key: (int(snapshot.tasks.status[row]), view.tasks.by_key[key].uid) for key, row in rows.items()},
        "used": snapshot.nodes.used.tolist(),
        "releasing": snapshot.nodes.releasing.tolist(),
        "jobs": jobs,
        "flights": [name for name in PODS if view.in_flight("default", name)],
    }


@given(st.lists(changes(), max_size=12), FLIGHTS)
def test_leaving_out_what_a_later_change_makes_up_for_changes_nothing(steps: list[Any], flights: list[Any]) -> None:
    whole, quick = started(flights), started(flights)
    window = [
        Mutation(number, kind, obj["kind"], "default", obj["metadata"]["name"], codec.pack(obj))
        for number, (kind, obj) in enumerate(steps)
    ]
    for kind, obj in steps:
        whole.see(kind, obj)
    applied = 0

    def on_quick(mutation: Mutation) -> bool:
        nonlocal applied
        applied += 1
        return quick.see(mutation.type, codec.unpack(mutation.blob))

    show(window, on_quick, lambda mutation: quick.view.in_flight("default", mutation.name))
    assert seen(whole.view) == seen(quick.view)
    assert applied <= len(window)


def test_only_the_last_of_many_changes_is_applied() -> None:
    applied: list[int] = []
    window = [Mutation(number, "MODIFIED", "Pod", "default", "a", b"") for number in range(5)]

    def apply(mutation: Mutation) -> bool:
        applied.append(mutation.revision)
        return True

    show(window, apply, lambda mutation: False)
    assert applied == [4]
    applied.clear()
    show(window, apply, lambda mutation: True)
    assert applied == [0, 1, 2, 3, 4]
