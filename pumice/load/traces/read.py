# SPDX-License-Identifier: Apache-2.0
"""Trace on the command line: `FORMAT:FILE[,OPTION=VALUE …]`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil, inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pumice.core.objects.metadata import Object
from pumice.core.quantity import parse_quantity
from pumice.core.resources.amounts import CPU
from pumice.errors import InputError
from pumice.load.openb import GPU as MILLI_GPU
from pumice.load.source import read_text
from pumice.load.traces.expressions import plain
from pumice.load.traces.jobs import GPU, Left, TraceJob, linked_objects_of, node_of, objects_of
from pumice.load.traces.mapped import CPUS_A_GPU, PRESETS, TARGETS, mapped_of, read_mapped
from pumice.load.traces.philly import read_philly
from pumice.load.traces.table import LONGEST_S, read_csv, read_parquet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# --- swf:FILE[,nodes=COUNTxCPUS]
# A line a job, 18 numbers (-1: unknown); lines that begin with `;` are comments; MaxProcs and MaxNodes in them size
# the cluster where `nodes=` does not. Read are: 1 job number, 2 submit time, 4 run time, 5 allocated processors (else
# 8, requested), 12 user, 15 queue; `,queues=group` takes 13, the group, for the queue, `,queues=user` the user; 17, the
# preceding job, after whose end this one is submitted, and 18, how many seconds later (think time): what a policy
# delays is passed on, as users pass it on. `,feedback=no` has every job come at its submit time. A processor is one
# cpu; a job of more than a node has becomes a gang of pods, each of a whole node, and one of the rest.
# Source: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html

COLUMNS: Final = 18
NUMBER, SUBMIT, RUN, ALLOCATED, REQUESTED, USER, PRECEDING, THINK = 0, 1, 3, 4, 7, 11, 16, 17
QUEUE_COLUMNS: Final = {"queue": 14, "group": 12, "user": USER}
"""Fields of a job that can name its queue."""
_SIZE: Final = re.compile(r"^;\s*(MaxNodes|MaxProcs)\s*:\s*([0-9]{1,9})", re.MULTILINE)


def read_swf(text: str, source: str, node_cpus: int, left: Left, queues: str = "queue") -> Iterator[TraceJob]:
    """Read the jobs in the order of the file, which is that of arrival; `queues` names one of `QUEUE_COLUMNS`.
    InputError names file, line and column of the problem.
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
    preceding = int(job.number(PRECEDING))
    return TraceJob(
        name=f"job-{int(job.number(NUMBER))}",
        arrival_s=max(0.0, job.number(SUBMIT)),
        duration_s=job.number(RUN),
        pods=tuple(pods),
        queue=f"{queues}-{queue}" if queue >= 0 else "default",
        user=f"user-{user}" if user >= 0 else "",
        after=f"job-{preceding}" if preceding > 0 else "",
        think_s=max(0.0, job.number(THINK)),
    )


FORMATS: Final = ("swf", "philly", "csv", "parquet", "journal", *PRESETS)
USUAL: Final = {"swf": (8, 16), "philly": (68, 8)}
"""Nodes when neither the option nor the file's header says how many: 128 cpus; 544 cards."""
MOST_TTL_DIGITS: Final = 10
"""An int32 of Kubernetes has no more."""
_NODES: Final = re.compile(r"([0-9]{1,6})x([0-9]{1,6})\Z")


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """Options that may follow the file: `nodes=COUNTxSIZE`; `jobs=N`, the first to arrive; `arrivals=FACTOR`, which
    multiplies the times between arrivals (0.5: twice the load); `queues=queue|group|user`, the field of an SWF job that
    names its queue; `feedback=no`, by which an SWF job comes at its submit time, whatever it names as the preceding
    one; `steps=RATE`, the training steps a second of a Gavel job; `ttl=SECONDS`, after which a job that has ended is
    deleted with its pods: a run holds as much as lives in it then, and not all that ever lived.
    """

    nodes: tuple[int, int] | None = None
    jobs: int | None = None
    arrivals: float = 1.0
    queues: str = "queue"
    feedback: bool = True
    steps: float = 1.0
    ttl_s: int | None = None

    def shaped(self, jobs: Iterable[TraceJob]) -> Iterator[TraceJob]:
        """Yield the jobs as they are to come. They come in the order of arrival."""
        for job in islice(jobs, self.jobs):
            if self.arrivals == 1.0 and self.ttl_s is None:
                yield job
            else:
                yield replace(job, arrival_s=round(job.arrival_s * self.arrivals, 3), ttl_s=self.ttl_s)


def is_trace(path: str) -> bool:
    """Return whether the path names a trace and not a file."""
    return path.partition(":")[0] in FORMATS and ":" in path


