"""A leaderboard of policies on public traces, by one command: figures with intervals over draws, and their cost.

    python leaderboard.py --traces FOLDER --seeds 10 --keep board.results -o board.md

`board.yaml` says which policies and which traces; FOLDER has `openb/`, `swf/`, `philly_gavel/`, `gavel/` as published
(docs/reference/traces.md). Missing traces are named and left out. The tables are written anew after each seed, and
with `--keep` nothing runs twice: end it when you like, and go on later. On openb pods are placed one after the other
while 1.3 times all cards are asked for, as in "Beware of Fragmentation"; each seed shuffles and repeats the pods anew
(the authors' own orders are in examples/fgd). Of other traces each seed is another stretch of so many jobs, on virtual
time; where a trace is shorter than that, jobs come up to a minute sooner or later instead. Seeds begin at 1001: neither
the authors nor a search here has seen these.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import msgspec
import typer
import yaml

import pumice
from pumice.config.durations import duration_s
from pumice.load.openb import NODE_COLUMNS, POD_COLUMNS, OpenbRow, rows_of
from pumice.load.openb_cards import card_node, card_pod, class_of, typical_pods
from pumice.questions.evaluation.evaluate import Interval

HERE = Path(__file__).resolve().parent
BOARD = HERE / "board.yaml"
TARGET = 1.3
FIRST_SEED = 1001
ARRIVAL = "pumice.dev/arrival"
NEARLY_S = 60.0


# --- What board.yaml says


class BoardPolicy(msgspec.Struct, forbid_unknown_fields=True):
    """A policy; `plugin` stands for PLUGIN in its configuration, `typical`: FGD is told the classes of the trace."""

    config: str = ""
    actions: str = ""
    arguments: dict[str, Any] = {}
    modules: list[str] = []
    plugin: str = ""
    typical: bool = False

    def policy(self, name: str, classes: Mapping[Any, int]) -> pumice.Policy:
        """Return it as evaluations take it."""
        text = "" if not self.config else (HERE / self.config).read_text("utf-8").replace("PLUGIN", self.plugin)
        known = {"fgd.fgd.typicalPods": typical_pods(dict(classes))} if self.typical else {}
        made = pumice.Policy(text, self.actions, {**self.arguments, **known}, name=name)
        return made.with_modules(*(HERE / module for module in self.modules))


class Generated(msgspec.Struct, forbid_unknown_fields=True):
    """A cluster and its load: weights by queue, jobs an hour in the mean of a day."""

    nodes: int
    cpu: int
    gpu: int
    queues: dict[str, int]
    jobs_per_hour: float


class Board(msgspec.Struct, forbid_unknown_fields=True):
    """A trace, or several `variants` of one, with the policies that are compared on it."""

    name: str
    objectives: list[str]
    policies: list[str]
    nodes: str = ""
    pods: str = ""
    variants: list[str] = []
    input: str = ""
    generate: Generated | None = None


class Boards(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file."""

    policies: dict[str, BoardPolicy]
    boards: list[Board]


# --- openb, placement alone


def openb(nodes: Path, pods: Path) -> tuple[list[OpenbRow], list[OpenbRow]]:
    """Return the rows of nodes and of a trace's pods."""
    return list(rows_of(nodes, NODE_COLUMNS)), list(rows_of(pods, POD_COLUMNS))


def drawn(nodes: Sequence[OpenbRow], pods: Sequence[OpenbRow], seed: int) -> list[dict[str, Any]]:
    """Return nodes, and pods in a random order, repeated at random until `TARGET` of all cards is asked for."""
    chance, milli = random.Random(seed), sum(1000 * row.number("gpu") for row in nodes)
    order = list(pods)
    chance.shuffle(order)
    asked = sum(class_of(row).milli * class_of(row).cards for row in order)
    while asked < TARGET * milli:
        order.append(chance.choice(pods))
        asked += class_of(order[-1]).milli * class_of(order[-1]).cards
    places = list(range(len(nodes)))
    chance.shuffle(places)  # names decide equal scores
    return [
        *(card_node(nodes[row], f"n{place:05}") for place, row in enumerate(places)),
        *(card_pod(row, f"p{place:05}", place) for place, row in enumerate(order)),
    ]


