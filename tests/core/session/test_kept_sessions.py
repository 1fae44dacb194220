# SPDX-License-Identifier: Apache-2.0
"""A session that goes on where an earlier one on the same columns ended decides what a new one decides."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.cluster.kube.statuses import timestamp
from pumice.config.schema import SchedulerConfig
from pumice.core import cycle
from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import Carry, CycleClock, Session, close_session, open_session, run_cycle
from pumice.core.errors import KeptColumnsError
from pumice.core.messages.decisions import CycleResult
from pumice.core.objects.metadata import Object
from pumice.core.state.kept_columns import KINDS, KeptSessions
from pumice.core.state.view import View
from pumice.questions.oneshot.between import pod_group_after
from tests.kit import gang, node, pod, pod_group, queue
from tests.kit.budgets import budget

STOCK = parse_scheduler_config(
    """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}, {name: binpack}]
""",
    source="test",
)
PREEMPTING = parse_scheduler_config(
    """
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
""",
    source="test",
)
LIMITED = parse_scheduler_config(
    """
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: sla, arguments: {sla-waiting-time: 7s}}]
- plugins: [{name: overcommit}, {name: resourcequota}, {name: pdb}, {name: drf}, {name: predicates}, {name: proportion},
    {name: nodeorder}]
""",
    source="test",
)


def reclaiming(plugin: str, first: str = "{name: priority}, {name: gang}, {name: conformance}") -> SchedulerConfig:
    """Queues take from each other by this plugin."""
    text = f"""
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{first}]
- plugins: [{{name: drf}}, {{name: predicates}}, {{name: {plugin}}}, {{name: nodeorder}}]
"""
    return parse_scheduler_config(text, source="test")


CAPACITY, TREE = "capacity", "capacity, enableHierarchy: true"
NOW = 1_800_000_000.0
QUOTA: Object = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "limit", "namespace": "default"},
    "status": {"hard": {"cpu": "3"}, "used": {"cpu": "1"}},
}
NEAR: Object = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "lonely"}}}
        ]
    }
}


class Churn:
    """A small cluster in which jobs of a few kinds come, run and end, and sometimes a node changes."""

    def __init__(self, seed: int, config: SchedulerConfig, *, lonely: float = 0.03) -> None:
        self.chance, self.view, self.config = random.Random(seed), View(), config
        self.lonely = lonely
        self.carry, self.number, self.jobs = Carry(), 0, dict[str, list[Object]]()
        self.now: float = NOW
        self.groups = dict[str, Object]()
        for name in ("n0", "n1", "n2", "n3", "n4"):
            self.view.apply("ADDED", self.node(name, cpu="4"))
        self.view.apply("ADDED", queue("root"))
        self.view.apply("ADDED", queue("q", weight=2, parent="root", deserved={"cpu": "8"}))
        most, least = {"cpu": "14"}, {"cpu": "2"}
        self.view.apply("ADDED", queue("r", parent="root", deserved={"cpu": "4"}, capability=most, guarantee=least))
        self.view.apply("ADDED", QUOTA)
        self.view.apply("ADDED", {**budget("b", {"matchLabels": {"app": "kept"}}), "status": {"disruptionsAllowed": 1}})

    def change(self) -> None:
        """Let something happen."""
        kind = self.chance.random()
        if kind < 0.5:
            self._come()
        elif kind < 0.97 and self.jobs:
            self._go(self.chance.choice(sorted(self.jobs)))
        else:
            name = self.chance.choice(["n0", "n1"])
            self.view.apply("MODIFIED", self.node(name, cpu=self.chance.choice(["3", "4"])))

    def node(self, name: str, *, cpu: str) -> Object:
        """Make a node."""
        return node(name, cpu=cpu)

    def mark(self, made: list[Object]) -> None:
        """Say more about a job that comes."""

    def pass_time(self) -> None:
        """Let the next cycle come."""
        self.number += 1
        self.now += 1

    def _come(self) -> None:
        name, size = f"j{self.number}-{self.chance.randrange(1000)}", self.chance.randint(1, 3)
        more: dict[str, Any] = {"cpu": self.chance.choice(["1", "2"])}
        if self.chance.random() < self.lonely:
            more |= {"labels": {"app": "lonely"}, "affinity": NEAR}
        else:
            more |= {"labels": {"app": self.chance.choice(["kept", "free"])}}
        created = timestamp(self.now)
        queue = self.chance.choice(["q", "r"])
        made = gang(name, queue=queue, pods=size, phase="Pending", created=created, **more)
        if self.chance.random() < 0.5:
            made[0]["spec"]["minResources"] = {"cpu": str(size * int(more["cpu"]))}
        self.mark(made)
        self.jobs[name], self.groups[name] = made, made[0]
        for obj in made:
            self.view.apply("ADDED", obj)

    def _go(self, name: str) -> None:
        for obj in reversed(self.jobs.pop(name)):
            self.view.apply("DELETED", obj)
        del self.groups[name]

    def both(self) -> tuple[CycleResult, CycleResult]:
        """Decide on copies, and then in a session that may go on; carry out what was decided."""
        self.pass_time()
        clock = CycleClock(self.number, self.now)
        fresh = run_cycle(self.view.snapshot(), self.config, clock, self.carry)
        kept = run_cycle(self.view.snapshot(kept=True, checks=True), self.config, clock, self.carry)
        self.carry = Carry.from_dict(kept.carry)
        for written in kept.pod_groups:
            group = self.groups[written.name] = pod_group_after(self.groups[written.name], written, clock.now)
            self.view.apply("MODIFIED", group)
        for bind in kept.binds:
            self.view.assume(bind.namespace, bind.name, bind.node, bind.pre_bind)
        for evict in kept.evicts:
            self.view.evicting(evict.namespace, evict.name)
        return fresh, kept


def demand_alike(fresh: CycleResult, kept: CycleResult) -> None:
    """Compare all that a cycle says, decisions first: they tell more than a digest."""
    for name in ("binds", "evicts", "pod_conditions", "pod_groups", "queues", "events"):
        assert getattr(kept, name) == getattr(fresh, name), name
    for name in ("digest", "carry", "wake_at", "recurs"):
        assert getattr(kept, name) == getattr(fresh, name), name


@pytest.fixture
def renewed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each session that could go on did so."""
    found: list[bool] = []
    begun = cycle._renewed  # pyright: ignore[reportPrivateUsage]

    def noted(*given: Any) -> Session | None:
        session = begun(*given)
        found.append(session is not None)
        return session

    monkeypatch.setattr(cycle, "_renewed", noted)
    return found


