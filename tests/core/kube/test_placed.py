"""What is placed at a session's opening, and how little of it is read again in the next session."""

from typing import Any

from pumice.core.kube.placed import placed_pods
from pumice.core.kube.pod_index import pod_index
from pumice.core.kube.selectors import label_selector
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
    index = pod_index(placed_pods(session))
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
