# SPDX-License-Identifier: Apache-2.0
"""Tables of others: `table:FILE,arrival=submit_time,duration=end_time-start_time,gpu=num_gpu,queue=vc`, and presets of
such mappings for published traces.

A mapping says what each value of a job is, as an expression over the columns of a row (expressions.py). Rows without an
arrival, a duration or a size, and those that a preset knows to be no job, are left out and counted. The first arrival
is the beginning.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from pumice.config.read import mapping as mapping_of
from pumice.config.read import read_yaml
from pumice.core.objects.metadata import Object, is_list, is_mapping, rows, section
from pumice.errors import InputError
from pumice.load.source import read_text
from pumice.load.traces.expressions import Expression, RowError, Value, expression_of, plain, text_of
from pumice.load.traces.jobs import GPU, Left, TraceJob
from pumice.load.traces.table import PARQUET, parquet_rows

TARGETS: Final = (
    "arrival", "duration", "name", "job", "queue", "user", "priority", "pods", "gang", "cpu", "memory", "gpu", "gpus",
    "cpus", "where",
)  # fmt: skip
"""Values of a job that a mapping may state; besides them any resource by its name. `gpus` and `cpus` are of all pods
together, `job` joins rows to one job, `where` keeps the rows for which it holds."""
DELIMITERS: Final = "|\t;,"
CPUS_A_GPU: Final = 4
"""Where a trace says nothing of cpu, a card's share of a node is taken for it, so that cards alone are scarce."""
LONGEST_NAME: Final = 50

Row = Mapping[str, Any]
Rows = Callable[[str, str], Iterator[Row]]
"""(text, source) -> rows by column."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """A mapping. `values` by target; `out`: which rows are no jobs, by the reason; `runs`: rows of one name are runs of
    one job, and each becomes a job; `zone`: of times that do not say; `columns`: names of the columns of a file without
    a header; `rows`: reader of a file that is no table; `node`: cards (or cpus, without cards) of a node, by which
    `gpus` and `cpus` become pods.
    """

    values: Mapping[str, str] = field(default_factory=dict[str, str])
    out: Mapping[str, str] = field(default_factory=dict[str, str])
    runs: bool = False
    zone: str = "UTC"
    delimiter: str = ""
    columns: tuple[str, ...] = ()
    rows: Rows | None = None
    node: int = 8


# --- Rows


def table_rows(text: str, source: str, delimiter: str = "", columns: Sequence[str] = ()) -> Iterator[Row]:
    """Yield the rows of a table with a delimiter that its first line shows. A file may lack the header that `columns`
    gives. Raises InputError for a row with other cells.
    """
    lines = text.splitlines()
    first = next((line for line in lines if line.strip()), "")
    mark = delimiter or max(DELIMITERS, key=first.count)
    reader = csv.reader(lines, delimiter=mark)
    header: list[str] = list(columns)
    for cells in reader:
        if not any(cell.strip() for cell in cells):
            continue
        if not header or [cell.strip() for cell in cells] == header:
            header = header or [cell.strip() for cell in cells]
            continue
        if len(cells) != len(header):
            problem = f"expected {len(header)} cells, found {len(cells)}"
            raise InputError(problem, source=source, line=reader.line_num)
        yield dict(zip(header, cells, strict=True))


def _decoded(text: str, source: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InputError(f"not valid JSON: {error}", source=source) from error


UNRECORDED: Final = (None, "", "None")
"""Start of an attempt whose log was lost, as `parse_date` of the trace's own notebook has it."""


def philly_rows(text: str, source: str) -> Iterator[Row]:
    """Yield a row for each job of Philly's `cluster_job_log`: from the start of its first attempt to the end of its
    last, on the cards of the first. Raises InputError.
    """
    jobs = _decoded(text, source)
    if not is_list(jobs):
        raise InputError("expected a list of jobs, as cluster_job_log has it", source=source)
    for job in filter(is_mapping, jobs):
        attempts = [each for each in rows(job, "attempts") if each.get("start_time") not in UNRECORDED]
        nothing: Object = {}
        first, last = (attempts[0], attempts[-1]) if attempts else (nothing, nothing)
        cards = sum(len(each.get("gpus") or ()) for each in rows(first, "detail"))
        plain = {name: job.get(name) for name in ("jobid", "vc", "user", "status", "submitted_time")}
        yield {**plain, "start_time": first.get("start_time"), "end_time": last.get("end_time"), "gpus": cards}


