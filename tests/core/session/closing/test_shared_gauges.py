"""Gauges that two plugins set: a queue's scalars that one names are set to 0 where the later one does not."""

from __future__ import annotations

import pytest

from pumice.core.cycle import close_session
from tests.core.plugins.world import configuration, open_world
from tests.kit import gang, node, queue

GPU = "deserved_scalar_resources:nvidia.com/gpu"


@pytest.mark.parametrize(
    ("tier", "fix", "deserved"),
    [
        (["proportion"], (), 2000.0),
        (["capacity"], (), None),
        (["proportion", "capacity"], (), 0.0),
        (["proportion", "capacity"], ("gauges-kept-apart",), 2000.0),
        (["capacity", "proportion"], (), 2000.0),
    ],
)
def test_who_comes_later_sets_what_it_does_not_name(
    tier: list[str], fix: tuple[str, ...], deserved: float | None
) -> None:
    group, *pods = gang("j", queue="q", pods=2, gpus=1, phase="Inqueue")
    limited = queue("q")
    limited["spec"]["deserved"] = {"cpu": "1"}
    session = open_world(configuration(tier, fix=fix), limited, node("n0", gpus=4), group, *pods)
    numbers = close_session(session).report.queues.by_queue()["q"]
    assert numbers.get(GPU) == deserved
    assert numbers["request_scalar_resources:nvidia.com/gpu"] == 2000.0