@pytest.mark.parametrize(
    "config",
    [STOCK, PREEMPTING, LIMITED, reclaiming(CAPACITY), reclaiming(TREE)],
    ids=["stock", "preempting", "limited", "capacity", "tree"],
)
@pytest.mark.parametrize("seed", range(3))
def test_kept_session_in_churn_decides_as_a_new_one(seed: int, config: SchedulerConfig, renewed: list[bool]) -> None:
    churn, decisions = Churn(seed, config), 0
    for _ in range(40):
        for _ in range(churn.chance.randrange(3)):
            churn.change()
        fresh, kept = churn.both()
        demand_alike(fresh, kept)
        decisions += len(kept.binds) + len(kept.evicts)
    assert decisions > 10
    # On copies none can go on: half of all are asked in vain.
    assert sum(renewed) > len(renewed) / 8


class Settling(Churn):
    """The same; pods that are bound run, and those that are evicted come back to wait."""

    def both(self) -> tuple[CycleResult, CycleResult]:
        """Decide, and let the pods follow."""
        fresh, kept = super().both()
        for bind in kept.binds:
            self.put(bind.name, bind.node, "Running", bind.annotations)
        for evict in kept.evicts:
            self.put(evict.name, "", "Pending", {})
        return fresh, kept

    def put(self, name: str, where: str, phase: str, written: dict[str, str]) -> None:
        """Let a pod run on a node, or wait without one."""
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(self.now)}
        status = {"phase": phase, "conditions": [scheduled] if where else []}
        for objects in self.jobs.values():
            for place, obj in enumerate(objects):
                if obj["kind"] == "Pod" and obj["metadata"]["name"] == name:
                    metadata = obj["metadata"]
                    notes = {**metadata.get("annotations", {}), **written}
                    spec = {**obj["spec"], "nodeName": where}
                    objects[place] = {**obj, "metadata": {**metadata, "annotations": notes}} | {
                        "spec": spec,
                        "status": status,
                    }
                    self.view.apply("MODIFIED", objects[place])

    is_crowded = True

    def change(self) -> None:
        """Let more come than go: queues take from each other."""
        super().change()
        if self.is_crowded:
            self._come()


