"""What is there while nothing is decided, and what counts of it."""

from typing import Any

from config.load import default_text, parse_scheduler_config
from core.cycle import run_cycle
from core.messages.shadow import ShadowDifference
from core.session.carry import Carry, CycleClock
from core.shadow.standing import Persistence, counted, differences, standing_of
from core.state.view import View
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.queues import queue

CONFIG = parse_scheduler_config(default_text(), source="test")


def found(view: View) -> list[ShadowDifference]:
    snapshot = view.snapshot()
    there = standing_of(snapshot)
    return differences(there, run_cycle(snapshot, CONFIG, CycleClock(1, 1.0), Carry()))


def shown(*objects: dict[str, Any]) -> View:
    view = View()
    for each in (queue("default"), *objects):
        view.apply("ADDED", each)
    return view


def waiting(message: str) -> list[dict[str, Any]]:
    """A gang too large for its node, of which somebody has written why; the PodGroup says nothing."""
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    group, *pods = gang("g", pods=2, phase="Inqueue")
    return [group, *({**pod, "status": {"phase": "Pending", "conditions": [dict(told)]}} for pod in pods)]


def test_what_would_be_bound_and_is_not() -> None:
    first, *rest = found(shown(node("a"), *gang("g", pods=1, phase="Inqueue")))
    assert (first.what, first.name, first.there, first.here) == ("bind", "default/g-0", "", "a")
    assert {each.what for each in rest} <= {"phase", "condition"}


def test_another_phase_and_other_words() -> None:
    view = shown(node("a", cpu="1"), *waiting("nobody knows"))
    kinds = {(each.what, each.name) for each in found(view)}
    assert kinds == {("condition", "default/g"), ("reason", "default/g-0"), ("reason", "default/g-1")}
    reasons = {(each.there, each.here.split(" ")[0]) for each in found(view) if each.what == "reason"}
    assert reasons == {("Unschedulable: nobody knows", f"{word}:") for word in ("Schedulable", "Unschedulable")}
    (pending,) = [each for each in found(shown(node("a"), *gang("g", pods=1))) if each.what == "phase"]
    assert (pending.there, pending.here) == ("Pending", "Inqueue")


def test_what_is_written_as_here_is_no_difference() -> None:
    view = shown(node("a", cpu="1"), *waiting("nobody knows"))
    told = {each.name: each.here.split(": ", 1) for each in found(view) if each.what == "reason"}
    group, *pods = waiting("")
    for pod in pods:
        reason, message = told[f"default/{pod['metadata']['name']}"]
        pod["status"]["conditions"][0] |= {"reason": reason, "message": message}
    assert {each.what for each in found(shown(node("a", cpu="1"), group, *pods))} == {"condition"}


def test_only_what_stays_counts_and_is_told_once() -> None:
    here, there, other = (
        ShadowDifference("phase", "ns/g", "Pending", phase) for phase in ("Inqueue", "Inqueue", "Running")
    )
    looks = Persistence()
    assert looks.confirmed([here]) == []
    assert looks.confirmed([there]) == [there]
    assert looks.new([there]) == [there]
    assert looks.new([there]) == []
    assert looks.confirmed([other]) == [], "it is another one now"
    assert looks.new([]) == []
    assert looks.confirmed([other]) == [other]
    assert looks.new([other]) == [other]


def test_a_name_counts_once_of_each_sort() -> None:
    some = [
        ShadowDifference(what, name, "", "x") for what, name in (("condition", "a"), ("condition", "a"), ("phase", "a"))
    ]
    assert counted(some) == {"condition": 1, "phase": 1}
