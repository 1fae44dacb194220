# SPDX-License-Identifier: Apache-2.0
"""The gate from a policy file to its verdict: findings first, then both futures of every workload."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final, NamedTuple

import msgspec

from pumice import __version__
from pumice.actors.runtime.clock import VirtualClock
from pumice.config.durations import duration_s
from pumice.config.rules import VERSION
from pumice.core.objects.metadata import Object, parse_time
from pumice.executors import Executors, as_ended
from pumice.questions.gate.defaults import defaults
from pumice.questions.gate.expectations import Expectation
from pumice.questions.gate.findings import findings, new_in_head
from pumice.questions.gate.judging import Judged, Judgement, Pair, is_final, judge
from pumice.questions.gate.moved import Moved, moved
from pumice.questions.gate.policy import GatePolicy, Workload
from pumice.questions.gate.record import RecordedEviction, RecordedJob, RunRecord
from pumice.questions.gate.run import LOOP, RunTask, WantedFacts, run
from pumice.questions.gate.sides import Side
from pumice.questions.gate.workloads import drawn, joined
from pumice.results import Result
from pumice.storage import codec

BASE, HEAD = "base", "head"
NOT_RENAMED: Final[Mapping[str, str]] = {}
FORM: Final = 1
"""Form of a kept record; another one is not read."""
RunKey = tuple[str, str, int]
"""Workload, side, draw."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A workload with its objects and what is expected of it. `is_case`: a golden case, without the defaults."""

    workload: Workload
    objects: Sequence[Object]
    expect: tuple[Expectation, ...]
    is_case: bool = False

    @property
    def name(self) -> str:
        """Return the name of the workload."""
        return self.workload.name


class PolicySides(NamedTuple):
    """Both policies."""

    base: Side
    head: Side

    def stated(self) -> frozenset[str]:
        """Return the kinds that either states: those objects of a workload are left out."""
        return self.base.kinds() | self.head.kinds()


class GateVerdict(Result, kw_only=True):
    """Verdict on a change of policy: `passes`, or why not. `findings`: what is new in head without living through
    anything, `mended`: what was in base alone; `expectations` and `defaults`: what came of each on every workload;
    `moved`: what the change moves; `counts`: how many expectations came to each verdict.
    """

    passes: bool
    base: str
    head: str
    findings: list[str]
    mended: list[str]
    expectations: list[Judged]
    defaults: list[Judged]
    moved: list[Moved]
    counts: dict[str, int]
    stopped: dict[str, str]


class LivedPairs(NamedTuple):
    """All pairs of runs by workload, in the order of their draws; and how many of the runs were kept from before."""

    pairs: Mapping[str, Sequence[Pair]]
    fresh: int
    kept: int


# --- Tasks


def tasks_of(trial: Trial, sides: PolicySides, policy: GatePolicy, *, plugins_dir: str = "") -> dict[RunKey, RunTask]:
    """Return the runs of a trial: both sides of every draw."""
    found = dict[RunKey, RunTask]()
    limits = tuple(each for each in trial.expect if is_final(each))
    wanted = wanted_by(trial.expect)
    start = _start(trial.workload)
    for draw in range(1 if trial.is_case else policy.noise.draws):
        objects = drawn(trial.objects, policy.noise, draw)
        for name, side in ((BASE, sides.base), (HEAD, sides.head)):
            renamed = policy.renamed if name == HEAD else NOT_RENAMED
            found[trial.name, name, draw] = RunTask(
                codec.pack(joined(objects, side, sides.stated(), renamed)),
                side.config,
                side.source,
                start,
                trial.workload.until_s,
                duration_s(trial.workload.default_duration) or 0.0,
                wanted=wanted,
                limits=limits if name == HEAD else (),
                stops_at_loops=True,
                plugins_dir=plugins_dir,
            )
    return found


def _start(workload: Workload) -> float:
    return parse_time(workload.start) if workload.start else VirtualClock.start


