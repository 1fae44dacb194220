"""Metrics: Volcano's names, fed by cycles, and how full the mailboxes are."""

from __future__ import annotations

from math import nan

import pytest

from actors.mailbox import MailboxStatistics
from actors.metric_families import Families
from actors.queue_families import AMOUNTS
from core.messages.events import CycleMeasured, TasksBound
from core.messages.queue_columns import QueueColumns
from tests.actors.rig import idle, started, three_nodes
from tests.kit.jobs import gang


def value(families: Families, name: str, **labels: str) -> float | None:
    return families.registry.get_sample_value(name, labels)


def test_a_cycle_is_told_in_volcanos_names() -> None:
    families = Families()
    gpu = "deserved_scalar_resources:nvidia.com/gpu"
    queues = QueueColumns(["p", "q"], {"allocated_milli_cpu": [0.0, 1500.0], "share": [nan, 0.25], gpu: [nan, 4000.0]})
    families.cycle(
        CycleMeasured(
            7,
            total_s=0.012,
            open_s=0.003,
            close_s=0.001,
            actions={"allocate": 0.006},
            plugins={"drf": 0.002},
            attempts={"scheduled": 3, "unschedulable": 2},
            victims=2,
            preemption_attempts=1,
            unscheduled={"ns/g": 5},
            queues=queues,
        )
    )
    assert value(families, "volcano_e2e_scheduling_latency_milliseconds_sum") == 12.0
    assert value(families, "volcano_open_session_duration_milliseconds_sum") == 3.0
    assert value(families, "volcano_action_scheduling_latency_milliseconds_sum", action="allocate") == 6.0
    assert (
        value(families, "volcano_plugin_scheduling_latency_milliseconds_sum", plugin="drf", OnSession="OnSessionOpen")
        == 2.0
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
    assert value(families, "volcano_queue_share", queue_name="q") == 0.25, "a cycle without numbers changes none"
    assert value(families, "volcano_unschedule_task_count", job_id="ns/g") is None
    assert value(families, "volcano_total_preemption_attempts") == 1.0
    assert value(families, "volcano_pod_preemption_victims") == 0.0


def test_binds_and_mailboxes() -> None:
    families = Families()
    families.bound(TasksBound((0.004, 0.006)))
    families.mailboxes([MailboxStatistics("cache", 256, 3, 10, 7, 2, 9, False)])
    assert value(families, "volcano_task_scheduling_latency_milliseconds_count", stage="Bound") == 2.0
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
    assert "volcano_task_scheduling_latency_milliseconds_count" in text
    for amount in set(AMOUNTS) - {"capacity"}:  # which the stock configuration does not know
        assert f'volcano_queue_{amount}_milli_cpu{{queue_name="default"}}' in text, amount
    assert 'volcano_queue_overused{queue_name="default"}' in text
