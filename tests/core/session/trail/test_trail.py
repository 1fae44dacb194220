"""What a trail says of small clusters: who refused what, and where every action ended."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.core.cycle import Trail, open_session, run_cycle
from pumice.core.objects.metadata import Object, parse_time
from pumice.core.session.carry import Carry, CycleClock, SessionOptions
from pumice.core.session.reasons import Code, Reason, ReasonTable
from pumice.core.session.trail.records import Ending, Look
from tests.core.plugins.world import NOW, configuration, task_of, view_of
from tests.core.session.trail.told import CONFIG, TIERS, decided
from tests.kit import gang, node, nodes, pod, pod_group, queue, taint
from tests.kit.hyper_nodes import hyper_node

# --- looks

TAINTED = node("tainted", cpu="1", taints=[taint("a"), taint("b")], unschedulable=True)
WANTING = pod("p", group="j", cpu="4", node_selector={"zone": "z"})
GROUP = pod_group("j", phase="Inqueue")


def test_every_filter_says_what_it_has_against_a_node() -> None:
    trail = Trail(every_filter=True)
    decided(trail, TAINTED, node("free", labels={"zone": "z"}), queue("default"), GROUP, WANTING)
    (look,) = trail.looks["default/p"]
    assert (look.action, look.chosen) == ("allocate", "free")
    assert [reason.plugin for reason in look.refused()["tainted"]] == ["resources"]
    said = {reason.text for reason in look.refusers("tainted")}
    assert said == {
        "Insufficient cpu",
        "node(s) were unschedulable",
        "node(s) didn't match Pod's node affinity/selector",
        "node(s) had untolerated taint(s)",
    }
    assert look.refusers("free") == ()
    assert look.by_reason() == {"Insufficient cpu": 1, "fits": 1}
    assert look.by_filter() == {"resources": 1}


def test_what_every_filter_says_costs_nothing_unless_it_is_asked_for() -> None:
    trail = Trail()
    decided(trail, TAINTED, node("free", labels={"zone": "z"}), queue("default"), GROUP, WANTING)
    (look,) = trail.looks["default/p"]
    assert look.every == []
    assert look.refused()


def test_scores_add_up_to_what_chose_the_node() -> None:
    trail = Trail()
    busy = pod("b", node="n0", cpu="6")
    result = decided(trail, node("n0"), node("n1"), queue("default"), GROUP, pod("p", group="j"), busy)
    (look,) = trail.looks["default/p"]
    totals = look.totals()
    assert result.binds[0].node == look.chosen == max(totals, key=lambda name: totals[name])
    assert totals == {name: sum(look.score_of(name).values()) for name in ("n0", "n1")}
    assert set(look.score_of("n0")) == {"nodeorder"}


def test_what_no_node_has_enough_of_is_told() -> None:
    trail = Trail()
    decided(trail, node("n0", cpu="2"), node("n1", cpu="3"), queue("default"), GROUP, pod("p", group="j", cpu="4"))
    looks = trail.looks["default/p"]
    assert looks[0].lacking == {"cpu": (4000.0, 3000.0)}
    assert looks[0].chosen == ""
    assert [look.action for look in looks] == ["allocate", "preempt", "preempt", "reclaim"], (
        "for others' room, then for its own job's"
    )


def test_only_what_is_asked_about_is_kept() -> None:
    trail = Trail(frozenset({"default/j-0"}), frozenset({"default/j"}))
    decided(trail, node("n0"), queue("default"), gang("j", pods=2), gang("k", pods=2))
    assert list(trail.looks) == ["default/j-0"]
    assert list(trail.endings) == ["default/j"]
    assert list(trail.statuses) == ["default/j-0"]


@pytest.mark.parametrize("wanting", ["1", "9"])
def test_a_search_that_ends_early_says_what_it_saw(wanting: str) -> None:
    trail = Trail(every_filter=True)
    crowd = [node(f"n{number:03d}", cpu="8", unschedulable=number % 2 == 1) for number in range(400)]
    view = view_of(*crowd, queue("default"), GROUP, pod("p", group="j", cpu=wanting))
    options = SessionOptions(percentage_of_nodes=10)
    clock = CycleClock(1, parse_time(NOW))
    result = run_cycle(view.snapshot(), CONFIG, clock, Carry(), options, trail=trail)
    look, counts = trail.looks["default/p"][0], trail.looks["default/p"][0].by_reason()
    assert sum(counts.values()) == look.nodes == 400
    if wanting == "9":
        assert (look.looked_at, counts) == (400, {"Insufficient cpu": 400})
        return
    assert look.looked_at == result.carry["start"] == 201
    assert (counts["fits"], counts["not looked at"]) == (101, 199)
    assert (len(look.refused()), len(look.fitting), look.by_filter()) == (100, 100, {"NodeUnschedulable": 100})
    assert look.seen is not None
    seen = {name for name, was in zip(look.names, look.seen.tolist(), strict=True) if was}
    assert {name for name in look.names if look.refusers(name)} == look.refused().keys() <= seen
    assert look.chosen in seen


# --- admission and endings


def test_who_votes_on_admission_is_told() -> None:
    trail = Trail()
    small = queue("small", capability={"cpu": "1"})
    wanting = pod_group("j", queue="small", min_resources={"cpu": "4"})
    decided(trail, node("n0"), small, wanting, pod("p", group="j", cpu="4"))
    assert trail.admissions["default/j"].votes == [(2, "proportion", "rejects")]
    (ended,) = trail.of_job("default/j")
    assert (ended.action, ended.ending, ended.detail) == ("enqueue", Ending.NOT_ADMITTED, "proportion")
    assert (ended.tasks, ended.minimum) == ({"Pending": 1}, 1)


FIRM = gang("firm", queue="other", pods=2, nodes=["n0"] * 2, annotations={"volcano.sh/preemptable": "false"})
SMALL, TWIN = node("n0", cpu="2"), node("n1", cpu="2")
CASES: dict[str, tuple[list[Object | list[Object]], str, tuple[str, Ending]]] = {
    "no node": ([SMALL, TWIN, gang("j", pods=1, cpu="3")], "default/j-0", ("allocate", Ending.NO_NODE)),
    "its role has failed": (
        [*nodes(4, cpu="2"), gang("j", pods=2, cpu="3", min_member=1)],
        "default/j-1",
        ("allocate", Ending.ROLE_FAILED),
    ),
    "undone": ([SMALL, gang("j", pods=2, cpu="2", min_member=2)], "default/j", ("allocate", Ending.DISCARDED)),
    "committed": ([SMALL, gang("j", pods=1, cpu="1")], "default/j", ("allocate", Ending.COMMITTED)),
    "not valid": ([SMALL, gang("j", pods=1, min_member=3)], "default/j", ("allocate", Ending.NOT_VALID)),
    "not starving": ([SMALL, gang("j", pods=1, cpu="1")], "default/j", ("preempt", Ending.NOT_STARVING)),
    "no node to evict from": (
        [node("n0", taints=[taint("a")]), gang("j", pods=1)],
        "default/j-0",
        ("preempt", Ending.NO_CANDIDATES),
    ),
    "nobody to evict": ([SMALL, gang("j", pods=1, cpu="4")], "default/j-0", ("preempt", Ending.NO_VICTIMS)),
    "nobody to reclaim from": (
        [SMALL, queue("other"), FIRM, gang("j", pods=1)],
        "default/j-0",
        ("reclaim", Ending.NO_VICTIMS),
    ),
    "its queue is full": ([SMALL, gang("j", pods=1, cpu="4")], "default/j-0", ("allocate", Ending.QUEUE_HAS_NO_ROOM)),
    "best effort": ([SMALL, gang("j", pods=1, cpu=None, memory=None)], "default/j-0", ("backfill", Ending.PLACED)),
    "best effort, and no node": (
        [node("n0", taints=[taint("a")]), gang("j", pods=1, cpu=None, memory=None)],
        "default/j-0",
        ("backfill", Ending.NO_NODE),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_action_says_where_it_ended(name: str) -> None:
    objects, who, (action, ending) = CASES[name]
    trail = Trail()
    decided(trail, queue("default"), *objects)
    ends = [(one.who, one.action, one.ending) for one in trail.of_job("default/j")]
    assert (who, action, ending) in ends, ends


@pytest.mark.parametrize("whole", [True, False])
def test_every_domain_that_was_tried_is_named(whole: bool) -> None:
    trail = Trail()
    group = pod_group("j", min_member=2 if whole else 3, phase="Inqueue")
    group["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
    racks = [hyper_node("r0", 1, nodes=["n0"]), hyper_node("r1", 1, nodes=["n1"])]
    pods = [pod(f"p{number}", group="j", cpu="2") for number in range(2 if whole else 4)]
    config = configuration(["gang"], ["predicates", "network-topology-aware"], actions=("allocate",))
    assert not decided(trail, *nodes(2, cpu="2"), queue("default"), racks, group, pods, config=config).binds
    ends = [(one.ending, one.detail) for one in trail.of_job("default/j") if one.who == "default/j"]
    assert {(Ending.NOT_IN_DOMAIN, "r0"), (Ending.NOT_IN_DOMAIN, "r1")} <= set(ends)
    assert ends[-1] == (Ending.DISCARDED, "")


def test_what_ends_for_a_queue_ends_for_its_jobs() -> None:
    trail = Trail()
    strict = queue("q", capability={"cpu": "4"})
    strict["spec"]["dequeueStrategy"] = "fifo"
    groups = [pod_group(name, queue="q", min_resources={"cpu": amount}) for name, amount in (("a", "8"), ("j", "1"))]
    config = configuration(*TIERS, actions=("enqueue",), fix=("dequeue-strategy",))
    decided(trail, node("n0"), strict, queue("r"), groups, pod("p", group="j"), pod("q", group="a"), config=config)
    assert [(one.who, one.ending) for one in trail.of_job("default/a")] == [("default/a", Ending.NOT_ADMITTED)]
    assert [(one.who, one.ending) for one in trail.of_job("default/j")] == [("q", Ending.NO_TURN)]


def test_a_trail_lets_go_of_its_session() -> None:
    trail = Trail()
    decided(trail, node("n0"), queue("default"), gang("j", pods=1))
    with pytest.raises(AssertionError):
        assert trail.session
    assert trail.statuses == {"default/j-0": "Binding"}


def test_what_was_only_remembered_against_a_node_is_said_too() -> None:
    table = ReasonTable()
    refusal = Reason("resources", Code.UNSCHEDULABLE, "Insufficient cpu")
    codes = np.array([table.intern(refusal), 0], dtype=np.int32)
    look = Look("allocate", "default/p", ["before", "free"], table, codes, np.array([1]), every=[])
    assert look.refusers("before") == look.refused()["before"] == (refusal,)
    assert look.refusers("free") == ()


def test_what_nobody_looked_at_is_looked_at_anyway_as_an_action_would_have() -> None:
    trail = Trail()
    view = view_of(
        node("small", cpu="1"), node("n0"), node("n1"), queue("default"), GROUP, pod("p", group="j", cpu="4")
    )
    session = open_session(view.snapshot(), CONFIG, CycleClock(1, parse_time(NOW)), Carry(), trail=trail)
    trail.look_anyway(task_of(session, "p"))
    (look,) = trail.looks["default/p"]
    assert (look.action, look.chosen) == ("", "")
    assert look.by_reason() == {"Insufficient cpu": 1, "fits": 2}
    assert set(look.totals()) == {"n0", "n1"}


def test_a_pod_that_contradicts_itself_is_found_to_go_nowhere() -> None:
    """As its filters say before they are asked about any node."""
    trail = Trail()
    two = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("n0", "n1")]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": two}}
    view = view_of(node("n0"), queue("default"), GROUP, pod("p", group="j", affinity={"nodeAffinity": required}))
    session = open_session(view.snapshot(), CONFIG, CycleClock(1, parse_time(NOW)), Carry(), trail=trail)
    trail.look_anyway(task_of(session, "p"))
    (look,) = trail.looks["default/p"]
    assert (look.action, look.chosen, look.by_filter()) == ("", "", {"NodeAffinity": 1})