# --- On virtual time


def stretch(objects: Sequence[dict[str, Any]], jobs: int, seed: int) -> list[dict[str, Any]]:
    """Return the cluster and another stretch of so many jobs for each seed, which begins at 0."""
    work = sorted((obj for obj in objects if obj["kind"] == "Job"), key=_arrival)
    others = [obj for obj in objects if obj["kind"] != "Job"]
    count = len(work) // jobs
    if count > 1:
        part = work[seed % count * jobs :][:jobs]
        first = _arrival(part[0])
        return [*others, *(_arriving(job, _arrival(job) - first) for job in part)]
    chance = random.Random(seed)
    moved = [_arriving(job, max(0.0, _arrival(job) + chance.uniform(-NEARLY_S, NEARLY_S))) for job in work[:jobs]]
    return [*others, *sorted(moved, key=_arrival)]


def _arrival(job: dict[str, Any]) -> float:
    return duration_s(job["metadata"]["annotations"][ARRIVAL]) or 0.0


def _arriving(job: dict[str, Any], at: float) -> dict[str, Any]:
    metadata = job["metadata"]
    return {**job, "metadata": {**metadata, "annotations": {**metadata["annotations"], ARRIVAL: f"{at:.3f}s"}}}


def production(asked: Generated, jobs: int, seed: int) -> list[dict[str, Any]]:
    """Return a cluster and jobs like those of a company: more by day than by night (time begins at six in the morning),
    most of them short and small, some gangs of many pods, a few that run for hours; queues are used in proportion to
    their weights.
    """
    chance = random.Random(seed)
    queues = [pumice.queue(name, weight=weight) for name, weight in asked.queues.items()]
    found = [*pumice.nodes(asked.nodes, cpu=asked.cpu, gpu=asked.gpu, memory="512Gi"), *queues]
    most, at = 2.0 * asked.jobs_per_hour / 3600.0, 0.0
    for number in range(jobs):
        while True:  # thinned: of a Poisson process at its peak, so much as the hour asks for
            at += chance.expovariate(most)
            if chance.random() < 0.5 + 0.5 * math.sin(2 * math.pi * at / 86_400.0):
                break
        pods = chance.choices((1, 2, 4, 8, 16), (60, 15, 12, 8, 5))[0]
        cards = chance.choices((0, 1, 2, 4, 8), (15, 45, 15, 15, 10))[0]
        runs_s = min(36_000.0, max(20.0, chance.lognormvariate(6.5, 1.4)))
        found.append(
            pumice.gang(
                f"job-{number}",
                pods,
                cpu=max(2, 6 * cards),
                gpu=cards,
                queue=chance.choices([*asked.queues], [*asked.queues.values()])[0],
                duration=f"{runs_s:.0f}s",
                arrival=f"{at:.1f}s",
            )
        )
    return found


# --- The board


class Competition(msgspec.Struct):
    """One table: a workload, the policies on it by name, and the objectives. `board`: its name without the variant."""

    board: str
    name: str
    workload: pumice.Workload
    policies: list[tuple[str, pumice.Policy]]
    objectives: list[str]


def competitions(board: Boards, traces: Path, jobs: int, say: Callable[[str], None]) -> Iterator[Competition]:
    """Yield a table for every trace that is there, and every variant."""
    for each in board.boards:
        for variant in each.variants or [""]:
            name = f"{each.name} {variant}".strip()
            found = workload_of(each, variant, traces, jobs)
            if found is None:
                say(f"{name}: left out, its files are not in {traces}")
                continue
            workload, classes = found
            policies = [(one, board.policies[one].policy(one, classes)) for one in each.policies]
            yield Competition(each.name, name, workload, policies, each.objectives)


