"""How many PodGroups of a queue are in which phase, as /metrics says it."""

import pytest

from pumice.actors.gateway.handlers.health import counted, exposed_counts
from pumice.storage.codec import pack
from tests.kit.pod_groups import pod_group

PHASES = ("Pending", "Inqueue", "Running", "Running", "Unknown", "Completed")


@pytest.mark.anyio
async def test_groups_are_counted_by_queue_and_phase() -> None:
    groups = [pod_group(f"g{number}", queue="q", phase=phase) for number, phase in enumerate(PHASES)]
    nameless, fresh = pod_group("h", phase="Running"), pod_group("i", queue="q")
    nameless["spec"].pop("queue", None)
    fresh.pop("status", None)
    counts = await counted([pack(each) for each in (*groups, nameless, fresh)])
    lines = exposed_counts(["default", "empty", "q"], counts).decode().splitlines()
    shown = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert len(shown) == 3 * 5
    assert {name for name, value in shown.items() if float(value)} == {
        'volcano_queue_pod_group_running_count{queue_name="default"}',
        *(f'volcano_queue_pod_group_{phase.lower()}_count{{queue_name="q"}}' for phase in PHASES),
    }
    assert float(shown['volcano_queue_pod_group_running_count{queue_name="q"}']) == 2.0
