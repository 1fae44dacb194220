"""Room that is promised and never comes is no help, and is not told as room to come."""

from __future__ import annotations

import pytest

from pumice.core.configuration import parse_scheduler_config
from pumice.core.objects.metadata import Object
from pumice.core.session.carry import Carry, CycleClock
from pumice.questions.explain.account import account_of
from pumice.questions.explain.advice.advise import advise
from pumice.questions.explain.scene import Scene
from pumice.questions.oneshot.cycles import fill
from tests.kit.jobs import gang
from tests.kit.nodes import node, nodes, taint
from tests.kit.priority_classes import priority_class
from tests.kit.queues import queue

CONFIG = """\
actions: "enqueue, allocate{}, backfill"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}]
- plugins: [{{name: predicates}}, {{name: proportion}}, {{name: nodeorder}}]
"""
NAME = "default/g"


def scene(*objects: Object, preempt: bool) -> Scene:
    given = [queue("default"), *objects]
    config = parse_scheduler_config(CONFIG.format(", preempt" * preempt), source="test")
    return Scene(fill(given), config, CycleClock(1, 1_800_000_000.0, 0), Carry(), objects=lambda: given)


def apart() -> list[Object]:
    """A gang of three, one on each host: one host is clean, one tainted, one cordoned."""
    cordoned = node("n2")
    cordoned.setdefault("spec", {})["unschedulable"] = True
    objects = [node("n0"), node("n1", taints=[taint("team", "x")]), cordoned, *gang("g", pods=3)]
    for obj in objects:
        if obj["kind"] == "Pod":
            obj["metadata"]["labels"] = {"app": "g"}
            term = {"labelSelector": {"matchLabels": {"app": "g"}}, "topologyKey": "kubernetes.io/hostname"}
            obj["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        elif obj["kind"] == "Node":
            obj["metadata"].setdefault("labels", {})["kubernetes.io/hostname"] = obj["metadata"]["name"]
    return objects


BOTH = "3 of 3 fit with: tolerate taint team=x:NoSchedule; also uncordon node n2"


def test_an_action_that_only_promises_is_no_help() -> None:
    found = advise(scene(*apart(), preempt=False), "podgroup", NAME, 30.0)
    assert BOTH in found.sentences
    assert not any("action preempt" in each for each in found.sentences), found.sentences


def test_who_has_only_a_promise_is_told_what_keeps_it_and_what_helps() -> None:
    """Preempt promises all three the clean node, where nobody goes."""
    here = scene(*apart(), preempt=True)
    account = account_of(here, "podgroup", NAME)
    assert set(account.tasks.values()) == {"Pipelined"}
    assert account.alias == "Unschedulable"
    for word in ("no pod leaves", "anti-affinity", "untolerated taint", "unschedulable"):
        assert word in account.message
    assert "is being released" not in account.message
    assert BOTH in advise(here, "podgroup", NAME, 30.0).sentences


def occupied(policy: str | None) -> list[Object]:
    """All room is held by pods of the class middle."""
    strong = priority_class("strong", 9)
    if policy:
        strong["preemptionPolicy"] = policy
    return [
        *nodes(2, cpu="4"),
        priority_class("low", 1),
        priority_class("middle", 5),
        strong,
        *gang(
            "r", pods=4, min_member=1, cpu="2", phase="Running", nodes=["n0", "n0", "n1", "n1"], priority_class="middle"
        ),
        *gang("g", pods=2, cpu="2", phase="Inqueue", priority_class="low"),
    ]


def test_room_that_is_made_counts_when_those_who_held_it_are_gone() -> None:
    found = advise(scene(*occupied(None), preempt=True), "podgroup", NAME, 30.0)
    assert "2 of 2 fit (2 pods are evicted for it) with: priority class strong" in found.sentences


def test_a_class_that_never_preempts_is_no_help() -> None:
    found = advise(scene(*occupied("Never"), preempt=True), "podgroup", NAME, 30.0)
    assert not any("strong" in each for each in found.sentences), found.sentences


def test_who_waits_for_room_that_is_released_is_told_so() -> None:
    leaving = gang("r", pods=1, cpu="4", phase="Running", nodes=["n0"])
    leaving[1]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    account = account_of(
        scene(node("n0", cpu="4"), *leaving, *gang("g", pods=1, cpu="4"), preempt=True), "pod", "default/g-0"
    )
    assert account.message == "it waits for room that is being released on n0"


def contested(*, made_again: bool) -> list[Object]:
    """Four pods of two cores hold all there is, and may go; the job that they belong to is older. `made_again`: a
    ReplicaSet sees to it that there are four.
    """
    held = gang("r", pods=4, min_member=0, cpu="2", phase="Running", nodes=["n0", "n0", "n1", "n1"])
    wanted = gang("g", pods=2, cpu="2", phase="Inqueue")
    wanted[0]["metadata"]["creationTimestamp"] = "2026-06-01T00:00:00Z"
    if not made_again:
        return [*nodes(2, cpu="4"), *held, *wanted]
    labels = {"app": "r"}
    for one in held[1:]:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
        one["metadata"] |= {"labels": labels, "ownerReferences": [owner]}
    template = {"metadata": {"labels": labels, "annotations": held[1]["metadata"]["annotations"]}}
    template["spec"] = {name: held[1]["spec"][name] for name in ("containers", "schedulerName")}
    keeper = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "r", "namespace": "default", "uid": "u"},
        "spec": {"replicas": 4, "selector": {"matchLabels": labels}, "template": template},
        "status": {"replicas": 4},
    }
    return [*nodes(2, cpu="4"), *held, keeper, *wanted]


@pytest.mark.parametrize("made_again", [True, False])
def test_who_comes_again_may_take_the_room_back(made_again: bool) -> None:
    """Where nobody comes in place of those who went, the job is as good as started and needs no advice."""
    given = [queue("default"), *contested(made_again=made_again)]
    gangs = "{name: gang, enableJobOrder: false}"
    tiers = f"tiers: [{{plugins: [{gangs}, {{name: predicates}}]}}]"
    config = parse_scheduler_config(f'actions: "enqueue, allocate, preempt"\n{tiers}\n', source="test")
    here = Scene(fill(given), config, CycleClock(1, 1_800_000_000.0, 0), Carry(), objects=lambda: given)
    found = advise(here, "podgroup", NAME, 30.0)
    assert any("cpu more" in each for each in found.sentences) == made_again, found


def test_what_policies_do_about_evictions_is_not_claimed_to_be_known() -> None:
    """A Job that restarts as a whole when one of its pods is evicted; one that does not."""
    for action, untold in (("RestartJob", True), ("SyncJob", False)):
        objects = occupied(None)
        owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "r", "uid": "u", "controller": True}
        for one in objects:
            if one["kind"] == "Pod" and one["metadata"]["name"].startswith("r-"):
                one["metadata"]["ownerReferences"] = [owner]
        meta = {"name": "r", "namespace": "default", "uid": "u"}
        spec = {"tasks": [], "policies": [{"event": "PodEvicted", "action": action}]}
        objects.append({"apiVersion": owner["apiVersion"], "kind": "Job", "metadata": meta, "spec": spec, "status": {}})
        found = advise(scene(*objects, preempt=True), "podgroup", NAME, 30.0)
        assert any("evicted for it" in each for each in found.sentences)
        assert ("what the policies of default/r do about evicted pods was not tried" in found.remark) == untold
