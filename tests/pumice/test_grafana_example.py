"""The Grafana board in examples/, and the metrics that Volcano's own boards ask for, against a run's `/metrics`."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import promql_parser
import pytest
from anyio import move_on_after, sleep
from prometheus_client.parser import text_string_to_metric_families

from pumice.actors.system.settings import SystemSettings
from pumice.questions.adviser.answers import answer
from pumice.storage.sqlite import SqliteJournal
from tests.actors.gateway.rig import serving
from tests.kit import source
from tests.kit.jobs import gang, job_task, vcjob
from tests.kit.nodes import nodes
from tests.kit.queues import queue

COUNTED_S = 100.0
"""Until jobs that wait are counted: a process starts for it, and after a count that was too early comes a rest."""
BOARD: Any = json.loads((source.ROOT / "examples" / "grafana.json").read_text())
VARIABLE = re.compile(r"^label_values\((\w+), (\w+)\)$")
LATENCIES = ("e2e", "e2e_job", "action", "plugin", "task")
OF_VOLCANO = {
    *(f"volcano_{name}_scheduling_latency_milliseconds_bucket" for name in LATENCIES),
    "volcano_open_session_duration_milliseconds_bucket",
    "volcano_scheduling_stage_duration_milliseconds_bucket",
    *(f"volcano_e2e_job_scheduling_{name}" for name in ("duration", "start_time", "last_time")),
    "volcano_pod_preemption_victims",
    "volcano_job_share",
    *(f"volcano_namespace_{name}" for name in ("share", "weight", "weighted_share")),
    "volcano_total_preemption_attempts",
    "volcano_queue_share",
    *(f"volcano_queue_pod_group_{name}_count" for name in ("pending", "inqueue", "running", "unknown", "completed")),
    *(
        f"volcano_queue_{amount}_{unit}"
        for amount in ("allocated", "capacity", "deserved", "real_capacity", "request")
        for unit in ("milli_cpu", "memory_bytes", "scalar_resources")
    ),
    "volcano_controller_job_to_pod_creation_latency_milliseconds_bucket",
}
"""Asked for by the boards of Volcano's installer and of its benchmark, beside kube-state-metrics, rules over its
metrics, and the Kubernetes API server."""
NOT_HERE = {
    "volcano_worker_scheduling_cycle_duration_milliseconds_bucket": "one cycle of a worker of the agent scheduler",
    "volcano_update_snapshot_duration_milliseconds_bucket": "how long it took to renew its copy of the cache",
}
"""The two that they ask for and no run shows. Volcano's agent scheduler is a second program (`vc-agent-scheduler`) that
places pods one by one from copies of the cache; here there is one cache and a cycle reads it as it is."""
CONFIG = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}]
"""


def expressions() -> list[str]:
    return [target["expr"] for panel in BOARD["panels"] for target in panel.get("targets", ())]


def selected(expression: str) -> set[str]:
    """The metrics in an expression. Raises what the parser raises."""
    found = set[str]()

    def visit(each: promql_parser.Expr) -> bool:
        if isinstance(each, promql_parser.VectorSelector):
            assert each.name is not None
            found.add(each.name)
        return True

    promql_parser.walk(promql_parser.parse(expression), visit)
    return found


ASKED = OF_VOLCANO.union(*map(selected, expressions()))


def test_the_boards_variables_ask_for_what_its_panels_know() -> None:
    queries = [each["query"] for each in BOARD["templating"]["list"] if each["type"] == "query"]
    assert [found.groups() for query in queries if (found := VARIABLE.match(query))] == [
        ("volcano_queue_share", "queue_name")
    ]
    known = {each["name"] for each in BOARD["templating"]["list"]}
    assert {used for one in expressions() for used in re.findall(r"\$(\w+)", one)} <= known


def test_no_panel_stands_twice_or_without_anything_to_show() -> None:
    panels = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
    assert all(panel["targets"] for panel in panels)
    for name in ("id", "title"):
        assert len({panel[name] for panel in panels}) == len(panels)
    cells = [(x, y) for panel in BOARD["panels"] for x, y in covered(panel["gridPos"])]
    assert len(set(cells)) == len(cells), "panels lie on each other"


def covered(place: dict[str, int]) -> list[tuple[int, int]]:
    return [(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])]


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["trio"])  # once: a process has to start that counts who waits
async def test_a_run_shows_every_metric_that_a_board_asks_for(tmp_path: Path) -> None:
    (tmp_path / "scheduler.conf").write_text(CONFIG)
    settings = SystemSettings(config_path=tmp_path / "scheduler.conf", schedule_period_s=0.1)
    amounts = {"cpu": "4", "memory": "4Gi", "nvidia.com/gpu": "8"}
    q1 = queue("q1", deserved=amounts, capability=amounts)
    runs, waits = gang("runs", pods=2, queue="q1", gpus=1), gang("waits", pods=1, queue="q1", gpus=5)
    db = tmp_path / "run.db"
    journal = await SqliteJournal.open(db)
    async with serving(journal, settings, adviser=partial(answer, str(db), None)) as web:
        await web.system.submit([q1, *nodes(2, gpus=4), *runs, *waits, vcjob("made", job_task("a"))])
        names = set[str]()
        with move_on_after(COUNTED_S):
            while b"volcano_job_retry_counts{" not in await web.system.metrics_text():  # noqa: ASYNC110 - until one waits
                await sleep(0.02)
            while ASKED - names:
                names = {
                    sample.name
                    for family in text_string_to_metric_families((await web.http.get("/metrics")).text)
                    for sample in family.samples
                }
                await sleep(0.05)
        assert sorted(ASKED - names) == []
        assert not NOT_HERE.keys() & names, "they are here now"
        counts = [line for line in (await web.http.get("/metrics")).text.splitlines() if "_pod_group_" in line]
        assert 'volcano_queue_pod_group_inqueue_count{queue_name="q1"} 1.0' in counts
