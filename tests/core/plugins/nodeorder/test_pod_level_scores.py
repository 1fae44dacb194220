"""Pod-level resources: a pod asks for them, and is scored by its containers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.plugins.world import configuration, open_world, task_of
from tests.kit import gang, node, queue

ROOM: dict[str, Any] = {"cpu": "10", "memory": "10Gi"}


@pytest.mark.parametrize("weighed", ["leastrequested", "mostrequested"])
@pytest.mark.parametrize(("fix", "cpu", "memory"), [((), 1, 1), (("scores-count-pod-level",), 4, 8)])
def test_the_scores_are_those_of_the_containers(weighed: str, fix: tuple[str, ...], cpu: int, memory: int) -> None:
    others = ("leastrequested", "mostrequested", "balancedresource", "nodeaffinity", "podaffinity", "tainttoleration")
    weights = {f"{name}.weight": int(name == weighed) for name in (*others, "podtopologyspread", "imagelocality")}
    config = configuration(["gang", {"name": "nodeorder", "arguments": weights}], fix=fix)
    group, pod = gang("j", queue="q", pods=1, cpu="1", memory="1Gi", phase="Inqueue")
    pod["spec"]["resources"] = {"requests": {"cpu": "4", "memory": "8Gi"}}
    session = open_world(config, queue("q"), node("n0", **ROOM), group, pod)
    task = task_of(session, "j-0")
    assert (task.template.request.milli_cpu, task.template.request.memory) == (4000, 8 * 2**30)
    taken = (cpu * 10 + memory * 10) // 2
    (score,) = session.search_for(task).scoring.totals(session.nodes.arrival)
    assert score == (100 - taken if weighed == "leastrequested" else taken)
