"""What stands on the command line for a trace: `FORMAT:FILE[,OPTION=VALUE …]`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pumice.core.objects.metadata import Object
from pumice.errors import InputError
from pumice.load.source import read_text
from pumice.load.traces.jobs import GPU, Left, TraceJob, node_of, objects_of
from pumice.load.traces.philly import CPUS_A_GPU, read_philly
from pumice.load.traces.recorded import read_recorded
from pumice.load.traces.swf import QUEUE_COLUMNS, nodes_of, read_swf
from pumice.load.traces.table import read_csv, read_parquet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


FORMATS: Final = ("swf", "philly", "csv", "parquet", "journal")
USUAL: Final = {"swf": (8, 16), "philly": (68, 8)}
"""Nodes when neither the option nor the file's header says how many: 128 cpus; 544 cards."""
_NODES: Final = re.compile(r"([0-9]{1,6})x([0-9]{1,6})\Z")


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """What may stand behind the file: `nodes=COUNTxSIZE`; `jobs=N`, the first to come; `arrivals=FACTOR`, by which the
    times between arrivals are multiplied (0.5: twice the load); `queues=queue|group|user`, what of an SWF job its queue
    is; `steps=RATE`, how many steps of training a second a job of Gavel does.
    """

    nodes: tuple[int, int] | None = None
    jobs: int | None = None
    arrivals: float = 1.0
    queues: str = "queue"
    steps: float = 1.0

    def shaped(self, jobs: Iterable[TraceJob]) -> Iterator[TraceJob]:
        """The jobs as they are to come. They come in the order of arrival."""
        for job in islice(jobs, self.jobs):
            yield job if self.arrivals == 1.0 else replace(job, arrival_s=round(job.arrival_s * self.arrivals, 3))


def is_trace(path: str) -> bool:
    """Whether that is a trace, and no file of that name."""
    return path.partition(":")[0] in FORMATS and ":" in path


def read_trace(argument: str) -> tuple[Iterator[Object], Left]:
    """The objects of a trace: nodes (for formats that need them to tell pods apart), queues, jobs with their arrivals.

    What was left out is known when all has been read. InputError names file, line and column of what is wrong.
    """
    form, _, rest = argument.partition(":")
    name, *said = rest.split(",")
    path, left = Path(name), Left()
    if form in USUAL:
        return _with_nodes(form, path, _options(said, form, argument), left), left
    if said:
        raise InputError(f"{form}: takes no options; nodes come as manifests of their own", source=argument)
    if form == "journal":
        return read_recorded(path)
    jobs = read_parquet(path) if form == "parquet" else read_csv(read_text(path), name)
    return objects_of(jobs), left


def _with_nodes(form: str, path: Path, options: TraceOptions, left: Left) -> Iterator[Object]:
    text = read_text(path)
    count, size = options.nodes or (nodes_of(text, USUAL[form]) if form == "swf" else USUAL[form])
    jobs: Iterator[TraceJob]
    if form == "swf":
        amounts, jobs = {"cpu": str(size), "memory": "64Gi"}, read_swf(text, str(path), size, left, options.queues)
    else:
        amounts = {"cpu": str(CPUS_A_GPU * size), "memory": "512Gi", GPU: str(size)}
        jobs = read_philly(text, str(path), size, left, options.steps)
    width = len(str(count - 1))
    for number in range(count):
        yield node_of(f"node-{number:0{width}}", amounts)
    yield from objects_of(options.shaped(jobs))


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
        elif name == "queues" and form == "swf" and value in QUEUE_COLUMNS:
            options = replace(options, queues=value)
        elif name == "steps" and form == "philly" and (rate := _positive(value)):
            options = replace(options, steps=rate)
        else:
            raise InputError(f"expected {_expected(form)}, was {option!r}", source=argument)
    return options


def _expected(form: str) -> str:
    unit, more = ("CPUS", f", queues={'|'.join(QUEUE_COLUMNS)}") if form == "swf" else ("GPUS", ", steps=RATE")
    return f"nodes=COUNTx{unit}, jobs=N, arrivals=FACTOR{more}"


def _positive(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < inf else None
