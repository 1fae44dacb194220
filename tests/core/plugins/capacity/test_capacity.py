"""capacity with queues side by side: limits, order, admission, victims."""

from __future__ import annotations

import itertools

import pytest

from pumice.core.messages.queue_tables import QueueTables
from pumice.core.plugins.capacity import Capacity
from pumice.core.session.session import Session
from tests.core.plugins.world import configuration, evictable, job_of, open_world, task_of
from tests.kit import gang, node, pod, pod_group, queue

CONFIG = configuration(["capacity"])
BIG = node("n", cpu="16", memory="64Gi")


def plugin(session: Session) -> Capacity:
    found = session.plugins["capacity"]
    assert isinstance(found, Capacity)
    return found


def numbers(tables: QueueTables | None) -> dict[str, dict[str, float]]:
    assert tables is not None
    return tables.columns().by_queue()


def running(name: str, where: str, pods: int, cpu: str = "1") -> list[dict[str, object]]:
    return gang(name, queue=where, pods=pods, nodes=["n"] * pods, phase="Running", min_member=1, cpu=cpu)


def test_limits_of_a_queue() -> None:
    session = open_world(
        CONFIG,
        BIG,
        queue("q", deserved={"cpu": "20"}, guarantee={"cpu": "2"}, capability={"memory": "8Gi"}),
        queue("other", guarantee={"cpu": "4"}),
        running("a", "q", 2),
    )
    limits = plugin(session).ledger.of("q").limits
    assert limits.real_capability.milli_cpu == 16_000 - 6_000 + 2_000
    assert limits.real_capability.memory == 8 * 1024**3
    assert limits.deserved.milli_cpu == 12_000  # cut to what the queue may ever have
    assert limits.leaf
    assert limits.ancestors == []


def test_who_deserves_nothing_has_share_one_and_loses_ties() -> None:
    session = open_world(
        CONFIG,
        BIG,
        queue("none"),
        queue("below", deserved={"cpu": "4"}),
        queue("full", deserved={"cpu": "2"}),
        queue("above", deserved={"cpu": "1"}),
        running("a", "none", 1),
        running("b", "below", 1),
        running("c", "full", 2),
        running("d", "above", 2),
    )
    shares = {name: plugin(session).ledger.of(name).share for name in session.queues}
    assert shares == {"none": 1.0, "below": 0.25, "full": 1.0, "above": 2.0}
    order = ["below", "full", "none", "above"]
    for left, right in itertools.pairwise(order):
        assert session.points.queue_order(session.queues[left], session.queues[right]) < 0


@pytest.mark.parametrize(("there", "share"), [("0.09", 1.0), ("0.1", 10_000.0)])
def test_less_than_a_tenth_of_a_unit_is_nothing_to_deserve(there: str, share: float) -> None:
    """All the cpu there is, so more cannot be deserved."""
    tiny = node("n", cpu="0", memory="64Gi", annotations={"volcano.sh/oversubscription-cpu": there})
    session = open_world(CONFIG, tiny, queue("q", deserved={"cpu": "1"}), running("a", "q", 1))
    assert plugin(session).ledger.of("q").share == share


def test_mended_order_puts_who_deserves_nothing_last() -> None:
    session = open_world(
        configuration(["capacity"], fix=["capacity-best-effort-last"]),
        BIG,
        queue("none"),
        queue("above", deserved={"cpu": "1"}),
        running("a", "none", 1),
        running("d", "above", 2),
    )
    none, above = session.queues["none"], session.queues["above"]
    assert session.points.queue_order(above, none) < 0
    assert session.points.queue_order(none, above) > 0


def test_allocation_up_to_the_capability_beyond_what_is_deserved() -> None:
    session = open_world(
        CONFIG,
        BIG,
        queue("q", deserved={"cpu": "1"}, capability={"cpu": "3"}),
        gang("a", queue="q", pods=4, nodes=["n", "n"], phase="Running", min_member=1),
    )
    q = session.queues["q"]
    assert session.points.allocatable(q, task_of(session, "a-2"))
    statement = session.statement()
    statement.allocate(task_of(session, "a-2"), 0)
    assert plugin(session).ledger.of("q").share == 3.0
    assert not session.points.allocatable(q, task_of(session, "a-3"))
    statement.discard()
    assert session.points.allocatable(q, task_of(session, "a-3"))


def test_who_deserves_nothing_keeps_its_share_whatever_it_gets() -> None:
    session = open_world(CONFIG, BIG, queue("none"), gang("a", queue="none", pods=1, phase="Inqueue"))
    assert session.statement().allocate(task_of(session, "a-0"), 0)
    assert plugin(session).ledger.of("none").share == 1.0