def batsim_rows(text: str, source: str) -> Iterator[Row]:
    """Yield a row for each job of a Batsim workload. `runs` is the delay of its profile, or of a sequence of such
    profiles, but no longer than its walltime: Batsim stops it there. None for profiles that compute and communicate,
    which take as long as a platform needs. Raises InputError.
    """
    said = _decoded(text, source)
    if not is_mapping(said) or not is_list(said.get("jobs")):
        raise InputError("expected a workload with `jobs` and `profiles`", source=source)
    delays = Delays(section(said, "profiles"))
    for job in rows(said, "jobs"):
        delay, walltime = delays.of(str(job.get("profile"))), _amount(job.get("walltime"))
        # -1 is no walltime.
        yield {**job, "runs": delay if delay is None or not walltime or walltime < 0 else min(delay, walltime)}


def _amount(said: object) -> float | None:
    return float(said) if isinstance(said, int | float) and not isinstance(said, bool) else None


DEEPEST: Final = 50
"""Sequences within sequences that are followed."""


class Delays:
    """Says how long profiles of Batsim take; a sequence is written `seq` and `repeat` (`nb` before its version 2)."""

    def __init__(self, profiles: Object) -> None:
        self._profiles, self._known = profiles, dict[str, float | None]()

    def of(self, name: str, deep: int = DEEPEST) -> float | None:
        """Return the seconds of a profile; None where they depend on a platform, or it contains itself."""
        if name not in self._known:
            self._known[name] = None
            self._known[name] = self._sum(section(self._profiles, name), deep)
        return self._known[name]

    def _sum(self, profile: Object, deep: int) -> float | None:
        if not is_list(profile.get("seq")):
            return _amount(profile.get("delay"))
        parts = [self.of(str(each), deep - 1) if deep else None for each in profile["seq"]]
        times = _amount(profile.get("repeat", profile.get("nb", 1)))
        known = [each for each in parts if each is not None]
        return None if times is None or len(known) < len(parts) else times * sum(known)


# --- Presets

PRESETS: Final[Mapping[str, Mapped]] = {
    "table": Mapped(),
    "tiresias": Mapped({"arrival": "submit_time", "duration": "duration", "name": "job_id", "gpus": "num_gpu"}),
    "helios": Mapped(
        {
            "arrival": "submit_time",
            "duration": "duration",
            "name": "job_id",
            "queue": "vc",
            "user": "user",
            "pods": "node_num",
            "gpu": "gpu_num/node_num",
            "cpu": "cpu_num/node_num",
        },
        zone="Asia/Shanghai",
    ),
    "pai": Mapped(
        {
            "arrival": "start_time",
            "duration": "end_time-start_time",
            "job": "job_name",
            "pods": "inst_num",
            "cpu": "plan_cpu/100",
            "memory": "plan_mem*1073741824",
            "alibabacloud.com/gpu-milli": "plan_gpu*10",
        },
        columns=(
            "job_name",
            "task_name",
            "inst_num",
            "status",
            "start_time",
            "end_time",
            "plan_cpu",
            "plan_mem",
            "plan_gpu",
            "gpu_type",
        ),
    ),
    "spot-gpu": Mapped(
        {
            "arrival": "submit_time",
            "duration": "duration",
            "name": "job_name",
            "queue": "organization",
            "pods": "worker_num",
            "cpu": "cpu_request",
            "gpu": "gpu_request",
            "priority": '(job_type=="HP")*1000',
        }
    ),
    "supercloud": Mapped(
        {
            "arrival": "time_submit",
            "duration": "time_end-time_start",
            "name": "id_job",
            "queue": "partition",
            "user": "id_user",
            "pods": "nodes_alloc",
            "cpu": "(tres_alloc.1|cpus_req)/nodes_alloc",
            "gpu": "(tres_alloc.1002|tres_alloc.1001|0)/nodes_alloc",
        },
        {"never started": "(time_start|0)<=0"},
        zone="America/New_York",
    ),
    "philly-log": Mapped(
        {
            "arrival": "submitted_time",
            "duration": "end_time-start_time",
            "name": "jobid",
            "queue": "vc",
            "user": "user",
            "gpus": "gpus",
        },
        zone="America/Los_Angeles",
        rows=philly_rows,
    ),
    "sacct": Mapped(
        {
            "arrival": "Submit",
            "duration": "End-Start",
            "name": "JobID",
            "queue": "Partition|Account",
            "user": "User|Account",
            "pods": "AllocTRES.node|ReqTRES.node|NNodes|1",
            "cpu": "(AllocTRES.cpu|ReqTRES.cpu|AllocCPUS|ReqCPUS)/(AllocTRES.node|ReqTRES.node|NNodes|1)",
            "memory": "(AllocTRES.mem|ReqTRES.mem|0)/(AllocTRES.node|ReqTRES.node|NNodes|1)",
            "gpu": '("AllocTRES.gres/gpu"|"ReqTRES.gres/gpu"|0)/(AllocTRES.node|ReqTRES.node|NNodes|1)',
        },
        {
            "a step of a job": 'JobID~"."',
            # Of a job that was cancelled or requeued while it waited, older versions say that it started as it ended.
            "never started": "((End-Start)|1) + (AllocTRES.cpu|AllocCPUS|0) <= 0",
        },
        # With -D a requeued job has a row for each time that it was submitted, and Slurm may number jobs from 1 again.
        runs=True,
    ),
    "batsim": Mapped({"arrival": "subtime", "duration": "runs", "name": "id", "cpus": "res"}, rows=batsim_rows, node=1),
}
"""By the word before the colon: what of a published form a job is made of, and how its times are read."""


