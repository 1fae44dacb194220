"""What is placed at a session's opening, and how little of it is read again in the next session."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core.kube.placed import placed_pods
from pumice.core.kube.pod_index import PodIndex
from pumice.core.kube.selectors import label_selector
from pumice.core.state import tables
from pumice.core.state.view import View
from tests.core.kube.sessions import session_over
from tests.kit import node, pod

ALONE: dict[str, Any] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}


def view_of(*objects: dict[str, Any]) -> View:
    view = View()
    for obj in objects:
        view.apply("ADDED", obj)
    return view


def special(view: View) -> list[tuple[str, int]]:
    session = session_over(view)
    found = sorted((task.name, row) for task, row, _ in placed_pods(session).special_at_opening())
    session.derived.give_back()
    return found


def test_special_pods_follow_the_view_from_session_to_session() -> None:
    view = view_of(node("n0"), node("n1"), pod("a", node="n0", affinity=ALONE), pod("b", node="n1"))
    assert special(view) == [("a", 0)]
    view.apply("ADDED", pod("c", node="n1", host_ports=[80]))
    assert special(view) == [("a", 0), ("c", 1)]
    view.apply("DELETED", pod("a", node="n0", affinity=ALONE))
    assert special(view) == [("c", 1)]
    view.apply("DELETED", node("n0"))
    assert special(view) == [("c", 0)]


def test_a_session_has_one_placed_and_the_next_another() -> None:
    view = view_of(node("n0"))
    first = session_over(view)
    placed = placed_pods(first)
    assert placed_pods(first) is placed
    first.derived.give_back()
    second = session_over(view)
    assert placed_pods(second) is not placed
    assert placed_pods(second).opening is placed.opening


def counts(view: View, app: str) -> list[int]:
    session = session_over(view)
    index = placed_pods(session).reader(PodIndex)
    session.derived.give_back()
    selector = label_selector({"matchLabels": {"app": app}})
    found = index.matching(frozenset(("default",)), selector, terminating=True).counts()
    return [int(one) for one in found]


def test_classes_are_counted_anew_where_pods_changed() -> None:
    web = {"app": "web"}
    view = view_of(node("n0"), node("n1"), pod("a", node="n0", labels=web), pod("b", node="n1", labels=web))
    assert counts(view, "web") == [1, 1]
    view.apply("ADDED", pod("c", node="n1", labels=web))
    view.apply("DELETED", pod("a", node="n0", labels=web))
    assert counts(view, "web") == [0, 2]
    view.apply("MODIFIED", pod("b", node="n1", labels={"app": "db"}))
    assert counts(view, "web") == [0, 1]
    assert counts(view, "db") == [0, 1]
    assert counts(view, "none") == [0, 0]


CHANGES = st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 2), st.booleans(), st.integers(0, 11)), max_size=12)


@settings(deadline=None, max_examples=60)
@given(CHANGES)
def test_placed_pods_kept_and_read_anew_are_the_same(changes: list[tuple[int, int, bool, int]]) -> None:
    """Whichever sessions were opened between the changes, however many snapshots nobody asked anything of."""
    view = view_of(*(node(f"n{number}") for number in range(3)))
    for name, place, alone, skipped in changes:
        old = view.tasks.by_key.get(f"default/p{name}")
        if place < 0:
            if old is not None:
                view.apply("DELETED", pod(f"p{name}"))
            continue
        app = {"app": "a" if alone else "b"}
        new = pod(f"p{name}", node=f"n{place}", labels=app, affinity=ALONE if alone else None, phase="Running")
        view.apply("ADDED" if old is None else "MODIFIED", new)
        for _ in range(skipped):
            view.snapshot()
        fresh = view_of(*(node(f"n{number}") for number in range(3)))
        for task in view.tasks.by_key.values():
            there = view.tasks.resides[task.row]
            fresh.apply(
                "ADDED", pod(task.name, node=there, labels=task.labels, affinity=task.template.affinity or None)
            )
        assert special(view) == special(fresh)
        assert [counts(view, each) for each in "ab"] == [counts(fresh, each) for each in "ab"]


def test_changed_nodes_are_known_until_too_many_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LONGEST", 8)
    view = view_of(node("n0"), node("n1"))
    residents = view.snapshot().residents
    numbers = [residents.number]
    for count in range(20):
        view.apply("ADDED", pod(f"p{count}", node=f"n{count % 2}"))
        residents = view.snapshot().residents
        assert residents.since(numbers[-1]) == frozenset({f"n{count % 2}"})
        assert residents.since(residents.number) == frozenset()
        assert residents.since(residents.number + 1) is None
        if count > 3:
            assert residents.since(numbers[-3]) == frozenset({"n0", "n1"})
        numbers.append(residents.number)
    assert residents.since(numbers[0]) is None