def wanted_by(expect: Sequence[Expectation]) -> WantedFacts:
    """Return what the expectations ask for that costs time to reckon."""
    asked = {(each.what, each.how) for each in expect}
    return WantedFacts(
        younger=("evictions", "not_youngest") in asked,
        shares=("evictions", "within_share") in asked,
        uses=any(what in ("util", "frag") for what, _ in asked),
        pending=any(what == "pending" for what, _ in asked),
    )


# --- Living through them


class KeptRuns:
    """Records of runs by their content, in a folder (None: nowhere)."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.kept = 0

    def get(self, task: RunTask) -> RunRecord | None:
        """Return the record of an equal run, None without one that can be read."""
        path = self._path(task)
        if path is None or not path.is_file():
            return None
        try:
            form, record = msgspec.msgpack.decode(path.read_bytes(), type=tuple[int, RunRecord])
        except msgspec.DecodeError:
            return None
        self.kept += form == FORM
        return record if form == FORM else None

    def put(self, task: RunTask, record: RunRecord) -> None:
        """Keep a record; it is there as a whole or not at all."""
        path = self._path(task)
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as part:
            part.write(msgspec.msgpack.encode((FORM, record)))
        Path(part.name).rename(path)

    def _path(self, task: RunTask) -> Path | None:
        return None if self._folder is None else self._folder / f"{key_of(task)}.run"


def key_of(task: RunTask) -> str:
    """Return the key of a run: a hash of all that it depends on."""
    content = msgspec.msgpack.encode([__version__, VERSION, FORM, task], order="sorted")
    return blake2b(content, digest_size=16).hexdigest()


def live_through(
    tasks: Mapping[RunKey, RunTask],
    kept: KeptRuns,
    executors: Executors | None,
    ended: Callable[[], None] = lambda: None,
) -> dict[RunKey, RunRecord]:
    """Return the record of each run; equal ones are run once. `executors` None: in this process."""
    found = dict[RunKey, RunRecord]()
    left = dict[bytes, tuple[RunTask]]()
    keys = dict[bytes, list[RunKey]]()
    for key, task in tasks.items():
        content = msgspec.msgpack.encode(task)
        keys.setdefault(content, []).append(key)
        if len(keys[content]) == 1 and (record := kept.get(task)) is not None:
            found[key] = record
            ended()
        elif len(keys[content]) == 1:
            left[content] = (task,)
        else:
            ended()
    for content, record in _run_all(left, executors):
        kept.put(left[content][0], record)
        found[keys[content][0]] = record
        ended()
    for same in keys.values():
        for key in same[1:]:
            found[key] = found[same[0]]
    return found


def _run_all(left: Mapping[bytes, tuple[RunTask]], executors: Executors | None) -> Iterator[tuple[bytes, RunRecord]]:
    if executors is None or len(left) < 2:
        for content, (task,) in left.items():
            yield content, run(task)
        return
    with executors() as executor:
        for content, future in as_ended(run, left, executor):
            yield content, future.result()


def lived(
    trials: Sequence[Trial],
    sides: PolicySides,
    policy: GatePolicy,
    kept: KeptRuns,
    executors: Executors | None,
    ended: Callable[[], None] = lambda: None,
    plugins_dir: str = "",
) -> LivedPairs:
    """Live through both futures of all workloads. A head that ended early for what base breaks too goes on."""
    tasks = dict[RunKey, RunTask]()
    for trial in trials:
        tasks |= tasks_of(trial, sides, policy, plugins_dir=plugins_dir)
    found = live_through(tasks, kept, executors, ended)
    again = {key: task for key, task in ((key, _again(key, tasks, found)) for key in tasks) if task is not None}
    while again:
        tasks |= again
        found |= live_through(again, kept, executors)
        again = {key: task for key, task in ((key, _again(key, tasks, found)) for key in again) if task is not None}
    back = {new: old for old, new in policy.renamed.items()}
    pairs = {
        trial.name: [
            Pair(found[trial.name, BASE, draw], _named_back(found[trial.name, HEAD, draw], back))
            for draw in range(1 if trial.is_case else policy.noise.draws)
        ]
        for trial in trials
    }
    return LivedPairs(pairs, len(tasks) - kept.kept, kept.kept)


def _again(key: RunKey, tasks: Mapping[RunKey, RunTask], found: Mapping[RunKey, RunRecord]) -> RunTask | None:
    """Return the run of a head without the limits that base breaks, where it ended early for one of them."""
    name, side, draw = key
    head, base = found[key], found[name, BASE, draw]
    if side != HEAD or not head.stopped or head.stopped == LOOP:
        return None
    limits = tuple(each for each in tasks[key].limits if each.is_met(each.value(base, base.horizon_s), 0.0))
    return msgspec.structs.replace(tasks[key], limits=limits) if len(limits) < len(tasks[key].limits) else None


def _named_back(record: RunRecord, back: Mapping[str, str]) -> RunRecord:
    """Return a record of head with the names that queues and classes have in the workload."""
    if not back:
        return record

    def job(each: RecordedJob) -> RecordedJob:
        return msgspec.structs.replace(
            each,
            queue=back.get(each.queue, each.queue),
            priority_class=back.get(each.priority_class, each.priority_class),
        )

    def eviction(each: RecordedEviction) -> RecordedEviction:
        return msgspec.structs.replace(
            each, queue=back.get(each.queue, each.queue), by_queue=back.get(each.by_queue, each.by_queue)
        )

    return msgspec.structs.replace(
        record, jobs=tuple(map(job, record.jobs)), evictions=tuple(map(eviction, record.evictions))
    )


# --- The verdict


def found_by_reading(trials: Sequence[Trial], sides: PolicySides, policy: GatePolicy) -> tuple[list[str], list[str]]:
    """Return what is new in head and what was in base alone, without living through anything."""
    base, head = list[str](), list[str]()
    for trial in trials:
        base += findings(sides.base, joined(trial.objects, sides.base, sides.stated(), {}))
        head += findings(sides.head, joined(trial.objects, sides.head, sides.stated(), policy.renamed))
    base, head = list(dict.fromkeys(base)), list(dict.fromkeys(head))
    return new_in_head(base, head), new_in_head(head, base)


def judged(trials: Sequence[Trial], found: LivedPairs, policy: GatePolicy) -> tuple[list[Judged], list[Judged]]:
    """Return what came of every expectation, and of every default, on each workload."""
    expectations, standing = list[Judged](), list[Judged]()
    for trial in trials:
        pairs = found.pairs[trial.name]
        expectations += [judge(each, trial.name, pairs) for each in trial.expect]
        if not trial.is_case:
            standing += defaults(policy.defaults, trial.name, pairs[0])
    return expectations, standing


def verdict(
    sides: PolicySides,
    policy: GatePolicy,
    read: tuple[list[str], list[str]],
    trials: Sequence[Trial],
    found: LivedPairs,
    more: Sequence[Judged] = (),
) -> GateVerdict:
    """Return the whole. `more`: defaults that were judged otherwise than by the records."""
    expectations, standing = judged(trials, found, policy)
    standing += more
    counts = {each.value: sum(one.verdict is each for one in expectations) for each in Judgement}
    return GateVerdict(
        passes=not read[0]
        and not any(is_failure(each, policy) for each in expectations)
        and not any(each.verdict is Judgement.FAILS for each in standing),
        base=sides.base.name,
        head=sides.head.name,
        findings=read[0],
        mended=read[1],
        expectations=expectations,
        defaults=standing,
        moved=[moved(trial.name, found.pairs[trial.name][0]) for trial in trials if not trial.is_case],
        counts={name: count for name, count in counts.items() if count},
        stopped={name: pairs[0].head.stopped for name, pairs in found.pairs.items() if pairs[0].head.stopped},
    )


def is_failure(each: Judged, policy: GatePolicy) -> bool:
    """Return whether a judgement of an expectation fails the gate."""
    match each.verdict:
        case Judgement.FAILS:
            return True
        case Judgement.BOTH | Judgement.BASE_FAILS:
            return policy.both_fail
        case Judgement.EMPTY:
            return policy.empty_fails
        case Judgement.OK | Judgement.FIXED | Judgement.UNDECIDED:
            return False