# --- Jobs


class TableOfOthers:
    """Reads jobs by a mapping; `left` counts the rows that are left out."""

    def __init__(self, mapped: Mapped, source: str, left: Left) -> None:
        self._mapped, self._source, self._left = mapped, source, left
        self._values = {name: self._expression(name, text) for name, text in mapped.values.items()}
        self._out = {why: self._expression(why, text) for why, text in mapped.out.items()}
        for needed in ("arrival", "duration"):
            if needed not in self._values:
                raise InputError(f"say what the {needed} of a job is: {needed}=COLUMN", source=source)
        self._zone = _zone(mapped.zone, source)
        self._names: dict[str, str] = {}

    def _expression(self, name: str, text: str) -> Expression:
        try:
            return expression_of(text)
        except RowError as error:
            raise InputError(str(error), source=self._source, path=name) from error

    def jobs(self, rows: Iterable[Row]) -> list[TraceJob]:
        """Return the jobs in the order of arrival, the first at 0. Raises InputError, which names the row."""
        found, runs = dict[str, TraceJob](), dict[str, list[TraceJob]]()
        for number, row in enumerate(rows, 1):
            try:
                job = self._job(row, number)
            except RowError as error:
                raise InputError(str(error), source=f"{self._source}, row {number}") from error
            if job is None:
                continue
            before = found.get(job.name)
            if before is not None and "job" in self._values:
                job = _joined(before, job)
            elif before is not None and self._mapped.runs:
                if job in (earlier := runs.setdefault(job.name, [before])):
                    self._left.note("the same record twice")
                    continue
                earlier.append(job)
                job = replace(job, name=_name_of_run(job.name, len(earlier), found))
            elif before is not None:
                raise InputError(f"a second job is called {job.name!r}", source=f"{self._source}, row {number}")
            found[job.name] = job
        first = min((job.arrival_s for job in found.values()), default=0.0)
        jobs = [replace(job, arrival_s=round(job.arrival_s - first, 3)) for job in found.values()]
        return sorted(jobs, key=lambda job: job.arrival_s)

    def _job(self, row: Row, number: int) -> TraceJob | None:
        """Return the job of a row; None for one that is left out."""
        for why, holds in self._out.items():
            if holds(row, self._zone):
                self._left.note(why)
                return None
        if not self._value("where", row, 1.0):
            self._left.note("not asked for")
            return None
        arrival, duration = self._number("arrival", row), self._number("duration", row)
        if arrival is None:
            self._left.note("no arrival")
        elif duration is None or duration < 0:
            self._left.note("no duration")
        elif not (pods := self._pods(row)):
            self._left.note("no size")
        else:
            priority = self._number("priority", row)
            return TraceJob(
                self._called("job", row) or self._called("name", row) or f"job-{number}",
                arrival,
                duration,
                pods,
                self._called("queue", row) or "default",
                self._text("user", row),
                gang=None if (gang := self._number("gang", row)) is None else int(gang),
                priority=None if priority is None else int(priority),
            )
        return None

    def _pods(self, row: Row) -> tuple[tuple[int, Mapping[str, str]], ...]:
        """Return the pods: so many alike, or what all ask for together in pods of whole nodes and one of the rest."""
        shared = dict[str, float]()
        for name in ("gpus", "cpus"):
            if name in self._values:
                shared[name] = self._number(name, row) or 0.0
        if shared:
            whole, rest = divmod(int(shared.get("gpus") or shared.get("cpus", 0)), self._mapped.node)
            parts = [(whole, self._mapped.node)] if whole else []
            parts += [(1, rest)] if rest else []
            return tuple((count, self._share(size, shared)) for count, size in parts)
        count = 1.0 if "pods" not in self._values else self._number("pods", row) or 0.0
        amounts = self._amounts(row)
        return ((int(count), amounts),) if count >= 1 else ()

    def _share(self, size: int, shared: Mapping[str, float]) -> dict[str, str]:
        """Return the amounts of one pod that has so many of what is counted."""
        gpus, cpus = shared.get("gpus", 0.0), shared.get("cpus")
        if not gpus:
            return {"cpu": str(size)}
        return {"cpu": plain(CPUS_A_GPU * size if cpus is None else cpus * size / gpus), GPU: str(size)}

    def _amounts(self, row: Row) -> dict[str, str]:
        gpu = self._number("gpu", row) or 0.0
        cpu = self._number("cpu", row)
        found = {"cpu": plain(cpu if cpu else max(1.0, CPUS_A_GPU * gpu))}
        if memory := self._number("memory", row):
            found["memory"] = str(int(memory))
        if gpu:
            found[GPU] = str(-(-int(gpu * 1000) // 1000))  # a card is whole
        for name in self._values:
            if "/" in name and (amount := self._number(name, row)):
                found[name] = str(int(amount))
        return found

    # --- values

    def _value(self, name: str, row: Row, default: Value = None) -> Value:
        expression = self._values.get(name)
        return default if expression is None else expression(row, self._zone)

    def _number(self, name: str, row: Row) -> float | None:
        value = self._value(name, row)
        if value is None or isinstance(value, float):
            return value
        raise RowError(f"{name}: expected a number or a time, was {value!r}")

    def _text(self, name: str, row: Row) -> str:
        expression = self._values.get(name)
        return "" if expression is None else text_of(expression, row, self._zone)

    def _called(self, name: str, row: Row) -> str:
        """Return a valid name of objects for a text; two texts never get one name."""
        text = self._text(name, row)
        made = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:LONGEST_NAME]
        if not text or self._names.setdefault(f"{name}/{made}", text) == text:
            return made
        return f"{made}-{blake2b(text.encode(), digest_size=3).hexdigest()}"


def _name_of_run(name: str, run: int, taken: Container[str]) -> str:
    """Return the name of a further run of a job, which no other job has."""
    while (found := f"{name}-run-{run}") in taken:
        run += 1
    return found


def _joined(job: TraceJob, more: TraceJob) -> TraceJob:
    """Return one job of two rows: it comes with the first, and runs until both have ended."""
    arrival = min(job.arrival_s, more.arrival_s)
    end = max(job.arrival_s + job.duration_s, more.arrival_s + more.duration_s)
    return replace(job, arrival_s=arrival, duration_s=end - arrival, pods=(*job.pods, *more.pods))


def _zone(name: str, source: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise InputError(f"unknown time zone {name!r}; name one such as Europe/Berlin", source=source) from error


# --- The argument


def mapped_of(form: str, options: Sequence[str], argument: str) -> tuple[Mapped, list[str]]:
    """Return the mapping of a preset with the options over it, and the options that say nothing of it. Raises
    InputError.
    """
    mapped, rest = PRESETS[form], list[str]()
    for option in options:
        name, equals, value = option.partition("=")
        if name == "preset":
            mapped = _with_file(mapped, Path(value))
        elif name == "zone":
            mapped = replace(mapped, zone=value)
        elif name == "delimiter":
            mapped = replace(mapped, delimiter={"tab": "\t", "comma": ","}.get(value, value))
        elif equals and (name in TARGETS or "/" in name):
            mapped = replace(mapped, values={**mapped.values, name: value})
        else:
            rest.append(option)
    return mapped, rest


def _with_file(mapped: Mapped, file: Path) -> Mapped:
    place, said = read_yaml(read_text(file), str(file))
    values = {name: str(value) for name, value in mapping_of(place, said).items()}
    zone, delimiter = values.pop("zone", mapped.zone), values.pop("delimiter", mapped.delimiter)
    for name in values:
        if name not in TARGETS and "/" not in name:
            raise place.at(name).unknown("value of a job", name, TARGETS)
    return replace(mapped, values={**mapped.values, **values}, zone=zone, delimiter=delimiter)


def read_mapped(mapped: Mapped, path: Path, left: Left) -> list[TraceJob]:
    """Return the jobs of a file by a mapping. Raises InputError."""
    left.what = "rows"
    table = TableOfOthers(mapped, str(path), left)
    if path.suffix == PARQUET:
        return table.jobs(row.row for row in parquet_rows(path, ()))
    text = read_text(path)
    if mapped.rows is not None:
        return table.jobs(mapped.rows(text, str(path)))
    return table.jobs(table_rows(text, str(path), mapped.delimiter, mapped.columns))
