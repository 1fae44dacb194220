"""What stands on the command line for a trace: `FORMAT:FILE[,nodes=COUNTxSIZE]`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pumice.errors import InputError
from pumice.load.source import read_text
from pumice.load.traces.jobs import GPU, Left, TraceJob, node_of, objects_of
from pumice.load.traces.philly import CPUS_A_GPU, read_philly
from pumice.load.traces.recorded import read_recorded
from pumice.load.traces.swf import read_swf
from pumice.load.traces.table import read_csv, read_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator

Object = dict[str, Any]

FORMATS: Final = ("swf", "philly", "csv", "parquet", "journal")
_NODES: Final = re.compile(r"nodes=([0-9]{1,6})x([0-9]{1,6})\Z")
USUAL: Final = {"swf": (8, 16), "philly": (68, 8)}
"""Nodes when nothing is said: 128 cpus; 544 cards."""


def is_trace(path: str) -> bool:
    """Whether that is a trace, and no file of that name."""
    return path.partition(":")[0] in FORMATS and ":" in path


def read_trace(argument: str) -> tuple[Iterator[Object], Left]:
    """The objects of a trace: nodes (for formats that need them to tell pods apart), queues, jobs with their arrivals.

    What was left out is known when all has been read. InputError names file, line and column of what is wrong.
    """
    form, _, rest = argument.partition(":")
    name, _, option = rest.partition(",")
    path, left = Path(name), Left()
    if form in USUAL:
        count, size = _nodes(option, form, argument)
        return _with_nodes(form, path, count, size, left), left
    if option:
        raise InputError(f"{form}: takes no options; nodes come as manifests of their own", source=argument)
    if form == "journal":
        return read_recorded(path)
    jobs = read_parquet(path) if form == "parquet" else read_csv(read_text(path), name)
    return objects_of(jobs), left


def _with_nodes(form: str, path: Path, count: int, size: int, left: Left) -> Iterator[Object]:
    text = read_text(path)
    jobs: Iterator[TraceJob]
    if form == "swf":
        amounts, jobs = {"cpu": str(size), "memory": "64Gi"}, read_swf(text, str(path), size, left)
    else:
        amounts = {"cpu": str(CPUS_A_GPU * size), "memory": "512Gi", GPU: str(size)}
        jobs = read_philly(text, str(path), size, left)
    width = len(str(count - 1))
    for number in range(count):
        yield node_of(f"node-{number:0{width}}", amounts)
    yield from objects_of(jobs)


def _nodes(option: str, form: str, argument: str) -> tuple[int, int]:
    if not option:
        return USUAL[form]
    found = _NODES.match(option)
    if found is None or not int(found[1]) or not int(found[2]):
        unit = "CPUS" if form == "swf" else "GPUS"
        raise InputError(f"expected nodes=COUNTx{unit}, was {option!r}", source=argument)
    return int(found[1]), int(found[2])
