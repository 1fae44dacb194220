# SPDX-License-Identifier: Apache-2.0
"""The report of `pumice stress --subject`: results for programs, and a page for the maintainer of the subject."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from pumice.core.messages.events import FaultEvent, FaultStruck, Mutation
from pumice.core.objects.metadata import section
from pumice.executors import waited
from pumice.proof.storm.report import line_of
from pumice.proof.storm.script.events import Event
from pumice.proof.strangers.history import read_records
from pumice.proof.strangers.judges.evictions import DRIVER
from pumice.proof.strangers.judges.panel import promise_of
from pumice.proof.strangers.reducing import ReducedStorm
from pumice.proof.strangers.script import StrangerScript, is_fault
from pumice.results import Result
from pumice.storage import codec
from pumice.storage.journal import API
from pumice.storage.records import read_as
from pumice.yaml_text import dump_yaml

MOST_LINES: Final = 60
"""Lines of the story that a report tells."""
BINDER: Final = "bind-worker"
"""Names in the journal for the writer of a bind."""


class SubjectFinding(msgspec.Struct, kw_only=True):
    """A broken invariant. `promise`: the document that promises it; `moment`: seconds since the faults began, in
    lockstep the number of the moment. `seeds`: all that broke it, of which `seed` was cut down to `event_list`; this
    broke the invariant in `shown` of `tries` runs. Files are null when they could not be written: `file_error`.
    """

    seed: int
    seeds: list[int]
    invariant: str
    promise: str
    message: str
    moment: float
    tries: int
    shown: int
    event_list: list[Event]
    events_file: str | None
    journal_file: str | None
    report_file: str | None
    file_error: str | None
    command: str | None


class SubjectsResult(Result, kw_only=True, tag="stress/1"):
    """Result of storms for programs of others. `judges`: the profile of what they promise; `seeds`: how many were run,
    `first_seed_left`: the first that was not, because of Ctrl-C; `changes`: of the API; `faults_injected`: by kind.
    `restart_s`: the longest restart of a subject, null without one; `storm_s`: the median of a storm.
    """

    subjects: list[str]
    judges: str
    seeds: int
    first_seed_left: int | None
    changes: int
    seeds_per_minute: float
    seconds: float
    storm_s: float
    restart_s: float | None
    faults_injected: dict[str, int]
    violations: list[SubjectFinding]


def command_of(path: Path, subjects: list[str], flags: list[str]) -> str:
    """Return the command that runs a written storm again."""
    words = [word for subject in subjects for word in ("--subject", subject)]
    return shlex.join(["pumice", "stress", *words, *flags, "--events", str(path)])


def page(found: ReducedStorm, subjects: list[str], command: str, name: Path, journal: Path) -> str:
    """Return the report of a violation in Markdown, which calls the journal by a name. In lockstep the same storm gives
    the same text.
    """
    script = found.script
    shown = next(each for each in _broken(found) if each.invariant == script.invariant)
    unit = "moment" if script.lockstep else "second"
    lines = [
        f"# {script.invariant}: {shown.words}",
        "",
        f"- Subject: {', '.join(f'`{subject}`' for subject in subjects)}",
        f"- Promised by: {promise_of(script.invariant)}",
        f"- Seen at {unit} {shown.moment:g}, in {found.shown} of {found.tries} runs of the input below",
        f"- Seed: {script.seed}",
        f"- Again: `{command}`",
        f"- Journal of a run: `pumice journal {name} --about OBJECT`",
        "",
        "## Input",
        "",
        *(f"- {line_of(event)}" for event in script.events if not is_fault(event)),
        "",
        "## Faults",
        "",
        *(_rules(script) or ["None: the violation needs no fault."]),
        "",
        "## What happened to the objects named above",
        "",
        *(f"    {line}" for line in story(journal, shown.words)),
    ]
    return "\n".join(lines) + "\n"


def _broken(found: ReducedStorm) -> Iterator[Any]:
    assert found.outcome is not None
    yield from found.outcome.broken


def _rules(script: StrangerScript) -> list[str]:
    rules = [event.details for event in script.events if is_fault(event)]
    return ["```yaml", *dump_yaml({"rules": rules}).splitlines(), "```"] if rules else []


def story(journal: Path, words: str) -> list[str]:
    """Return what clients did to the objects that words name, and the faults that struck them, in the order of the
    journal. Kubelets and controllers of the served cluster are left out: their order follows from no seed.
    """
    named = set(re.findall(r"[\w.-]+", words))
    lines = list[str]()
    for stored in waited(read_records, journal):
        if stored.kind == API:
            line = _change(read_as(stored, Mutation), named)
        else:
            fault = read_as(stored, FaultEvent)
            line = _fault(fault, named) if isinstance(fault, FaultStruck) else ""
        if line:
            lines.append(line)
    left = len(lines) - MOST_LINES
    return lines if left <= 0 else [f"({left} earlier lines are left out)", *lines[-MOST_LINES:]]


def _is_about(name: str, named: set[str]) -> bool:
    return name in named or name.rpartition("-")[0] in named


def _change(mutation: Mutation, named: set[str]) -> str:
    obj = codec.unpack(mutation.blob)
    spec, kind, name = section(obj, "spec"), mutation.kind, mutation.name
    by = "the storm" if mutation.user == DRIVER else mutation.user
    if kind not in ("Pod", "PodGroup", "Node", "Job", "Queue") or not _is_about(name, named):
        return ""
    if mutation.user == BINDER:
        return f"Pod {name} is bound to {spec.get('nodeName')}"
    if mutation.user != DRIVER:
        return ""
    more = f", minMember {spec['minMember']}" if "minMember" in spec else ""
    more += f", on {spec['nodeName']}" if spec.get("nodeName") else ""
    more += ", cordoned" if kind == "Node" and spec.get("unschedulable") else ""
    return f"{kind} {name} {mutation.type} by {by}{more}"


def _fault(fault: FaultStruck, named: set[str]) -> str:
    if fault.name and not _is_about(fault.name, named):
        return ""
    what = "/".join(filter(None, (fault.kind, fault.name, fault.subresource)))
    return f"fault {fault.fault} ({fault.rule}) strikes {fault.verb} {what} of {fault.client}, #{fault.nth}"
