"""What a process holds, as Linux tells it: memory, descriptors, processor time; and the sizes of its journal."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MB: Final = 1_000_000
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_PRIVATE: Final = ("Private_Clean:", "Private_Dirty:")


@dataclass(frozen=True, slots=True)
class ProcessReading:
    """`rss_mb`: all memory in use; `uss_mb`: what nobody shares; `cpu_s`: processor time since the start."""

    rss_mb: float
    uss_mb: float
    descriptors: int
    threads: int
    cpu_s: float


def read_process(pid: int, proc: Path = Path("/proc")) -> ProcessReading:
    """Of a running process. OSError when it is gone."""
    folder = proc / str(pid)
    rss = int((folder / "statm").read_text().split()[1]) * _PAGE
    private = sum(
        int(line.split()[1]) for line in (folder / "smaps_rollup").read_text().splitlines() if line.startswith(_PRIVATE)
    )
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    return ProcessReading(
        rss_mb=rss / MB,
        uss_mb=private * 1024 / MB,
        descriptors=len(list((folder / "fd").iterdir())),
        threads=int(fields[17]),
        cpu_s=(int(fields[11]) + int(fields[12])) / _TICKS,
    )


def file_mb(path: Path) -> float:
    """The size of a file, 0.0 when there is none."""
    try:
        return path.stat().st_size / MB
    except FileNotFoundError:
        return 0.0


def metric_lines(text: str) -> tuple[int, dict[str, int]]:
    """How many samples a server exposes, and how many objects it says it has, by resource."""
    objects: dict[str, int] = {}
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    for line in lines:
        if line.startswith("apiserver_resource_objects{"):
            labels, _, value = line.rpartition(" ")
            resource = labels.partition('resource="')[2].partition('"')[0]
            objects[resource] = objects.get(resource, 0) + int(float(value))
    return len(lines), objects
