"""A leaderboard of policies on public traces, by one command: figures with intervals over draws, and their cost.

    python leaderboard.py --traces FOLDER --seeds 3 --keep board.results -o board.md

FOLDER has `openb/`, `swf/`, `philly_gavel/` as published (docs/reference/traces.md); what is not there is left out. On
openb pods are placed one after the other while 1.3 times all cards are asked for, as in "Beware of Fragmentation"; each
seed shuffles and repeats the pods anew (the authors' own orders are in examples/fgd). The other traces run on virtual
time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

import pumice
from pumice.core.devices.vgpu.settings import MEMORY
from pumice.load.openb import NODE_COLUMNS, POD_COLUMNS, OpenbRow, rows_of
from pumice.load.openb_cards import card_node, card_pod, class_of, typical_pods

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent
TARGET = 1.3
FIRST_SEED = 1001
"""Held out: neither the authors' seeds nor those of any search here."""
TIMED = ("minimise wait.mean", "minimise slowdown.mean", "maximise fairness", "minimise evictions", "maximise util.cpu")
CARDS = """\
actions: allocate
tiers:
- plugins:
  - name: gang
- plugins:
  - name: predicates
  - name: deviceshare
    arguments: {deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: binpack}
"""


# --- openb, placement alone


def openb(folder: Path, trace: str) -> tuple[list[OpenbRow], list[OpenbRow]]:
    """Return the rows of nodes and of a trace's pods."""
    pods = next(path for path in (folder / f"openb_pod_list_{trace}.csv{end}" for end in ("", ".gz")) if path.is_file())
    return list(rows_of(folder / "openb_node_list_gpu_node.csv", NODE_COLUMNS)), list(rows_of(pods, POD_COLUMNS))


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


def card_policies(pods: Sequence[OpenbRow]) -> Iterator[tuple[str, pumice.Policy]]:
    """Yield the policies of openb by name."""
    classes: dict[Any, int] = {}
    for row in pods:
        classes[class_of(row)] = classes.get(class_of(row), 0) + 1
    for path in sorted((EXAMPLES / "fgd").glob("*.conf")):
        name = path.stem.partition("-")[2] or path.stem
        policy = pumice.Policy.of(path)
        known = {"fgd.fgd.typicalPods": typical_pods(classes)} if name == "FGD" else {}
        yield name, pumice.Policy(policy.config, arguments=known, name=name, actions="allocate")
    found = pumice.Policy(f"{CARDS}  - name: alphaevolve\n    arguments: {{resource: {MEMORY}}}\n", name="alphaevolve")
    yield "alphaevolve", found.with_modules(HERE / "found.py")


# --- On virtual time


def timed_policies() -> Iterator[tuple[str, pumice.Policy]]:
    """Yield the policies of the other traces by name."""
    yield "volcano", pumice.Policy(name="volcano")
    for name in ("fcfs", "sjf", "easy"):
        yield (
            name,
            pumice.Policy.of(EXAMPLES / "policies" / f"{name}.conf").with_modules(EXAMPLES / "policies" / "batch.py"),
        )
    for name in ("drf", "proportion", "capacity"):
        yield name, pumice.Policy.of(EXAMPLES / "queue-study" / f"{name}.conf")


def timed(folder: Path, jobs: int) -> Iterator[pumice.Workload]:
    """Yield the first jobs of each trace that is there, denser than they came, so that jobs wait."""
    nasa, philly = folder / "swf" / "NASA-iPSC-1993-3.1-cln.swf.gz", folder / "philly_gavel" / "gavel_msr_seed0.csv.gz"
    found = (("nasa", nasa, f"swf:{nasa}", 0.5), ("philly", philly, f"philly:{philly},nodes=4x8", 0.05))
    for name, file, said, dense in found:
        if file.is_file():
            yield pumice.Workload.of_files(f"{said},jobs={jobs},arrivals={dense}", name=name)


# --- The board


def board(
    title: str,
    workloads: Sequence[pumice.Workload],
    objectives: Sequence[str],
    policies: Iterator[tuple[str, pumice.Policy]],
    seeds: Sequence[int],
    keep: Path | None,
    workers: int,
    say: Callable[[str], None],
) -> list[str]:
    """Return the lines of a table: a row a policy, the best by the first objective first."""
    evaluate = pumice.Evaluator(workloads, objectives, seeds, keep=keep, workers=workers)
    rows = list[tuple[float, str]]()
    for name, policy in policies:
        found = evaluate(policy)
        if found.figures is None:
            rows.append((float("inf"), f"| {name} | {'; '.join(found.problems)[:100]} |"))
            continue
        figures = [found.figures[text.split()[1]] for text in objectives]
        cells = [
            f"{each.mean:.4g}" + ("" if each.low is None else f" ({each.low:.4g}–{each.high:.4g})") for each in figures
        ]
        sign = -1.0 if objectives[0].startswith("maximise") else 1.0
        rows.append((sign * figures[0].mean, f"| {name} | {' | '.join(cells)} | {found.cpu_s:.1f} |"))
        say(f"{title}: {name}")
    header = ["policy", *objectives, "CPU s"]
    return [
        f"## {title}",
        "",
        f"| {' | '.join(header)} |",
        "|---" * len(header) + "|",
        *(row for _, row in sorted(rows)),
        "",
    ]


def main(
    traces: Annotated[Path, typer.Option(help="The folder with openb/, swf/, philly_gavel/.")],
    output: Annotated[Path, typer.Option("-o", "--output")] = Path("board.md"),
    names: Annotated[str, typer.Option(help="Traces of openb, joined by commas.")] = "default",
    seeds: Annotated[int, typer.Option(min=1, help="Held-out draws.")] = 10,
    jobs: Annotated[int, typer.Option(min=1, help="Jobs of the other traces.")] = 300,
    keep: Annotated[Path | None, typer.Option(help="Keep figures there, by content.")] = None,
    workers: Annotated[int, typer.Option(min=1)] = 1,
) -> None:
    """Evaluate every policy on every trace, and write the tables."""
    held_out, lines = range(FIRST_SEED, FIRST_SEED + seeds), ["# Leaderboard", ""]

    def say(text: str) -> None:
        typer.echo(text, err=True)

    for name in filter(None, names.split(",")):
        if (traces / "openb").is_dir():
            nodes, pods = openb(traces / "openb", name)
            workload = pumice.Workload(name, partial(drawn, nodes, pods), placement=True)
            measures = [f"maximise util.{MEMORY}", f"minimise frag.{MEMORY}", "minimise unstarted"]
            lines += board(f"openb {name}", [workload], measures, card_policies(pods), held_out, keep, workers, say)
    for each in timed(traces, jobs):
        lines += board(each.name, [each], TIMED, timed_policies(), range(seeds), keep, workers, say)
    output.write_text("\n".join(lines), "utf-8")


if __name__ == "__main__":
    typer.run(main)
