# SPDX-License-Identifier: Apache-2.0
"""`pumice gate` shows the jobs that a change of a cluster's policy helps or harms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from glob import glob
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Annotated

import typer

from pumice.cli.exits import Exit, UsageError
from pumice.cli.options import Dask, PluginsDir, Workers
from pumice.cli.tables.gate import show, show_mutants
from pumice.cli.terminal import Terminal, speaking
from pumice.config.durations import duration_s
from pumice.config.input_file import demand_output, note_inputs
from pumice.errors import InputError
from pumice.executors import Executors, executors
from pumice.plugins.loader import install_plugins
from pumice.questions.gate.cases import read_case
from pumice.questions.gate.explained import GateReport, explained
from pumice.questions.gate.first_policy import first_policy
from pumice.questions.gate.gate import found_by_reading, lived, verdict
from pumice.questions.gate.mutants import mutants, mutated
from pumice.questions.gate.policy import IDLE, GatePolicy, Workload, read_policy
from pumice.questions.gate.reduce import WORK_LIMIT
from pumice.questions.gate.revisions import folder_of
from pumice.questions.gate.runner import KeptRuns, Runner
from pumice.questions.gate.sides import PolicySides, Side, files_of, read_side
from pumice.questions.gate.workloads import Trial, demand_objects, late_jobs, read_workload
from pumice.questions.gate.written import junit, markdown
from pumice.questions.oneshot.left_out import overlooked
from pumice.questions.sweep.one_run import placed

File = Annotated[
    Path,
    typer.Argument(
        metavar="POLICY", help="Expectations as YAML, which the reference describes (Gate). --init writes one."
    ),
]
Base = Annotated[
    str | None,
    typer.Option(
        "--base",
        metavar="REF|PATH",
        help="The policy to compare with: a git revision or a folder. Default: as in POLICY.",
    ),
]
Head = Annotated[
    str | None,
    typer.Option("--head", metavar="REF|PATH", help="The policy to judge. Default: as in POLICY, as it is on disk."),
]
Results = Annotated[
    Path | None,
    typer.Option("--results", metavar="FOLDER", help="Runs are kept there by content. Default: POLICY.results."),
]
Junit = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write the verdict as JUnit XML too.")]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="Write it as Markdown for a pull request too.")
]
Reduce = Annotated[
    int,
    typer.Option("--reduce", metavar="WORK", min=0, help="Cycles to spend on cutting a failure down; 0: none."),
]
KeepIn = Annotated[
    Path | None,
    typer.Option("--keep", metavar="FOLDER", help="Keep each failure there: a golden case and two journals."),
]
Mutate = Annotated[
    bool, typer.Option("--mutate", help="Try standard bad changes to head; say which of them nothing notices.")
]
Init = Annotated[
    list[str] | None,
    typer.Option("--init", metavar="WORKLOAD", help="Write a first policy file from a journal, trace or manifests."),
]
Until = Annotated[str, typer.Option("--until", metavar="TIME", help="With --init: the horizon, a duration or idle.")]


@speaking
def gate(
    file: File,
    workers: Workers,
    base: Base = None,
    head: Head = None,
    results: Results = None,
    junit_file: Junit = None,
    markdown_file: Markdown = None,
    reduce: Reduce = int(WORK_LIMIT),
    keep: KeepIn = None,
    mutate: Mutate = False,
    init: Init = None,
    until: Until = IDLE,
    dask: Dask = None,
    plugins_dir: PluginsDir = None,
    *,
    terminal: Terminal,
) -> int:
    """Judge a change. Exit code 0: it passes; 1: an expectation that holds under base fails under head; 2: the input
    cannot be used.
    """
    install_plugins(plugins_dir)
    pool = None if workers == 1 and dask is None else executors(workers, dask)
    with TemporaryDirectory() as space:
        if init:
            return _init(file, init, until, base or head, results, pool, plugins_dir, Path(space), terminal)
        note_inputs(file)
        policy = read_policy(file)
        _demand_outputs((junit_file, markdown_file), keep, mutate=mutate)
        runner = Runner(_kept(results, file), pool, str(plugins_dir or ""))
        sides = _sides(policy, base, head, Path(space))
        trials = _trials(policy)
        late = [late_jobs(trial.workload, trial.objects) for trial in trials]
        missed = dict.fromkeys(said for trial in trials for said in overlooked(trial.objects, stock=False))
        for line in (*sides.base.skipped, *sides.head.skipped, *filter(None, late), *missed):
            terminal.warn(line)
        if mutate:
            return _mutate(trials, sides.head, policy, runner, terminal)
        report = _judge(trials, sides, policy, runner, terminal, reduce, keep)
    if junit_file is not None:
        junit_file.write_text(junit(report, policy), "utf-8")
    if markdown_file is not None:
        markdown_file.write_text(markdown(report, policy), "utf-8")
    terminal.emit(report, lambda console: show(console, report))
    return Exit.DONE if report.passes else Exit.DIFFERS


def _demand_outputs(files: Sequence[Path | None], keep: Path | None, *, mutate: bool) -> None:
    """Check that the requested outputs can be written, before any run. Raises ConfigError."""
    if mutate and (keep is not None or any(files)):
        raise UsageError("--mutate judges many changes: it goes without --junit, --markdown and --keep")
    for option, output in zip(("--junit", "--markdown"), files, strict=True):
        if output is not None:
            _demand_writable(output, option)
    if keep is not None:
        demand_folder(keep, "--keep")


def _demand_writable(output: Path, option: str) -> None:
    """Check that a file can be written to, before any run. Raises ConfigError."""
    try:
        demand_output(output)
        TemporaryFile(dir=output.parent).close()
        if output.exists():
            output.open("ab").close()
    except OSError as error:
        raise UsageError(f"{output}: cannot be written: {error.strerror}; name another file", path=option) from error


def _kept(results: Path | None, file: Path) -> KeptRuns:
    folder = results or file.with_suffix(".results")
    demand_folder(folder, "--results")
    return KeptRuns(folder)


def demand_folder(folder: Path, option: str) -> None:
    """Make a folder that files can be written to. Raises UsageError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror}; name another folder", path=option) from error