def read_trace(argument: str) -> tuple[Iterator[Object], Left]:
    """Return the objects of a trace: nodes (for formats that need them to tell pods apart), queues, jobs with their
    arrivals.

    What was left out is known when all has been read. InputError names file, line and column of what is wrong.
    """
    form, _, rest = argument.partition(":")
    name, *said = rest.split(",")
    path, left = Path(name), Left()
    if form in PRESETS:
        return _by_mapping(form, path, said, argument, left), left
    if form in USUAL:
        return _with_nodes(form, path, _options(said, form, argument), left), left
    if said:
        raise InputError(f"{form}: takes no options; nodes come as manifests of their own", source=argument)
    if form == "journal":
        from pumice.load.traces.recorded import read_recorded  # noqa: PLC0415 - all actors, for their names

        return read_recorded(path)
    jobs = read_parquet(path) if form == "parquet" else read_csv(read_text(path), name)
    return objects_of(jobs), left


def _by_mapping(form: str, path: Path, said: Sequence[str], argument: str, left: Left) -> Iterator[Object]:
    """Yield nodes, where `nodes=` asks for them, and the jobs that a mapping makes of rows."""
    mapped, rest = mapped_of(form, said, argument)
    options = _options(rest, form, argument)
    if options.nodes is None:
        yield from objects_of(options.shaped(read_mapped(mapped, path, left)))
        return
    count, size = options.nodes
    jobs = read_mapped(replace(mapped, node=size), path, left)
    yield from _nodes(count, _fitting(size, jobs))
    yield from objects_of(options.shaped(jobs))


def _fitting(size: int, jobs: Iterable[TraceJob]) -> dict[str, str]:
    """Return what a node of so many cards has, or of so many cpus where no pod asks for cards. Of everything else it
    has as much as the largest pod asks for, at least: none waits for ever for what nobody has said of the nodes.
    """
    most = dict[str, float]()
    for name, text in (asked for job in jobs for _, amounts in job.pods for asked in amounts.items()):
        most[name] = max(most.get(name, 0.0), float(text))
    cards = {GPU: 1, MILLI_GPU: 1000}
    found, counted = (_of_cards(size), cards) if most.keys() & cards.keys() else (_of_cpus(size), {CPU: 1})
    for name, amount in most.items():
        if name in counted:
            found[name] = str(counted[name] * size)
        elif amount > parse_quantity(found.get(name, "0")).value():
            found[name] = plain(amount)
    return found


def _of_cpus(size: int) -> dict[str, str]:
    return {"cpu": str(size), "memory": "64Gi"}


def _of_cards(size: int) -> dict[str, str]:
    return {"cpu": str(CPUS_A_GPU * size), "memory": "512Gi", GPU: str(size)}


def _nodes(count: int, amounts: dict[str, str]) -> Iterator[Object]:
    width = len(str(count - 1))
    for number in range(count):
        yield node_of(f"node-{number:0{width}}", amounts)


def _with_nodes(form: str, path: Path, options: TraceOptions, left: Left) -> Iterator[Object]:
    text = read_text(path)
    count, size = options.nodes or (nodes_of(text, USUAL[form]) if form == "swf" else USUAL[form])
    jobs: Iterator[TraceJob]
    if form == "swf":
        amounts, jobs = _of_cpus(size), read_swf(text, str(path), size, left, options.queues)
    else:
        amounts, jobs = _of_cards(size), read_philly(text, str(path), size, left, options.steps)
    yield from _nodes(count, amounts)
    yield from (linked_objects_of if form == "swf" and options.feedback else objects_of)(options.shaped(jobs))


def _options(said: Sequence[str], form: str, argument: str) -> TraceOptions:
    options = TraceOptions()
    for option in said:
        name, _, value = option.partition("=")
        if name == "nodes" and (found := _NODES.match(value)) and int(found[1]) and int(found[2]):
            options = replace(options, nodes=(int(found[1]), int(found[2])))
        elif name == "jobs" and value.isdecimal() and int(value):
            options = replace(options, jobs=int(value))
        elif name == "arrivals" and (factor := _positive(value)):
            options = replace(options, arrivals=factor)
        elif name == "ttl" and value.isdecimal() and len(value) < MOST_TTL_DIGITS:
            options = replace(options, ttl_s=int(value))
        elif name == "queues" and form == "swf" and value in QUEUE_COLUMNS:
            options = replace(options, queues=value)
        elif name == "feedback" and form == "swf" and value in ("yes", "no"):
            options = replace(options, feedback=value == "yes")
        elif name == "steps" and form == "philly" and (rate := _positive(value)):
            options = replace(options, steps=rate)
        else:
            raise InputError(f"expected {_expected(form)}, was {option!r}", source=argument)
    return options


def _expected(form: str) -> str:
    unit, more = "GPUS", ", steps=RATE"
    if form == "swf":
        unit, more = "CPUS", f", queues={'|'.join(QUEUE_COLUMNS)}, feedback=yes|no"
    elif form in PRESETS:
        unit, more = "SIZE", f", preset=FILE, zone=NAME, delimiter=MARK, or one of {', '.join(TARGETS)} = columns"
    return f"nodes=COUNTx{unit}, jobs=N, arrivals=FACTOR, ttl=SECONDS{more}"


def _positive(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < inf else None
