"""Metrics: Volcano's names, fed by cycles, and how full the mailboxes are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.actors.metrics.families import MOST as MOST_TRIED
from pumice.actors.metrics.families import PendingFamilies
from pumice.actors.metrics.metrics import AMOUNTS, MOST, OF_CARDS, Families, HistogramFamily
from pumice.core.messages.commands import MailboxStatistics
from pumice.core.messages.decisions import BindingJob
from pumice.core.messages.events import CycleMeasured, TasksBound
from pumice.core.messages.queue_tables import CardTable, PodOnCard, QueueTables
from tests.actors.rig import idle, started, three_nodes
from tests.kit.jobs import gang


def value(families: Families, name: str, **labels: str) -> float | None:
    return families.registry.get_sample_value(name, labels)


def test_cards_are_told_in_volcanos_names_while_they_are_there() -> None:
    families, numbers = Families(), np.array([[1.0], [40.0], [25.0], [100.0]])
    families.cards(CardTable(["n0"], ["u"], numbers.tobytes(), (PodOnCard(0, "p", 40, 25),)))
    card = {"devID": "u", "NodeName": "n0"}
    values = [value(families, f"volcano_vgpu_device_{name}", **card) for name in OF_CARDS]
    assert values == [1.0, 40.0, 25.0, 100.0]
    of_pod = "volcano_vgpu_device_{}_allocation_for_a_certain_pod"
    assert [value(families, of_pod.format(name), **card, podName="p") for name in ("memory", "core")] == [40.0, 25.0]
    families.cards(CardTable())
    assert value(families, "volcano_vgpu_device_shared_number", **card) is None


def test_a_cycle_is_told_in_volcanos_names() -> None:
    families = Families()
    assert value(families, "volcano_e2e_scheduling_latency_milliseconds_count") == 0.0, "shown before the first cycle"
    empty, only_q = QueueTables(["cpu", "memory", "pods", "nvidia.com/gpu"], ["p", "q"]), np.array([False, True])
    gauges = empty.put("allocated", np.array([[0.0, 1500.0], [0.0, 0.0]])).number(
        "share", np.array([0.5, 0.25]), only_q
    )
    deserved = empty.put("deserved", np.full((4, 2), 4000.0), shown=only_q)
    families.cycle(
        CycleMeasured(
            7,
            total_s=0.012,
            open_s=0.003,
            close_s=0.001,
            actions={"allocate": 0.006},
            plugins={"OnSessionOpen": {"drf": 0.002}, "OnSessionClose": {"drf": 0.001}},
            attempts={"scheduled": 3, "unschedulable": 2},
            victims=2,
            preemption_attempts=1,
            unscheduled={"ns/g": 5},
        )
    )
    families.queues((gauges, deserved))
    assert value(families, "volcano_e2e_scheduling_latency_milliseconds_sum") == 12.0
    assert value(families, "volcano_open_session_duration_milliseconds_sum") == 3.0
    assert value(families, "volcano_action_scheduling_latency_milliseconds_sum", action="allocate") == 6.0
    assert (
        value(families, "volcano_plugin_scheduling_latency_milliseconds_sum", plugin="drf", OnSession="OnSessionOpen")
        == 2.0
    )
    assert (
        value(families, "volcano_plugin_scheduling_latency_milliseconds_sum", plugin="drf", OnSession="OnSessionClose")
        == 1.0
    )
    assert value(families, "volcano_schedule_attempts_total", result="unschedulable") == 2.0
    assert value(families, "volcano_unschedule_task_count", job_id="ns/g") == 5.0
    assert value(families, "volcano_unschedule_job_count") == 1.0
    assert value(families, "volcano_queue_allocated_milli_cpu", queue_name="q") == 1500.0
    assert value(families, "volcano_queue_share", queue_name="q") == 0.25
    assert (
        value(families, "volcano_queue_deserved_scalar_resources", queue_name="q", resource="nvidia.com/gpu") == 4000.0
    )
    assert value(families, "volcano_queue_allocated_milli_cpu", queue_name="p") == 0.0
    assert value(families, "volcano_queue_share", queue_name="p") is None
    assert value(families, "volcano_job_retry_counts", job_id="ns/g") == 1.0
    families.cycle(CycleMeasured(8, 0.0, 0.0, 0.0))
    families.queues(())
    assert value(families, "volcano_queue_share", queue_name="q") == 0.25, "tables without queues change none"
    assert value(families, "volcano_unschedule_task_count", job_id="ns/g") is None
    assert value(families, "volcano_total_preemption_attempts") == 1.0
    assert value(families, "volcano_pod_preemption_victims") == 0.0


def test_of_jobs_that_wait_no_more_the_newest_are_remembered() -> None:
    pending = PendingFamilies()
    for number in range(3 * MOST_TRIED):
        pending.show({"ns/waits": 1, f"ns/{number:06d}": 1})
    (tries,) = [family for family in pending.collect() if family.name == "volcano_job_retry_counts"]
    counts = {sample.labels["job_id"]: sample.value for sample in tries.samples}
    assert counts["ns/waits"] == 3 * MOST_TRIED
    assert MOST_TRIED <= len(counts) - 1 <= 1.1 * MOST_TRIED
    assert f"ns/{3 * MOST_TRIED - 1:06d}" in counts


def test_jobs_that_got_nodes() -> None:
    families = Families()
    jobs = {"ns/g": BindingJob("q", 990.0), "ns/h": BindingJob("q", 999.5)}
    families.cycle(CycleMeasured(1, 0.0, 0.0, 0.0, now=1000.0, binding=jobs, created=(995.0, 995.0, 1000.5)))
    duration, labels = "volcano_e2e_job_scheduling_duration", {"queue": "q", "job_namespace": "ns"}
    assert value(families, duration, job_name="g", **labels) == 10_000.0
    assert value(families, duration, job_name="h", **labels) == 500.0
    moments = [f"volcano_e2e_job_scheduling_{name}" for name in ("start_time", "last_time")]
    assert [value(families, name, job_name="g", **labels) for name in moments] == [990.0, 1000.0]
    assert value(families, "volcano_e2e_job_scheduling_latency_milliseconds_sum") == 10_500.0
    assert value(families, "volcano_task_scheduling_latency_milliseconds_sum", stage="Assumed") == 10_000.0
    many = {f"ns/{number}": BindingJob("q", 0.0) for number in range(MOST)}
    families.cycle(CycleMeasured(2, 0.0, 0.0, 0.0, now=1001.0, binding=many))
    assert value(families, duration, job_name="g", **labels) is None, "the newest are shown"
    assert value(families, duration, job_name="0", **labels) == 1_001_000.0


@given(st.lists(st.floats(-1.0, 1e6)), st.lists(st.floats(0.1, 1e5), min_size=1, unique=True).map(sorted))
def test_a_histogram_counts_what_lies_below_each_bound(values: list[float], uppers: list[float]) -> None:
    stages = HistogramFamily("f", "text", uppers, ("stage",))
    stages.observe(values, "s")
    (family,) = stages.collect()
    told = {sample.labels.get("le", sample.name): sample.value for sample in family.samples}
    for bound in uppers:
        assert told[str(bound)] == sum(1 for each in values if each <= bound)
    assert told["+Inf"] == told["f_count"] == len(values)
    assert told["f_sum"] == pytest.approx(sum(max(each, 0.0) for each in values))


def test_binds_and_mailboxes() -> None:
    families = Families()
    families.bound(TasksBound((0.004, 0.006), (2.0, 3.0)))
    families.mailboxes([MailboxStatistics("cache", 256, 3, 10, 7, 2, 9, False)])
    assert value(families, "volcano_task_scheduling_latency_milliseconds_sum", stage="Bound") == 5_000.0
    assert value(families, "volcano_scheduling_stage_duration_milliseconds_sum", stage="Bind") == 10.0
    assert value(families, "pumice_mailbox_queued", actor="cache") == 3.0
    assert value(families, "pumice_mailbox_high_water", actor="cache") == 9.0
    assert value(families, "pumice_mailbox_blocked_senders", actor="cache") == 2.0


@pytest.mark.anyio
async def test_a_running_system_exposes_them() -> None:
    async with started() as system:
        await system.submit([*three_nodes(), *gang("g", pods=3, duration="0")])
        await idle(system)
        text = (await system.metrics_text()).decode()
    assert 'volcano_schedule_attempts_total{result="scheduled"} 3.0' in text
    assert 'volcano_action_scheduling_latency_milliseconds_count{action="allocate"}' in text
    assert 'pumice_mailbox_received{actor="api-server"}' in text
    for stage in ("Assumed", "Bound"):
        assert f'volcano_task_scheduling_latency_milliseconds_count{{stage="{stage}"}} 3.0' in text
    assert 'volcano_scheduling_stage_duration_milliseconds_count{stage="Bind"} 3.0' in text
    assert 'volcano_e2e_job_scheduling_duration{job_name="g",job_namespace="default",queue="default"}' in text
    assert "volcano_e2e_job_scheduling_latency_milliseconds_count 1.0" in text
    for point in ("OnSessionOpen", "OnSessionClose"):
        assert (
            f'volcano_plugin_scheduling_latency_milliseconds_bucket{{OnSession="{point}",le="0.1",plugin="gang"}}'
            in text
        )
    for amount in set(AMOUNTS) - {"capacity"}:  # which the stock configuration does not know
        assert f'volcano_queue_{amount}_milli_cpu{{queue_name="default"}}' in text, amount
    assert 'volcano_queue_overused{queue_name="default"}' in text