def _sides(policy: GatePolicy, base: str | None, head: str | None, space: Path) -> PolicySides:
    """Read both policies. Raises UsageError, InputError."""
    said = base or policy.base
    if not said:
        raise UsageError("which policy to compare with is not said: name it with --base, or `base` in the file")
    named = head or policy.head or policy.policy
    if not named:
        raise UsageError("which policy to judge is not said: name it with --head, or `head` or `policy` in the file")
    before, after = (_side(each, policy, space) for each in (said, named))
    return PolicySides(before, replace(after, renamed=policy.renamed))


def _side(said: str, policy: GatePolicy, space: Path) -> Side:
    folder, shown = folder_of(said, policy.policy, policy.folder, space)
    note_inputs(*files_of(folder))
    return read_side(said, folder, shown)


def _trials(policy: GatePolicy) -> list[Trial]:
    trials = list[Trial]()
    for workload in policy.workloads:
        objects = read_workload(workload, policy.folder)
        demand_objects(objects, workload.name)
        trials.append(Trial(workload, objects, policy.expect))
    for path in (each for said in policy.cases for each in _cases(said, policy.folder)):
        case = read_case(path)
        trials.append(Trial(case.workload, case.objects, case.expect, is_case=True))
    names = [trial.name for trial in trials]
    for number, name in enumerate(names):
        if name in names[:number]:
            trials[number] = replace(
                trials[number], workload=replace(trials[number].workload, name=f"{name} ({number + 1})")
            )
    return trials


def _cases(said: str, folder: Path) -> list[Path]:
    """Return the files of golden cases. Raises InputError where there are none."""
    found = sorted(Path(each) for each in glob(str(folder / said), recursive=True))  # noqa: PTH207 (absolute ones too)
    if not found:
        raise InputError("there is no such golden case", source=str(folder / said))
    return found


def _judge(
    trials: Sequence[Trial],
    sides: PolicySides,
    policy: GatePolicy,
    runner: Runner,
    terminal: Terminal,
    reduce: int,
    keep: Path | None,
) -> GateReport:
    read = found_by_reading(trials, sides)
    runs = sum(2 * (1 if trial.is_case else policy.noise.draws) for trial in trials)
    with terminal.progress("runs", runs) as advance:
        pairs = lived(trials, sides, policy, runner, lambda: advance(1))
    result = verdict(sides, policy, read, trials, pairs)
    return GateReport.of(result, list(explained(result, trials, pairs, sides, policy, reduce, keep, runner)))


def _mutate(trials: Sequence[Trial], head: Side, policy: GatePolicy, runner: Runner, terminal: Terminal) -> int:
    with terminal.progress("mutants", len(mutants(head))) as advance:
        found = mutated(trials, head, policy, runner, lambda: advance(1))
    terminal.emit(found, lambda console: show_mutants(console, found))
    return Exit.DONE


def _init(
    file: Path,
    inputs: Sequence[str],
    until: str,
    side: str | None,
    results: Path | None,
    pool: Executors | None,
    plugins_dir: Path | None,
    space: Path,
    terminal: Terminal,
) -> int:
    """Write a first policy file."""
    if file.exists():
        raise UsageError("there is a file already; name one that is to be made", path=str(file))
    if side is None:
        raise UsageError("--init needs the cluster's policy: name its folder with --head", path="--init")
    seconds = None if until == IDLE else duration_s(until)
    if until != IDLE and (seconds is None or seconds <= 0):
        raise UsageError(f"expected a duration such as 24h, or idle; was {until!r}", path="--until")
    demand_output(file)
    folder, shown = folder_of(side, "", Path(), space)
    inside = [_beside(placed(each, Path.cwd()), file) for each in inputs]
    workload = Workload(Path(inputs[0].partition(":")[2] or inputs[0]).stem, tuple(inside), until_s=seconds)
    trial = Trial(workload, read_workload(workload, file.parent), ())
    demand_objects(trial.objects, workload.name)
    if late := late_jobs(workload, trial.objects):
        terminal.warn(late)
    runner = Runner(_kept(results, file), pool, str(plugins_dir or ""))
    policy = _beside(str(folder.resolve()), file)
    text, chosen = first_policy(inside, policy, read_side(side, folder, shown), trial, runner)
    file.write_text(text, "utf-8")
    for line in chosen:
        terminal.say(f"chosen: {line}")
    terminal.say(f"{file} is written: `pumice gate {file} --base REF` judges a change of {side}")
    return Exit.DONE


def _beside(said: str, file: Path) -> str:
    """Return a text with absolute paths below the folder of a file as the file names them: relative to that folder."""
    return said.replace(f"{file.parent.resolve()}/", "")