def workload_of(board: Board, variant: str, traces: Path, jobs: int) -> tuple[pumice.Workload, Counter[Any]] | None:
    """Return the workload and, on openb, the classes of its pods; None where files are missing."""
    if board.generate is not None:
        return pumice.Workload(board.name, partial(production, board.generate, jobs)), Counter()
    if board.input:
        form, _, rest = board.input.partition(":")
        file, *options = rest.split(",")
        if not (traces / file).is_file():
            return None
        objects = pumice.read(",".join([f"{form}:{traces / file}", *options]))
        return pumice.Workload(board.name, partial(stretch, objects, jobs)), Counter()
    pods = traces / board.pods.format(variant=variant)
    there = [path for path in (pods, pods.with_name(f"{pods.name}.gz")) if path.is_file()]
    if not there or not (traces / board.nodes).is_file():
        return None
    rows = openb(traces / board.nodes, there[0])
    return pumice.Workload(variant, partial(drawn, *rows), placement=True), Counter(map(class_of, rows[1]))


class Row(msgspec.Struct):
    """What a policy reached so far: values of each objective by seed, processor seconds, and what went wrong."""

    values: list[list[float]] = []
    cpu_s: float = 0.0
    problem: str = ""

    def add(self, found: pumice.Evaluation) -> None:
        """Take the evaluation of further seeds."""
        self.cpu_s += found.cpu_s
        if found.figures is None:
            self.problem = "; ".join(found.problems)[:100]
            return
        more = [found.figures[text.split()[1]].values for text in found.objectives]
        self.values = [[*old, *new] for old, new in zip(self.values, more, strict=True)] if self.values else more

    def mean(self) -> float:
        """Return the mean of the first objective; not a number where the policy failed."""
        return fmean(self.values[0]) if self.values and not self.problem else math.nan

    def line(self, name: str) -> str:
        """Return the row of the table: means with the intervals of 19 cases of 20."""
        if self.problem:
            return f"| {name} | {self.problem} |"
        figures = [Interval.of(values) for values in self.values]
        cells = [
            f"{each.mean:.4g}" + ("" if each.low is None else f" ({each.low:.4g}–{each.high:.4g})") for each in figures
        ]
        return f"| {name} | {' | '.join(cells)} | {self.cpu_s:.1f} |"


Rows = dict[str, Row]


def tables(
    match: Competition, seeds: Sequence[int], keep: Path | None, workers: int, say: Callable[[str], None]
) -> Iterator[tuple[str, Rows]]:
    """Yield the table after one seed, two, and so on, with its rows: all policies are asked about a seed before the
    next one, so that rows can be compared whenever a run ends, and a draw is read once for all of them.
    """
    rows = {name: Row() for name, _ in match.policies}
    for first in range(0, len(seeds), workers):
        some = seeds[first : first + workers]
        evaluate = pumice.Evaluator(match.workload, match.objectives, some, keep=keep, workers=workers)
        for name, policy in match.policies:
            if not rows[name].problem:
                rows[name].add(evaluate(policy))
                say(f"{match.name}, seed {some[-1]}: {name}")
        evaluate.close()
        yield table(match, rows, seeds[: first + len(some)]), rows


