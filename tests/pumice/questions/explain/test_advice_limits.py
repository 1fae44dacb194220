"""What would help against limits: of queues, of namespaces, of the cluster's admission, and of who may preempt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pumice.core.configuration import parse_scheduler_config
from pumice.core.objects.metadata import Object
from pumice.core.session.carry import Carry, CycleClock
from pumice.questions.explain.account import account_of
from pumice.questions.explain.advice.advise import Advice, advise
from pumice.questions.explain.scene import Scene
from pumice.questions.oneshot.cycles import fill
from pumice.questions.oneshot.expand import expanded
from tests.kit.jobs import gang, job_task, vcjob
from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.priority_classes import priority_class
from tests.kit.queues import queue

NOW = 1_800_000_000.0
CONFIG = """\
actions: "enqueue, allocate, preempt, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}, {name: drf}, %s]
"""


def scene(*objects: Object, plugins: str = "{name: proportion}") -> Scene:
    config = parse_scheduler_config(CONFIG % plugins, source="test")
    given = [queue("default"), *objects]
    return Scene(fill(given), config, CycleClock(1, NOW, 0), Carry(), objects=lambda: given)


def advised(*objects: Object, plugins: str = "{name: proportion}") -> Advice:
    return advise(scene(*objects, plugins=plugins), "podgroup", "default/g", 30.0)


def quota(hard: dict[str, str], used: dict[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "most", "namespace": "default", "uid": "q"},
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": used},
    }


def running(name: str, pods: int, **more: Any) -> list[Object]:
    return gang(name, pods=pods, min_member=1, phase="Running", nodes=["n0"] * pods, **more)


def never(objects: list[Object]) -> list[Object]:
    for obj in objects:
        if obj["kind"] == "Pod":
            obj["spec"]["preemptionPolicy"] = "Never"
    return objects


def test_a_greater_factor_of_overcommit_where_that_admits_the_job() -> None:
    """1.2 times 10 cores are 12; 13 are asked for, and 1.3 is enough, to the tenth."""
    waiting = pod_group("g", min_member=1, min_resources={"cpu": "13"})
    found = advised(node("n0", cpu="10"), waiting, plugins="{name: overcommit}")
    assert "admitted with: overcommit: overcommit-factor 1.3 instead of 1.2" in found.sentences


def test_less_room_may_do_where_more_is_taken_by_others() -> None:
    """20 cores, 10 of them behind a taint; 16 are promised to a job that does not fit. 4 more admit the other, which
    fits; with 6 to 13 more the first fits and leaves too little.
    """
    closed = node("n1", cpu="10", taints=[{"key": "team", "value": "x", "effect": "NoSchedule"}])
    first = [pod_group("a", min_member=8, min_resources={"cpu": "16"})]
    first += [pod(f"a-{i}", group="a", cpu="2") for i in range(8)]
    second = [pod_group("g", min_member=8, min_resources={"cpu": "8"})]
    second += [pod(f"g-{i}", group="g", cpu="1") for i in range(8)]
    found = advised(node("n0", cpu="10"), closed, *first, *second)
    assert "8 of 8 fit with: 4 cpu more on node n0" in found.sentences


def test_admission_alone_is_no_help_to_pods_that_do_not_fit() -> None:
    waiting = [pod_group("g", min_resources={"cpu": "13"}), pod("g-0", group="g", cpu="13")]
    found = advised(node("n0", cpu="10"), *waiting, plugins="{name: overcommit}")
    assert found.sentences == ["1 of 1 fit with: 3 cpu more on node n0"]


def test_no_factor_is_offered_to_a_job_that_is_admitted() -> None:
    found = advised(node("n0", cpu="1"), *gang("g", pods=2, phase="Inqueue"), plugins="{name: overcommit}")
    assert not [each for each in found.sentences if "overcommit" in each]


def test_a_missing_priority_class_without_which_there_are_no_pods() -> None:
    """The controllers could make no pods; with the class they do."""
    job = vcjob("j", job_task(replicas=2, cpu="1"), priority_class="lost")
    job["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    given = expanded([queue("root"), queue("default"), node("n0"), job], NOW).objects
    assert not [obj for obj in given if obj["kind"] == "Pod"]
    config = parse_scheduler_config(CONFIG % "{name: proportion}", source="test")
    here = Scene(fill(given), config, CycleClock(1, NOW, 0), Carry(), objects=lambda: given)
    found = advise(here, "job", "default/j", 30.0)
    assert "2 of 2 fit with: create PriorityClass lost (value 0)" in found.sentences
    assert here.view.check() == []


def test_a_missing_priority_class_that_has_to_be_worth_something() -> None:
    objects = [
        node("n0", cpu="3"),
        priority_class("middle", 5),
        *running("r", 3, priority_class="middle"),
        *gang("g", pods=1, cpu="2", phase="Inqueue", priority_class="lost"),
    ]
    said = "1 of 1 fit (2 pods are evicted for it) with: create PriorityClass lost (value 6)"
    assert said in advised(*objects).sentences


def test_what_a_queue_deserves() -> None:
    """Capacity reclaims for a queue up to what it deserves."""
    objects = [
        node("n0", cpu="4", memory="64Gi"),
        queue("mine", deserved={"cpu": "1"}),
        queue("others", deserved={"cpu": "2"}),
        *running("r", 4, queue="others"),
        *gang("g", pods=2, queue="mine", phase="Inqueue"),
    ]
    found = advised(*objects, plugins="{name: capacity}")
    said = "2 of 2 fit (2 pods are evicted for it) with: queue mine: deserved cpu 2 instead of 1"
    assert said in found.sentences


def test_what_the_queue_of_others_deserves() -> None:
    """They have no more than they deserve, and give nothing back."""
    objects = [
        node("n0", cpu="4", memory="64Gi"),
        queue("mine", deserved={"cpu": "4"}),
        queue("others", deserved={"cpu": "4", "memory": "64Gi"}),
        queue("idle", deserved={"cpu": "4"}),
        *gang("r", pods=4, min_member=0, phase="Running", nodes=["n0"] * 4, queue="others"),
        *gang("g", pods=2, queue="mine", phase="Inqueue"),
    ]
    first = "[{name: gang}, {name: predicates}, {name: capacity}]"
    config = parse_scheduler_config(f'actions: "allocate, reclaim"\ntiers: [{{plugins: {first}}}]', source="test")
    found = advise(replace(scene(*objects), config=config), "podgroup", "default/g", 30.0)
    said = "2 of 2 fit (2 pods are evicted for it) with: queue others: deserved "
    assert {each for each in found.sentences if "deserved" in each} == {
        f"{said}cpu 2 instead of 4",
        f"{said}memory 2Gi instead of 64Gi",
    }


def test_the_weight_of_a_queue() -> None:
    """Of eight cores two queues get four each; 3:1 gives the six."""
    objects = [
        node("n0", cpu="8", memory="64Gi"),
        queue("mine"),
        queue("others"),
        *running("r", 8, queue="others"),
        *gang("g", pods=6, queue="mine", phase="Inqueue"),
    ]
    said = "6 of 6 fit (6 pods are evicted for it) with: queue mine: weight 3 instead of 1"
    assert said in advised(*objects).sentences


def test_the_limit_of_a_queue_above() -> None:
    objects = [
        node("n0"),
        queue("root"),
        queue("top", parent="root", capability={"cpu": "2"}),
        queue("mine", parent="top"),
        *gang("g", pods=4, queue="mine", phase="Inqueue"),
    ]
    found = advised(*objects, plugins="{name: capacity, enableHierarchy: true}")
    assert "4 of 4 fit with: queue top: capability cpu 4 instead of 2" in found.sentences


def test_only_the_limit_that_is_too_tight_is_raised() -> None:
    tight = queue("small", capability={"cpu": "2", "memory": "64Gi"})
    found = advised(node("n0"), tight, *gang("g", pods=4, queue="small", phase="Inqueue"))
    assert "4 of 4 fit with: queue small: capability cpu 4 instead of 2" in found.sentences


@pytest.mark.parametrize(
    ("hard", "used", "minimum", "words"),
    [
        ({"cpu": "6"}, {"cpu": "4"}, {"cpu": "4"}, "cpu 8 instead of 6"),
        ({"requests.memory": "2Gi"}, {}, {"requests.memory": "4Gi"}, "requests.memory 4Gi instead of 2Gi"),
        ({"pods": "3", "cpu": "99"}, {}, {"pods": "4", "cpu": "1"}, "pods 4 instead of 3"),
    ],
)
def test_the_quota_of_a_namespace(
    hard: dict[str, str], used: dict[str, str], minimum: dict[str, str], words: str
) -> None:
    waiting = pod_group("g", min_member=4, min_resources=minimum)
    found = advised(node("n0"), quota(hard, used), waiting, plugins="{name: resourcequota}")
    assert f"admitted with: quota most: hard {words}" in found.sentences


def test_a_quota_is_raised_by_no_more_than_is_needed_beside_others() -> None:
    """Seven that are used, three that another job is promised, and four: by halves of what is asked it would be 16."""
    first = pod_group("first", min_resources={"cpu": "3"})
    waiting = pod_group("g", min_member=4, min_resources={"cpu": "4"})
    found = advised(node("n0"), quota({"cpu": "10"}, {"cpu": "7"}), first, waiting, plugins="{name: resourcequota}")
    assert "admitted with: quota most: hard cpu 14 instead of 10" in found.sentences


def test_a_quota_says_what_it_has_left() -> None:
    """With what others were promised in the same cycle taken off, in the units people wrote."""
    first = pod_group("first", min_resources={"cpu": "6", "memory": "1Gi"})
    waiting = pod_group("g", min_member=4, min_resources={"cpu": "54", "memory": "3Gi"})
    limits = quota({"cpu": "60", "memory": "4608Mi"}, {"cpu": "30", "memory": "1Gi"})
    told = account_of(
        scene(node("n0"), limits, first, waiting, plugins="{name: resourcequota}"), "podgroup", "default/g"
    )
    said = "asks 54 cpu, 24 left of 60 in quota most; asks 3Gi memory, 2560Mi left of 4608Mi in quota most"
    assert said in told.message


def test_a_preemption_policy() -> None:
    objects = [
        node("n0", cpu="2"),
        priority_class("low", 1),
        priority_class("high", 9),
        *running("r", 2, priority_class="low"),
        *never(gang("g", pods=1, phase="Inqueue", priority_class="high")),
    ]
    said = "1 of 1 fit (1 pod is evicted for it) with: preemptionPolicy PreemptLowerPriority"
    assert said in advised(*objects).sentences


def test_a_limit_is_raised_by_no_more_than_is_needed() -> None:
    """Half a core of it can be used by nobody: four cores are enough, not two and a half and two more."""
    tight = queue("small", capability={"cpu": "2500m"})
    found = advised(node("n0"), tight, *gang("g", pods=4, queue="small", phase="Inqueue"))
    assert "4 of 4 fit with: queue small: capability cpu 4 instead of 2500m" in found.sentences


def test_of_two_limits_that_are_too_tight_each_is_raised_by_what_it_lacks() -> None:
    tight = queue("small", capability={"cpu": "2", "memory": "7Gi", "nvidia.com/gpu": "8"})
    objects = [node("n0", gpus=8), tight, *gang("g", pods=4, queue="small", phase="Inqueue", memory="3Gi", gpus=1)]
    said = "4 of 4 fit with: queue small: capability cpu 4 instead of 2, memory 12Gi instead of 7Gi"
    found = advised(*objects, plugins="{name: capacity}")
    assert found.sentences[0] == said
    assert not [each for each in found.sentences if "gpu" in each]


def test_queues_that_give_nothing_back() -> None:
    """That one of them does is enough; what the others have is of no use."""
    objects = [
        node("n0", cpu="4", memory="64Gi"),
        queue("mine"),
        queue("more", reclaimable=False),
        queue("unused", reclaimable=False),
        *running("r", 4, queue="more"),
        *gang("g", pods=2, queue="mine", phase="Inqueue"),
    ]
    found = advised(*objects)
    assert "2 of 2 fit (2 pods are evicted for it) with: queue more: reclaimable true instead of false" in (
        found.sentences
    )
    assert not [each for each in found.sentences if "unused" in each]


def test_an_action_that_the_configuration_does_not_have() -> None:
    objects = [
        queue("default"),
        node("n0", cpu="2"),
        priority_class("low", 1),
        priority_class("high", 9),
        *running("r", 2, priority_class="low"),
        *gang("g", pods=1, phase="Inqueue", priority_class="high"),
    ]
    config = parse_scheduler_config(CONFIG.replace("preempt, reclaim", "backfill") % "{name: proportion}", source="t")
    here = Scene(fill(objects), config, CycleClock(1, NOW, 0), Carry(), objects=lambda: objects)
    found = advise(here, "podgroup", "default/g", 30.0)
    assert "1 of 1 fit (1 pod is evicted for it) with: action preempt in the configuration" in found.sentences
    assert not [each for each in found.sentences if "action reclaim" in each]
