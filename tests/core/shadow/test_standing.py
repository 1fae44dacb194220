"""What is there while nothing is decided, and what counts of it."""

from typing import Any

import pytest

from pumice.config.load import default_text
from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import run_cycle
from pumice.core.messages.events import ShadowDifference
from pumice.core.session.carry import Carry, CycleClock
from pumice.core.shadow.standing import ORIGIN, Persistence, counted, differences, standing_of
from pumice.core.state.view import View
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


def two_roles(*told: dict[str, str]) -> View:
    """A gang of two, of which either would do and none fits, each for reasons of its own."""
    group, *pods = gang("g", pods=2, phase="Inqueue")
    group["spec"]["minMember"] = 1
    group["status"]["conditions"] = list(told)
    for each, role, cpu in zip(pods, ("chief", "worker"), ("9", "7"), strict=True):
        each["metadata"]["annotations"]["volcano.sh/task-spec"] = role
        each["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
        each["spec"]["nodeSelector"] = {"zone": "z"} if role == "worker" else {}
    return shown(node("a", cpu="4"), node("b", cpu="8"), group, *pods)


@pytest.mark.parametrize(
    ("pod", "why", "differs"),
    [("g-0", "0", False), ("g-1", "1", False), ("g-1", "0", True), ("g-2", "0", True)],
)
def test_whose_words_a_group_gives_as_the_origin_is_chance(pod: str, why: str, differs: bool) -> None:
    """As long as they are what is said of that pod here."""
    here = {each.name: each.here.split(": ", 1) for each in found(two_roles())}
    reason, message = here["default/g"]
    words = here[f"default/g-{why}"][1]
    assert here["default/g-0"][1] != here["default/g-1"][1]
    state, mark, origin = message.partition(ORIGIN)
    assert origin.startswith("g-0: ")
    told = {"type": "Unschedulable", "status": "True", "reason": reason, "message": f"{state}{mark}{pod}: {words}"}
    assert ("default/g" in {each.name for each in found(two_roles(told))}) is differs
    told["message"] = message.replace("2 Pending", "3 Pending")
    assert "default/g" in {each.name for each in found(two_roles(told))}


def test_the_node_that_a_pod_is_held_for_is_known() -> None:
    """It could have it once its gang fits: which of equally good ones that is, is chance."""
    words = "Pod default/{} can possibly be assigned to {}, once minAvailable is satisfied"
    group, *pods = waiting("")
    for each, name in zip(pods, ("n1", "n2"), strict=True):
        each["status"]["conditions"][0]["message"] = words.format(each["metadata"]["name"], name)
    there = standing_of(shown(node("a"), group, *pods).snapshot())
    assert there.held == {each["metadata"]["uid"]: name for each, name in zip(pods, ("n1", "n2"), strict=True)}
