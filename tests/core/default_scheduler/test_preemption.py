"""Who must go for a pod of higher priority: by Kubernetes' rules, not by Volcano's."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.default_scheduler.cycle import MOST_A_CYCLE, Preemption, Sacrifice
from pumice.core.messages.decisions import CycleResult
from pumice.core.objects.metadata import Object
from pumice.core.objects.pod import Task
from pumice.core.session.search.node_search import NodeSearch
from pumice.core.state.view import View
from tests.core.default_scheduler.clusters import bound, decided, mine, why
from tests.kit.budgets import budget
from tests.kit.nodes import node
from tests.kit.pods import pod

VIP = mine("vip", cpu="6", priority=100)


def resident(name: str, where: str, *, cpu: str = "4", priority: int = 0, started: str = "", **options: Any) -> Object:
    made = mine(name, node=where, cpu=cpu, priority=priority, **options)
    if started:
        made["status"]["startTime"] = started
    return made


def evicted(result: CycleResult) -> set[str]:
    return {evict.name for evict in result.evicts}


def nominated(result: CycleResult) -> dict[str, str]:
    return {one.name: one.nominated for one in result.pod_conditions if one.nominated}


EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("residents", "goes", "where"),
    [
        ([resident("a", "n0"), resident("b", "n0"), resident("c", "n1", cpu="8")], {"c"}, "n1"),
        ([resident("a", "n0", priority=5, cpu="8"), resident("b", "n1", priority=6, cpu="8")], {"a"}, "n0"),
        (
            [
                resident("a", "n0", priority=5),
                resident("b", "n0", priority=1),
                resident("c", "n1", priority=5),
                resident("d", "n1", priority=2),
            ],
            {"a", "b"},
            "n0",
        ),
        (
            [resident("a", "n0", cpu="8", started=EARLY), resident("b", "n1", cpu="8", started=LATE)],
            {"b"},
            "n1",
        ),
        ([resident("a", "n0", cpu="2"), resident("b", "n0", cpu="6"), resident("c", "n1", priority=200)], {"b"}, "n0"),
    ],
    ids=["fewest", "lowest-highest", "smallest-sum", "latest-start", "no-more-than-needed"],
)
def test_the_least_loss(residents: list[Object], goes: set[str], where: str) -> None:
    result = decided(node("n0"), node("n1"), residents, VIP)
    assert (evicted(result), nominated(result)) == (goes, {"vip": where})
    assert not result.binds
    assert why(result)["vip"].endswith("nodes are available: 2 Insufficient cpu.")


def test_pods_of_volcano_and_bound_ones_go_too() -> None:
    result = decided(node("n0"), pod("v", node="n0", cpu="8", priority=1, phase="Pending"), VIP)
    assert evicted(result) == {"v"}
    (evict,) = result.evicts
    assert (evict.action, evict.preemptor) == ("default-scheduler", "default/vip")


def test_a_budget_is_spared_where_another_node_will_do() -> None:
    guarded = resident("a", "n0", cpu="8", labels={"app": "web"})
    other = resident("b", "n1", cpu="8", priority=50)
    protecting = budget() | {"status": {"disruptionsAllowed": 0}}
    assert evicted(decided(node("n0"), node("n1"), guarded, other, VIP)) == {"a"}
    assert evicted(decided(node("n0"), node("n1"), guarded, other, protecting, VIP)) == {"b"}
    assert evicted(decided(node("n0"), guarded, protecting, VIP)) == {"a"}  # a preference, no bar


def test_the_protected_come_back_first() -> None:
    """Either of the two would make room: the one within a budget stays, though it is the less important."""
    protecting = budget() | {"status": {"disruptionsAllowed": 0}}
    two = [resident("a", "n0", priority=1, labels={"app": "web"}), resident("b", "n0", priority=2)]
    half = mine("vip", cpu="4", priority=100)
    assert evicted(decided(node("n0"), two, half)) == {"a"}
    assert evicted(decided(node("n0"), two, protecting, half)) == {"b"}


@pytest.mark.parametrize("priority", [100, 101])
def test_equals_and_betters_stay(priority: int) -> None:
    result = decided(node("n0"), resident("a", "n0", cpu="8", priority=priority), VIP)
    assert not result.evicts
    assert "preemption: 0/1 nodes are available: 1 No preemption victims found" in why(result)["vip"]


def test_the_policy_never_is_heeded() -> None:
    meek = mine("vip", cpu="6", priority=100)
    meek["spec"]["preemptionPolicy"] = "Never"
    result = decided(node("n0"), resident("a", "n0", cpu="8"), meek)
    assert not result.evicts
    assert why(result)["vip"].endswith("preemption: not eligible due to preemptionPolicy=Never.")


def test_ports_are_a_reason_to_preempt() -> None:
    result = decided(
        node("n0"), resident("a", "n0", cpu="1", host_ports=[80]), mine("vip", priority=9, host_ports=[80])
    )
    assert evicted(result) == {"a"}


def nominee(cpu: str = "6") -> Object:
    made = mine("vip", cpu=cpu, priority=100)
    made["status"]["nominatedNodeName"] = "n0"
    return made


def leaving(name: str = "a") -> Object:
    made = resident(name, "n0", cpu="8")
    made["metadata"]["deletionTimestamp"] = LATE
    return made


def test_while_the_victims_leave_nobody_else_must_and_the_room_is_kept() -> None:
    """Without the promise the small pod, which comes later, would find room for itself to be made, or take it."""
    small = mine("small", cpu="1", priority=1)
    objects = [node("n0"), node("n1"), resident("b", "n1", cpu="8"), leaving(), nominee(), small]
    result = decided(objects)
    assert evicted(result) == {"b"}
    assert nominated(result) == {"small": "n1"}
    assert why(result)["vip"].endswith("preemption: not eligible due to a terminating pod on the nominated node.")


def test_room_on_the_node_that_is_promised_is_nobody_elses() -> None:
    half_gone = resident("a", "n0", cpu="4")
    half_gone["metadata"]["deletionTimestamp"] = LATE
    small = mine("small", cpu="3", priority=1)
    assert not bound(decided(node("n0"), half_gone, nominee(), small))
    assert bound(decided(node("n0"), half_gone, small)) == {"small": "n0"}


def test_what_was_tried_changes_nothing() -> None:
    """A trial on every node, none of which will do, leaves each with its pods: the next pod sees them."""
    view = View()
    result = decided(
        node("n0"),
        resident("a", "n0", cpu="4"),
        resident("b", "n0", cpu="3", priority=200),
        VIP,
        mine("small", cpu="2"),
        mine("tiny", cpu="1"),
        view=view,
    )
    assert not result.evicts
    assert bound(result) == {"tiny": "n0"}


def test_a_cycle_makes_room_for_so_many_and_leaves_the_others_to_the_next() -> None:
    there = [node(f"n{number:02}") for number in range(MOST_A_CYCLE + 5)]
    low = [resident(f"r{number:02}", f"n{number:02}", cpu="8") for number in range(MOST_A_CYCLE + 5)]
    waits = [mine(f"p{number:02}", cpu="6", priority=9) for number in range(MOST_A_CYCLE + 5)]
    result = decided(there, low, waits)
    assert len(result.evicts) == len(result.pod_conditions) == MOST_A_CYCLE


def test_pods_alike_are_tried_once_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def counted(self: Preemption, task: Task, search: NodeSearch, row: int) -> Sacrifice | None:
        tried.append(task.name)
        return real(self, task, search, row)

    real = Preemption.on_node
    monkeypatch.setattr(Preemption, "on_node", counted)
    waits = [mine(f"p{number}", cpu="9", priority=9) for number in range(5)]
    result = decided(node("n0"), resident("r", "n0", cpu="8"), waits, mine("other", cpu="9", priority=8))
    assert tried == ["p0", "other"]
    assert len(set(why(result).values())) == 1


def test_room_that_is_being_made_is_known_before_the_api_says_so() -> None:
    """The victim is leaving, and the pod does not yet show where it is nominated: nobody else must go."""
    there = [node("n0"), node("n1"), resident("a", "n0", cpu="8"), resident("b", "n1", cpu="8")]
    first = decided(there, VIP)
    assert (evicted(first), nominated(first)) == ({"a"}, {"vip": "n0"})
    view = View()
    for obj in (*there, VIP):
        view.apply("ADDED", obj)
    view.evicting("default", "a")
    second = decided(view=view, carry=first.carry)
    assert not second.evicts
    assert why(second)["vip"].endswith("not eligible due to a terminating pod on the nominated node.")
    view.apply("MODIFIED", nominee())
    assert not decided(view=view, carry=second.carry).carry["plugins"]


def test_victims_are_there_until_they_have_left() -> None:
    """The node may have one pod: while the victim leaves, a pod that asks for nothing is one too many."""
    objects = [node("n0", pods="2"), resident("a", "n0", cpu="4"), resident("b", "n0", cpu="4")]
    result = decided(objects, VIP, mine("small", cpu=None, memory=None))
    assert evicted(result) == {"a", "b"}
    assert not bound(result)


def test_a_pod_for_which_nobody_can_make_room_any_more_is_nominated_nowhere() -> None:
    """As kube-scheduler does (`preemption.go`, Preempt); under rules before version 4 the name stays."""
    stronger = resident("strong", "n0", cpu="8", priority=200)
    before = {**VIP, "status": {**VIP["status"], "nominatedNodeName": "n0"}}
    (said,) = decided(node("n0"), stronger, before).pod_conditions
    assert (said.name, said.nominated) == ("vip", None)
    (said,) = decided(node("n0"), stronger, before, rules=3).pod_conditions
    assert (said.name, said.nominated) == ("vip", "")


def test_what_is_given_up_is_not_given_up_again_before_the_pod_shows_it() -> None:
    stronger = resident("strong", "n0", cpu="8", priority=200)
    before = {**VIP, "status": {**VIP["status"], "nominatedNodeName": "n0"}}
    first = decided(node("n0"), stronger, before)
    (said,) = decided(node("n0"), stronger, before, carry=first.carry).pod_conditions
    assert said.nominated == ""


@pytest.mark.parametrize(("priority", "goes"), [(99, set[str]()), (100, {"low"})])
def test_who_waits_for_less_important_pods_to_leave_makes_no_more_room(priority: int, goes: set[str]) -> None:
    """One as important that leaves its node is no reason to wait."""
    leaving = resident("leaving", "n0", cpu="2", priority=priority)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T11:59:00Z"
    before = {**VIP, "status": {**VIP["status"], "nominatedNodeName": "n0"}}
    assert evicted(decided(node("n0"), leaving, resident("low", "n0", cpu="6"), before)) == goes