@pytest.mark.parametrize(
    ("deserved", "capability", "may"),
    [
        ({"cpu": "4"}, {}, True),
        ({"cpu": "2"}, {}, False),  # with the task above what it deserves
        ({"cpu": "4"}, {"cpu": "2"}, False),  # above what it may ever have
        ({"cpu": "2", "memory": "8Gi"}, {}, True),  # one dimension is enough
        ({"nvidia.com/gpu": "1"}, {}, False),  # a dimension that is not asked for does not count
    ],
)
def test_the_right_to_take_from_others(deserved: dict[str, str], capability: dict[str, str], may: bool) -> None:
    session = open_world(
        CONFIG,
        BIG,
        queue("q", deserved=deserved, capability=capability),
        gang("a", queue="q", pods=3, nodes=["n", "n"], phase="Running", min_member=1),
    )
    assert session.points.preemptive(session.queues["q"], [task_of(session, "a-2")]) is may


@pytest.mark.parametrize("state", ["Closed", "Closing", ""])
def test_a_queue_that_is_not_open_gets_nothing(state: str) -> None:
    session = open_world(CONFIG, BIG, queue("q", state=state, deserved={"cpu": "4"}), gang("j", queue="q", pods=1))
    assert not session.points.allocatable(session.queues["q"], task_of(session, "j-0"))
    assert not session.points.preemptive(session.queues["q"], [task_of(session, "j-0")])
    assert not session.points.job_enqueueable(job_of(session, "j"))


@pytest.mark.parametrize(("fix", "second"), [((), False), (("enqueue-charges-once",), True)])
def test_a_vote_charges_immediately_unless_mended(fix: tuple[str, ...], second: bool) -> None:
    session = open_world(
        configuration(["capacity"], fix=fix),
        BIG,
        queue("q", capability={"cpu": "6"}),
        pod_group("a", queue="q", min_resources={"cpu": "4"}),
        pod_group("b", queue="q", min_resources={"cpu": "4"}),
    )
    assert session.points.job_enqueueable(job_of(session, "a"))
    assert session.points.job_enqueueable(job_of(session, "b")) is second
    session.points.job_enqueued(job_of(session, "a"))
    assert not session.points.job_enqueueable(job_of(session, "b"))


def test_a_job_without_minimum_is_admitted_and_never_charged() -> None:
    session = open_world(CONFIG, BIG, queue("q", capability={"cpu": "1"}), pod_group("a", queue="q"))
    assert session.points.job_enqueueable(job_of(session, "a"))
    assert plugin(session).ledger.of("q").inqueue.is_empty()


# --- victims
# ------------------------------------------------------------------------------------------------------------


def robbed(deserved: dict[str, str], guarantee: dict[str, str] | None = None, cpu: str = "1") -> list[str]:
    """Whom a task of another queue may take from a queue with three running pods."""
    session = open_world(
        CONFIG,
        BIG,
        queue("q", deserved=deserved, guarantee=guarantee),
        queue("p", deserved={"cpu": "8"}),
        running("rich", "q", 3, cpu),
        gang("poor", queue="p", pods=1, phase="Inqueue"),
    )
    return sorted(evictable(session, "Reclaimable", task_of(session, "poor-0"), "rich-0", "rich-1", "rich-2"))


def test_victims_until_the_queue_has_what_it_deserves() -> None:
    assert len(robbed({"cpu": "2", "memory": "8Gi"})) == 1
    assert len(robbed({"cpu": "1", "memory": "8Gi"})) == 2
    assert len(robbed({"cpu": "3", "memory": "8Gi"})) == 0


def test_who_deserves_nothing_of_it_loses_all_but_its_guarantee() -> None:
    assert len(robbed({"nvidia.com/gpu": "1"})) == 3
    assert len(robbed({}, guarantee={"cpu": "2"})) == 1


def test_a_guarantee_is_kept_although_the_queue_has_more_than_it_deserves() -> None:
    assert robbed({}, guarantee={"cpu": "5"}, cpu="2") == []
    assert len(robbed({}, guarantee={"cpu": "4"}, cpu="2")) == 1


def test_a_victim_must_free_what_is_asked_for() -> None:
    session = open_world(
        CONFIG,
        node("n", cpu="16", memory="64Gi", gpus=4),
        queue("q"),
        queue("p", deserved={"nvidia.com/gpu": "2"}),
        running("cpu-only", "q", 1),
        pod_group("poor", queue="p", phase="Inqueue"),
        pod("poor-0", group="poor", cpu=None, memory=None, gpus=1),
    )
    assert evictable(session, "Reclaimable", task_of(session, "poor-0"), "cpu-only-0") == []


def test_no_order_is_asked_for_where_nothing_may_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def ordered(*_: object) -> None:
        raise AssertionError("two victims are compared")

    monkeypatch.setattr("pumice.core.plugins.capacity.plugin.victim_queue", ordered)
    assert robbed({"cpu": "3", "memory": "8Gi"}) == []
    assert robbed({}, guarantee={"cpu": "5"}, cpu="2") == []
    with pytest.raises(AssertionError, match="compared"):
        robbed({"cpu": "2", "memory": "8Gi"})