def summary(board: str, objective: str, variants: Mapping[str, Rows]) -> str:
    """Return the means of one objective on all variants of a board: a row a variant, a column a policy, the best on
    average first.
    """
    best_of = max if objective.startswith("maximise") else min
    means = {variant: {name: row.mean() for name, row in rows.items()} for variant, rows in variants.items()}
    mean = {name: fmean(row[name] for row in means.values()) for name in next(iter(means.values()))}
    names = sorted(mean, key=mean.__getitem__, reverse=best_of is max)
    lines = [f"| variant | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for variant, row in means.items():
        best = best_of(value for value in row.values() if not math.isnan(value))
        cells = [f"**{row[name]:.4g}**" if row[name] == best else f"{row[name]:.4g}" for name in names]
        lines.append(f"| {variant} | {' | '.join(cells)} |")
    last = f"| mean | {' | '.join(f'{mean[name]:.4g}' for name in names)} |"
    return "\n".join([f"## {board}, all variants: {objective}", "", *lines, last, ""])


def table(match: Competition, rows: Mapping[str, Row], seeds: Sequence[int]) -> str:
    """Return the table: a row a policy, the best by the first objective first."""
    sign = -1.0 if match.objectives[0].startswith("maximise") else 1.0
    order = sorted(rows, key=lambda name: math.inf if rows[name].problem else sign * fmean(rows[name].values[0]))
    header = ["policy", *match.objectives, "CPU s"]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|", *(rows[name].line(name) for name in order)]
    return "\n".join([f"## {match.name}", "", f"Seeds {seeds[0]} to {seeds[-1]}.", "", *lines, ""])


def write_draws(match: Competition, seeds: Sequence[int], folder: Path) -> None:
    """Write what seeds draw, each as a file of JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        said = {"apiVersion": "v1", "kind": "List", "items": [*match.workload.drawn(seed)]}
        (folder / f"{match.workload.name}-{seed}.json").write_bytes(msgspec.json.encode(said))


def main(
    traces: Annotated[Path, typer.Option(help="The folder with openb/, swf/, philly_gavel/, gavel/.")],
    output: Annotated[Path, typer.Option("-o", "--output")] = Path("board.md"),
    file: Annotated[Path, typer.Option("--board", help="Policies and traces.")] = BOARD,
    only: Annotated[str, typer.Option(help="Tables or boards, such as 'openb default,nasa'; all without.")] = "",
    policies: Annotated[str, typer.Option(help="Policies of these tables, joined by commas; all without.")] = "",
    seeds: Annotated[int, typer.Option(min=1, help="Held-out draws.")] = 10,
    jobs: Annotated[int, typer.Option(min=1, help="Jobs of a stretch.")] = 300,
    keep: Annotated[Path | None, typer.Option(help="Keep figures there, by content.")] = None,
    workers: Annotated[int, typer.Option(min=1)] = 1,
    draws: Annotated[
        Path | None, typer.Option(help="Write the draws of seeds 1, 2, … there, for `pumice tune`.")
    ] = None,
) -> None:
    """Evaluate every policy on every trace, and write the tables."""
    wanted, named = ([part.strip() for part in text.split(",") if part.strip()] for text in (only, policies))
    held_out = range(FIRST_SEED, FIRST_SEED + seeds)
    about = f"Stretches of {jobs} jobs. Means, with the interval of 19 cases of 20; processor seconds of all runs."
    lines = ["# Leaderboard", "", about, ""]

    def say(text: str) -> None:
        typer.echo(text, err=True)

    board = msgspec.convert(yaml.safe_load(file.read_text("utf-8")), Boards)
    for each in board.boards:
        if each.name not in wanted:  # the name of a board alone means all of its variants
            each.variants = [one for one in each.variants if not wanted or f"{each.name} {one}" in wanted]
        each.policies = [one for one in each.policies if not named or one in named]
    board.boards = [each for each in board.boards if each.variants or each.name in wanted or not (wanted or each.nodes)]
    variants: dict[tuple[str, str], dict[str, Rows]] = {}
    for match in competitions(board, traces, jobs, say):
        if draws is not None:
            write_draws(match, range(1, seeds + 1), draws)
            continue
        done = len(lines)
        for found, rows in tables(match, held_out, keep, workers, say):
            lines[done:] = [found]
            variants.setdefault((match.board, match.objectives[0]), {})[match.name] = rows
            together = [summary(*key, each) for key, each in variants.items() if len(each) > 1]
            output.write_text("\n".join([*lines, *together]), "utf-8")


if __name__ == "__main__":
    typer.run(main)
