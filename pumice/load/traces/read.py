"""Trace on the command line: `FORMAT:FILE[,OPTION=VALUE …]`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import islice
from math import ceil, inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pumice.cluster.api.origin import as_new
from pumice.cluster.kernel.roster import MAKERS
from pumice.cluster.kubelets.pod_runs import DURATION
from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object, section, text_map
from pumice.errors import InputError
from pumice.executors import waited
from pumice.load.source import read_text
from pumice.load.traces.jobs import GPU, Left, TraceJob, node_of, objects_of
from pumice.load.traces.philly import CPUS_A_GPU, read_philly
from pumice.load.traces.table import LONGEST_S, read_csv, read_parquet
from pumice.questions.measures.lives import Lives
from pumice.questions.measures.measures import beginning
from pumice.questions.replay.remainder import ITSELF, asked
from pumice.runtime.arrivals import ARRIVAL, duration_text
from pumice.storage import codec
from pumice.storage.journal import API, Stored
from pumice.storage.records import read_as
from pumice.storage.sqlite import SqliteJournal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# --- journal:FILE
# What they handed in before the first work came is there from the beginning, and stands as they had changed it by
# then. Work comes as long after the beginning as it did, and runs as long as it ran: a pod by itself, those of a
# template as long as the longest of them, where it does not say so already; for ever what still ran in the end. Later
# changes and deletions are not arrivals: they are left out and counted (`pumice replay --config` has them too).

Key = tuple[str, str, str]
"""Kind, namespace, name."""

TASK: Final = "volcano.sh/task-spec"
ENDED: Final = ("Succeeded", "Failed")
UNTOLD: Final = frozenset(("Event", "Lease"))
WORK: Final = frozenset((*MAKERS, "Pod", "PodGroup"))
"""Kinds that arrive when their users come; all other objects from before the first of them exist from the beginning."""


@dataclass
class Arrived:
    """Objects that came from outside: `first` exist from the beginning, `later` arrive so many seconds after it.

    `ran`: (uid of the object that came, task) -> how long the longest of its pods ran that ended by itself; 0.0: one
    still runs.
    """

    first: dict[Key, Object] = field(default_factory=dict[Key, Object])
    later: list[tuple[float, Object]] = field(default_factory=list[tuple[float, Object]])
    left: Left = field(default_factory=lambda: Left(what="requests"))
    _owners: dict[str, str] = field(default_factory=dict[str, str])
    _running: dict[str, tuple[float, tuple[str, str]]] = field(
        default_factory=dict[str, "tuple[float, tuple[str, str]]"]
    )
    _ran: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])

    def note(self, mutation: Mutation, at: float, *, outside: bool) -> None:
        """Take the next change, so many seconds after the beginning."""
        obj: Object = codec.unpack(mutation.blob)
        metadata = section(obj, "metadata")
        owners: list[Object] = metadata.get("ownerReferences") or []
        if owners:
            self._owners[str(metadata.get("uid"))] = str(owners[0].get("uid"))
        if mutation.kind == "Pod":
            self._run(mutation, obj, at)
        if outside and mutation.kind not in UNTOLD:
            self._hand_in(mutation, obj, at)

    def _hand_in(self, mutation: Mutation, obj: Object, at: float) -> None:
        key = (mutation.kind, mutation.namespace, mutation.name)
        if not self.later and mutation.kind not in WORK:
            if mutation.type == "DELETED":
                self.first.pop(key, None)
            else:
                self.first[key] = obj
        elif mutation.type == "ADDED":
            self.later.append((at, obj))
        else:
            self.left.note("changes and deletions of what had come")

    def _run(self, mutation: Mutation, pod: Object, at: float) -> None:
        metadata, phase = section(pod, "metadata"), section(pod, "status").get("phase")
        uid = str(metadata.get("uid"))
        if mutation.type != "DELETED" and phase == "Running":
            whose = self._root(uid), text_map(metadata.get("annotations")).get(TASK, "")
            self._running.setdefault(uid, (at, whose))
        elif (ran := self._running.pop(uid, None)) is not None and phase in ENDED:
            began, whose = ran
            if not metadata.get("deletionTimestamp"):
                self._ran[whose] = max(self._ran.get(whose, 0.0), at - began)

    def _root(self, uid: str) -> str:
        while uid in self._owners:
            uid = self._owners[uid]
        return uid

    def objects(self) -> Iterator[Object]:
        """Return the objects in order of arrival."""
        for _, whose in self._running.values():
            self._ran.setdefault(whose, 0.0)
        for obj in self.first.values():
            yield as_new(asked(obj))
        for at, obj in self.later:
            yield self._coming(obj, at)

    def _coming(self, given: Object, at: float) -> Object:
        uid = str(section(given, "metadata").get("uid"))
        obj = as_new(asked(given))
        if obj["kind"] == "Pod":
            obj = _annotated(obj, DURATION, self._ran.get((uid, text_map(_annotations(obj)).get(TASK, ""))))
        elif obj["kind"] == "Job" and "tasks" in section(obj, "spec"):
            tasks = [self._task(task, uid) for task in obj["spec"]["tasks"]]
            obj = {**obj, "spec": {**obj["spec"], "tasks": tasks}}
        elif section(obj, "spec").get("template"):
            template = _annotated(obj["spec"]["template"], DURATION, self._ran.get((uid, "")))
            obj = {**obj, "spec": {**obj["spec"], "template": template}}
        return _annotated(obj, ARRIVAL, at)

    def _task(self, task: Object, uid: str) -> Object:
        template = _annotated(task.get("template") or {}, DURATION, self._ran.get((uid, str(task.get("name") or ""))))
        return {**task, "template": template}


def _annotations(obj: Object) -> Object:
    return section(section(obj, "metadata"), "annotations")


def _annotated(obj: Object, name: str, seconds: float | None) -> Object:
    """Return the object with a time, unless there is none or the object has a duration of its own."""
    there = _annotations(obj)
    if seconds is None or (name == DURATION and name in there):
        return obj
    annotations = {**there, name: duration_text(seconds)}
    return {**obj, "metadata": {**section(obj, "metadata"), "annotations": annotations}}


def read_recorded(file: Path) -> tuple[Iterator[Object], Left]:
    """Return the objects of a journal, and those that were left out. Raises InputError, OpenError, DamagedError."""
    if not file.exists():
        raise InputError("does not exist", source=str(file))
    arrived = waited(_arrived, file)
    return arrived.objects(), arrived.left


async def _arrived(file: Path) -> Arrived:
    arrived = Arrived()
    async with await SqliteJournal.open(file, read_only=True) as journal:
        begun = await beginning(journal)
        for mutation in begun.there():
            roots = not section(codec.unpack(mutation.blob), "metadata").get("ownerReferences")
            arrived.note(mutation, 0.0, outside=roots)

        def follow(stored: Stored) -> None:
            if stored.kind == API:
                mutation = read_as(stored, Mutation)
                outside = mutation.user.partition(" ")[0] not in ITSELF and not stored.cause
                arrived.note(mutation, round(stored.at - begun.at, 3), outside=outside)

        await begun.through(journal, Lives(()), follow)
    return arrived


# --- swf:FILE[,nodes=COUNTxCPUS]
# A line a job, 18 numbers (-1: unknown); lines that begin with `;` are comments; MaxProcs and MaxNodes in them size
# the cluster where `nodes=` does not. Read are: 1 job number, 2 submit time, 4 run time, 5 allocated processors (else
# 8, requested), 12 user, 15 queue; `,queues=group` takes 13, the group, for the queue, `,queues=user` the user. A
# processor is one cpu; a job of more than a node has becomes a gang of pods, each of a whole node, and one of the
# rest. Source: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html

COLUMNS: Final = 18
NUMBER, SUBMIT, RUN, ALLOCATED, REQUESTED, USER = 0, 1, 3, 4, 7, 11
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
    return TraceJob(
        name=f"job-{int(job.number(NUMBER))}",
        arrival_s=max(0.0, job.number(SUBMIT)),
        duration_s=job.number(RUN),
        pods=tuple(pods),
        queue=f"{queues}-{queue}" if queue >= 0 else "default",
        user=f"user-{user}" if user >= 0 else "",
    )


FORMATS: Final = ("swf", "philly", "csv", "parquet", "journal")
USUAL: Final = {"swf": (8, 16), "philly": (68, 8)}
"""Nodes when neither the option nor the file's header says how many: 128 cpus; 544 cards."""
_NODES: Final = re.compile(r"([0-9]{1,6})x([0-9]{1,6})\Z")


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """Options that may follow the file: `nodes=COUNTxSIZE`; `jobs=N`, the first to arrive; `arrivals=FACTOR`, which
    multiplies the times between arrivals (0.5: twice the load); `queues=queue|group|user`, the field of an SWF job that
    names its queue; `steps=RATE`, the training steps a second of a Gavel job.
    """

    nodes: tuple[int, int] | None = None
    jobs: int | None = None
    arrivals: float = 1.0
    queues: str = "queue"
    steps: float = 1.0

    def shaped(self, jobs: Iterable[TraceJob]) -> Iterator[TraceJob]:
        """Yield the jobs as they are to come. They come in the order of arrival."""
        for job in islice(jobs, self.jobs):
            yield job if self.arrivals == 1.0 else replace(job, arrival_s=round(job.arrival_s * self.arrivals, 3))


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
