"""What plugins have binds carry: everybody is asked, and all that is said is carried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.cycle import close_session, run_action
from pumice.core.messages.decisions import BindContext, ClaimedDevices
from pumice.core.session.points.all_points import merged
from tests.core.plugins.world import configuration, open_world, view_of
from tests.kit import gang, node, queue

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task

OURS = BindContext(annotations=(("a", "ours"), ("b", "ours")), timeout_s=3.0)
THEIRS = BindContext(
    volumes=(("pv", "ns/c"),), devices=(ClaimedDevices("ns/d"),), timeout_s=5.0, annotations=(("b", "theirs"),)
)


def test_all_is_carried_and_the_first_names_an_annotation() -> None:
    assert merged(()) is None
    assert merged((OURS,)) is OURS
    both = merged((OURS, THEIRS))
    assert both == BindContext(
        volumes=(("pv", "ns/c"),),
        devices=(ClaimedDevices("ns/d"),),
        timeout_s=5.0,
        annotations=(("a", "ours"), ("b", "ours")),
    )
    claims = BindContext(provisions=("ns/c",))
    assert merged((claims, claims)) == BindContext(provisions=("ns/c", "ns/c"))


def test_a_plugin_is_asked_about_pods_without_volumes_and_claims() -> None:
    session = open_world(configuration(["gang"]), queue("q"), node("n0"), gang("j", queue="q", pods=2))
    asked: list[str] = []

    def say(task: Task) -> BindContext | None:
        asked.append(f"{task.name} on {session.nodes.names[session.jobs.node[task.row]]}")
        return OURS if task.name == "j-0" else None

    session.points.bind_context.add("gang", say)
    run_action(session, "enqueue")
    run_action(session, "allocate")
    result = close_session(session)
    assert asked == ["j-0 on n0", "j-1 on n0"]
    assert {bind.name: bind.annotations for bind in result.binds} == {"j-0": {"a": "ours", "b": "ours"}, "j-1": {}}


def test_a_pod_on_its_way_has_the_annotations_of_its_bind() -> None:
    view = view_of(queue("q"), node("n0"), gang("j", queue="q", pods=2, annotations={"a": "own", "c": "own"}))
    assert view.assume("default", "j-0", "n0", OURS)
    before = view.snapshot()
    assert view.assume("default", "j-1", "n0", THEIRS)
    tasks = view.tasks.by_key
    assert before.annotations_of(tasks["default/j-0"])["b"] == "ours"
    assert "b" not in before.annotations_of(tasks["default/j-1"])  # a snapshot stays
    now = view.snapshot()
    assert {name: now.annotations_of(tasks["default/j-0"])[name] for name in "abc"} == {
        "a": "ours",
        "b": "ours",
        "c": "own",
    }
    assert now.annotations_of(tasks["default/j-1"])["b"] == "theirs"
