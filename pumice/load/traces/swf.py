"""The Standard Workload Format of the Parallel Workloads Archive: `swf:FILE[,nodes=COUNTxCPUS]`.

A line a job, 18 numbers (-1: unknown); lines that begin with `;` are comments, of which MaxProcs and MaxNodes size
the cluster where `nodes=` does not. Read are: 1 job number, 2 submit time, 4 run time, 5 allocated processors (else 8,
requested), 12 user, 15 queue; `,queues=group` takes 13, the group, for the queue, `,queues=user` the user. A processor
is one cpu; a job of more than a node has becomes a gang of pods, each of a whole node, and one of the rest. Source:
https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
"""

from __future__ import annotations

import re
from math import ceil, nan
from typing import TYPE_CHECKING, Final

from pumice.errors import InputError
from pumice.load.traces.jobs import TraceJob
from pumice.load.traces.rows import LONGEST_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.load.traces.jobs import Left

COLUMNS: Final = 18
NUMBER, SUBMIT, RUN, ALLOCATED, REQUESTED, USER = 0, 1, 3, 4, 7, 11
QUEUE_COLUMNS: Final = {"queue": 14, "group": 12, "user": USER}
"""What of a job may be taken for its queue."""
_SIZE: Final = re.compile(r"^;\s*(MaxNodes|MaxProcs)\s*:\s*([0-9]{1,9})", re.MULTILINE)


def read_swf(text: str, source: str, node_cpus: int, left: Left, queues: str = "queue") -> Iterator[TraceJob]:
    """In the order of the file, which is that of arrival; `queues` names one of `QUEUE_COLUMNS`. InputError names file,
    line and column of what is wrong.
    """
    for line, words in enumerate((row.split() for row in text.splitlines()), 1):
        if not words or words[0].startswith(";"):
            continue
        if len(words) < COLUMNS:
            raise InputError(f"expected {COLUMNS} numbers, found {len(words)}", source=source, line=line)
        job = _Line(words, source, line)
        cpus = job.number(ALLOCATED) if job.number(ALLOCATED) > 0 else job.number(REQUESTED)
        if job.number(RUN) < 0:
            left.note("no run time")
        elif cpus <= 0:
            left.note("no number of processors")
        else:
            yield _job(job, int(cpus), node_cpus, queues)


def nodes_of(text: str, usual: tuple[int, int]) -> tuple[int, int]:
    """Return the number of nodes, and the processors of each, by the header: MaxProcs over MaxNodes (rounded up).

    Without MaxNodes the nodes have the usual size; without MaxProcs they are the usual ones.
    """
    said = {name: int(number) for name, number in reversed(_SIZE.findall(text))}
    processors, nodes = said.get("MaxProcs", 0), said.get("MaxNodes", 0)
    if not processors:
        return usual
    if not 0 < nodes <= processors:
        nodes = ceil(processors / usual[1])
    return nodes, ceil(processors / nodes)


class _Line:
    def __init__(self, words: list[str], source: str, line: int) -> None:
        self._words, self._source, self._line = words, source, line

    def number(self, column: int) -> float:
        try:
            value = float(self._words[column])
        except ValueError:
            value = nan
        if abs(value) <= LONGEST_S:
            return value
        problem = f"expected a number within ±{LONGEST_S}, was {self._words[column]!r}"
        raise InputError(problem, source=self._source, line=self._line, path=f"column {column + 1}")


def _job(job: _Line, cpus: int, node_cpus: int, queues: str) -> TraceJob:
    whole, rest = divmod(cpus, node_cpus)
    pods = [(whole, {"cpu": str(node_cpus)})] if whole else []
    if rest:
        pods.append((1, {"cpu": str(rest)}))
    queue, user = int(job.number(QUEUE_COLUMNS[queues])), int(job.number(USER))
    return TraceJob(
        name=f"job-{int(job.number(NUMBER))}",
        arrival_s=max(0.0, job.number(SUBMIT)),
        duration_s=job.number(RUN),
        pods=tuple(pods),
        queue=f"{queues}-{queue}" if queue >= 0 else "default",
        user=f"user-{user}" if user >= 0 else "",
    )
