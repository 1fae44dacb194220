"""Microsoft's Philly trace as Gavel gives it: `philly:FILE[,nodes=COUNTxGPUS]`.

Columns vc, idx, arrival_s, gpus, job_type, duration_s_on_v100: each virtual cluster becomes a queue, and a job of more
cards than a node has a gang of pods with whole nodes' cards each. A job without a duration is left out. Sources: Jeon
et al. (ATC 2019); Narayanan et al. (OSDI 2020).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.load.traces.jobs import GPU, TraceJob
from pumice.load.traces.rows import TraceRow, rows_of_csv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.load.traces.jobs import Left

COLUMNS: Final = ("vc", "idx", "arrival_s", "gpus", "duration_s_on_v100")
CPUS_A_GPU: Final = 4
"""The trace says nothing of cpu; a card's share of a node is taken for it, so that cards alone are scarce."""


def read_philly(text: str, source: str, node_gpus: int, left: Left) -> Iterator[TraceJob]:
    """In the order of arrival, as the queues' users see it; the file has one virtual cluster after the other."""
    found: list[TraceJob] = []
    for cells in rows_of_csv(text, source, COLUMNS):
        if not cells.text("duration_s_on_v100"):
            left.note("no duration")
            continue
        found.append(_job(cells, node_gpus))
    yield from sorted(found, key=lambda job: job.arrival_s)


def _job(cells: TraceRow, node_gpus: int) -> TraceJob:
    gpus = int(cells.number("gpus"))
    whole, rest = divmod(gpus, node_gpus)
    pods = [(whole, _amounts(node_gpus))] if whole else []
    if rest:
        pods.append((1, _amounts(rest)))
    return TraceJob(
        name=f"{cells.text('vc')}-{cells.text('idx')}",
        arrival_s=cells.seconds("arrival_s"),
        duration_s=cells.seconds("duration_s_on_v100"),
        pods=tuple(pods),
        queue=f"vc-{cells.text('vc')}",
    )


def _amounts(gpus: int) -> dict[str, str]:
    return {"cpu": str(CPUS_A_GPU * gpus), GPU: str(gpus)}
