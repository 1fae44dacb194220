# SPDX-License-Identifier: Apache-2.0
"""Microsoft's Philly trace in Gavel's form, and Gavel's own traces: `philly:FILE[,nodes=COUNTxGPUS]`.

Columns vc, idx, arrival_s, gpus, job_type, duration_s_on_v100: each virtual cluster becomes a queue, and a job of more
cards than a node has a gang of pods with whole nodes' cards each. A job without a duration is left out. Gavel's own
files have no header and tabs between their columns (its `parse_trace`; 7 columns at first, then 9, then 10); they
count steps of training; `steps=` says how many are done a second. Sources: Jeon et al. (ATC 2019); Narayanan et al.
(OSDI 2020).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.errors import InputError
from pumice.load.traces.jobs import GPU, TraceJob
from pumice.load.traces.mapped import CPUS_A_GPU
from pumice.load.traces.table import TraceRow, rows_of_csv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.load.traces.jobs import Left

COLUMNS: Final = ("vc", "idx", "arrival_s", "gpus", "duration_s_on_v100")
GAVEL: Final = {
    7: ("type", "command", "steps_option", "needs_data", "steps", "arrival_s", "gpus"),
    9: ("type", "command", "steps_option", "needs_data", "steps", "gpus", "priority_weight", "slo", "arrival_s"),
    10: (
        "type",
        "command",
        "folder",
        "steps_option",
        "needs_data",
        "steps",
        "gpus",
        "priority_weight",
        "slo",
        "arrival_s",
    ),
}
"""The columns of Gavel's own traces, by their number."""


def read_philly(text: str, source: str, node_gpus: int, left: Left, steps_per_s: float = 1.0) -> Iterator[TraceJob]:
    """Yield the jobs in the order of arrival, as the queues' users see it; the file has one virtual cluster after the
    other.
    """
    if "\t" in text.lstrip().partition("\n")[0]:
        yield from _read_gavel(text, source, node_gpus, left, steps_per_s)
        return
    found: list[TraceJob] = []
    for cells in rows_of_csv(text, source, COLUMNS):
        if not cells.text("duration_s_on_v100"):
            left.note("no duration")
            continue
        found.append(_job(cells, node_gpus))
    yield from sorted(found, key=lambda job: job.arrival_s)


def _job(cells: TraceRow, node_gpus: int) -> TraceJob:
    return TraceJob(
        name=f"{cells.text('vc')}-{cells.text('idx')}",
        arrival_s=cells.seconds("arrival_s"),
        duration_s=cells.seconds("duration_s_on_v100"),
        pods=_pods(int(cells.number("gpus")), node_gpus),
        queue=f"vc-{cells.text('vc')}",
    )


def _read_gavel(text: str, source: str, node_gpus: int, left: Left, steps_per_s: float) -> Iterator[TraceJob]:
    found: list[TraceJob] = []
    for line, written in enumerate(text.splitlines(), 1):
        if not written.strip():
            continue
        cells = written.split("\t")
        if len(cells) not in GAVEL:
            problem = f"expected 7, 9 or 10 columns with tabs between them, found {len(cells)}"
            raise InputError(problem, source=f"{source}:{line}")
        row = TraceRow(dict(zip(GAVEL[len(cells)], cells, strict=True)), source, line)
        gpus, duration_s = row.whole("gpus"), row.number("steps") / steps_per_s
        if not gpus or not duration_s:
            left.note("no size" if not gpus else "no duration")
            continue
        found.append(TraceJob(f"job-{line}", row.seconds("arrival_s"), duration_s, _pods(gpus, node_gpus)))
    yield from sorted(found, key=lambda job: job.arrival_s)


def _pods(gpus: int, node_gpus: int) -> tuple[tuple[int, dict[str, str]], ...]:
    """Return pods of whole nodes, and one of the rest."""
    whole, rest = divmod(gpus, node_gpus)
    pods = [(whole, _amounts(node_gpus))] if whole else []
    if rest:
        pods.append((1, _amounts(rest)))
    return tuple(pods)


def _amounts(gpus: int) -> dict[str, str]:
    return {"cpu": str(CPUS_A_GPU * gpus), GPU: str(gpus)}