@pytest.mark.parametrize("plugin", [CAPACITY, TREE, "proportion"])
def test_kept_session_that_reclaims_decides_as_a_new_one(plugin: str, renewed: list[bool]) -> None:
    config, evictions = reclaiming(plugin, "{name: priority}, {name: conformance}"), 0
    for seed in range(6):
        churn = Settling(seed, config, lonely=0.0)
        for _ in range(30):
            for _ in range(churn.chance.randrange(3)):
                churn.change()
            fresh, kept = churn.both()
            assert (kept.binds, kept.evicts, kept.digest, kept.carry) == (
                fresh.binds,
                fresh.evicts,
                fresh.digest,
                fresh.carry,
            )
            evictions += len(kept.evicts)
    assert evictions
    assert sum(renewed) > len(renewed) / 8


def lived(churn: Churn) -> None:
    """Live through a while."""
    for _ in range(60):
        churn.change()
        churn.both()


def test_kept_search_that_missed_a_change_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def deaf(_self: KeptSessions, _nodes: Iterable[int], _jobs: Iterable[int]) -> None:
        """Note nothing."""

    monkeypatch.setattr(KeptSessions, "note", deaf)
    with pytest.raises(KeptColumnsError, match="differs from a new one"):
        lived(Churn(0, STOCK, lonely=0.0))


def idle_view() -> View:
    view = View()
    for obj in (node("n0", cpu="4"), queue("q"), *gang("j", queue="q", pods=1, nodes=["n0"], phase="Running")):
        view.apply("ADDED", obj)
    return view


def opened(view: View, config: SchedulerConfig = STOCK) -> Session:
    return open_session(view.snapshot(kept=True), config, CycleClock(1, NOW), Carry(), sparing=True)


def three(view: View, change: Object | None = None) -> tuple[Session, Session]:
    """Return the first and the third session: columns take turns."""
    first = opened(view)
    close_session(first)
    close_session(opened(view))
    if change is not None:
        view.apply("MODIFIED", change)
    return first, opened(view)


def test_session_on_the_same_columns_goes_on() -> None:
    first, third = three(idle_view())
    assert third is first


@pytest.mark.parametrize(
    "change",
    [node("n0", cpu="5"), node("n0", cpu="4", labels={"a": "b"}), queue("q", weight=7)],
    ids=["room", "labels", "queue"],
)
def test_session_after_a_change_of_nodes_or_limits_is_new(change: Object) -> None:
    first, third = three(idle_view(), change)
    assert third is not first


def test_session_for_waiting_tasks_is_another_one() -> None:
    view = idle_view()
    first = opened(view)
    close_session(first)
    close_session(opened(view))
    view.apply("ADDED", pod_group("k", queue="q", phase="Inqueue"))
    view.apply("ADDED", pod("k-0", group="k"))
    third = opened(view)
    assert third is not first
    assert third.plugins.keys() > first.plugins.keys()


def test_session_under_another_configuration_is_new() -> None:
    view = idle_view()
    first = opened(view)
    close_session(first)
    close_session(opened(view))
    assert opened(view, PREEMPTING) is not first


def test_session_that_never_closed_is_not_met_again() -> None:
    view = idle_view()
    first = opened(view)
    second = opened(view)
    assert opened(view) not in (first, second)


def test_sessions_of_former_configurations_are_not_kept_for_ever() -> None:
    view = idle_view()
    for number in range(3 * KINDS):
        close_session(opened(view, replace(STOCK, actions=("enqueue", "allocate")[: 1 + number % 2])))
    lease = opened(view).snapshot.lease
    assert lease is not None
    assert len(lease.sessions.by_kind) <= KINDS


MAP: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "default"}}


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Keep the collector away: what goes must go by itself."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("change", [node("n0", cpu="9"), node("n9"), queue("q", weight=7), MAP])
def test_session_that_a_change_ends_is_gone_immediately(change: Object) -> None:
    view, sessions = idle_view(), list[weakref.ref[Session]]()
    for number in range(8):
        version = {**change, "metadata": {**change["metadata"], "labels": {"number": str(number)}}}
        view.apply("MODIFIED" if number else "ADDED", version)
        session = opened(view)
        sessions.append(weakref.ref(session))
        close_session(session)
        del session
    alive = {id(each()) for each in sessions} - {id(None)}
    assert len(alive) <= 2, "only those of the two sets of columns stay"