@pytest.mark.parametrize("cards", [0, 1])
def test_one_of_several_that_may_be_taken_is_found(cards: int) -> None:
    """Tasks of one queue are looked at together only if they ask for the same."""
    session = open_world(
        CONFIG,
        node("n", cpu="16", memory="64Gi", gpus=4),
        queue("q", deserved={"cpu": "1"}),
        queue("p", deserved={"nvidia.com/gpu": "2"}),
        pod_group("rich", queue="q", phase="Running"),
        *[pod(f"rich-{i}", group="rich", node="n", cpu="1", gpus=cards if i == 1 else 0) for i in range(3)],
        pod_group("poor", queue="p", phase="Inqueue"),
        pod("poor-0", group="poor", cpu=None, memory=None, gpus=1),
    )
    victims = evictable(session, "Reclaimable", task_of(session, "poor-0"), "rich-0", "rich-1", "rich-2")
    assert victims == ["rich-1"][:cards]


def test_least_important_victims_first() -> None:
    session = open_world(
        configuration(["priority"], ["capacity"]),
        BIG,
        queue("q", deserved={"cpu": "2", "memory": "64Gi"}),
        queue("p", deserved={"cpu": "8"}),
        pod_group("rich", queue="q", phase="Running"),
        *[pod(f"rich-{i}", group="rich", node="n", priority=i) for i in (2, 0, 1)],
        gang("poor", queue="p", pods=1, phase="Inqueue"),
    )
    assert evictable(session, "Reclaimable", task_of(session, "poor-0"), "rich-2", "rich-1", "rich-0") == ["rich-0"]


class Context:
    """Who evicts, for a gang."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


def test_gangs_ask_for_guarantee_and_deserved_only_when_they_reclaim() -> None:
    session = open_world(CONFIG, BIG, queue("q", deserved={"cpu": "2", "memory": "64Gi"}), running("rich", "q", 3))
    pods = ["rich-2", "rich-0", "rich-1"]
    assert evictable(session, "UnifiedEvictable", Context("gangreclaim"), *pods) == ["rich-2"]
    assert evictable(session, "UnifiedEvictable", Context("gangpreempt"), *pods) == pods


# --- trials and numbers
# ---------------------------------------------------------------------------------------------------


def test_a_trial_changes_nothing_but_itself() -> None:
    session = open_world(
        CONFIG,
        BIG,
        queue("q", capability={"cpu": "2"}),
        gang("a", queue="q", pods=3, nodes=["n", "n"], phase="Running", min_member=1),
    )
    state: dict[str, object] = {}
    q, wanting = session.queues["q"], task_of(session, "a-2")
    assert not session.points.simulate_allocatable(state, q, wanting)
    assert session.points.simulate_remove_task.rules[-1](state, wanting, task_of(session, "a-0"), 0) is None
    assert session.points.simulate_allocatable(state, q, wanting)
    assert session.points.simulate_add_task.rules[-1](state, wanting, task_of(session, "a-0"), 0) is None
    assert not session.points.simulate_allocatable(state, q, wanting)
    assert plugin(session).ledger.of("q").allocated.milli_cpu == 2000


def test_gauges() -> None:
    session = open_world(
        CONFIG,
        BIG,
        queue("q", deserved={"cpu": "2"}),
        queue("idle", capability={"memory": "1Gi"}),
        running("a", "q", 1),
    )
    gauges = numbers(plugin(session).gauges())
    assert gauges["q"]["share"] == 0.5
    assert gauges["q"]["real_capacity_milli_cpu"] == 16_000
    assert "share" not in gauges["idle"]
    assert gauges["idle"]["capacity_milli_cpu"] == gauges["idle"]["real_capacity_milli_cpu"] == 0


def test_amounts_that_have_no_metric() -> None:
    session = open_world(
        CONFIG,
        BIG,
        queue("q", guarantee={"cpu": "2"}),
        running("a", "q", 3),
        pod_group("in", queue="q", phase="Inqueue", min_resources={"cpu": "1"}),
    )
    found = numbers(plugin(session).amounts())["q"]
    shown = {name: found[f"{name}_milli_cpu"] for name in ("guarantee", "inqueue", "elastic")}
    assert shown == {"guarantee": 2000, "inqueue": 1000, "elastic": 3000}


def test_what_is_placed_is_credited_to_its_own_queue() -> None:
    """In turns, so that nothing that was found for the task before is taken for the one after."""
    waiting = [gang(name, queue=where, pods=2, cpu=cpu) for name, where, cpu in (("a", "q", "1"), ("b", "p", "2"))]
    session = open_world(CONFIG, BIG, queue("q"), queue("p"), running("old", "p", 1), *waiting)
    ledger, statement = plugin(session).ledger, session.statement()

    def held() -> tuple[float, float]:
        return ledger.of("q").allocated.milli_cpu, ledger.of("p").allocated.milli_cpu

    for name, after in (("a-0", (1000, 1000)), ("b-0", (1000, 3000)), ("a-1", (2000, 3000)), ("b-1", (2000, 5000))):
        assert statement.allocate(task_of(session, name), 0)
        assert held() == after
    statement.evict(task_of(session, "old-0"), "preempt")
    assert held() == (2000, 4000)
    statement.discard()
    assert held() == (0, 1000)
