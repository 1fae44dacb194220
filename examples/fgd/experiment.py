"""The experiment of "Beware of Fragmentation" (USENIX ATC 2023) as a sweep: the pods of a trace come one at a time, and
of the GPUs that they ask for so many are given.

    python experiment.py --traces FOLDER --orders FOLDER --policies 06-FGD,05-BestFit --seeds 42,43 -o runs.csv

`--traces`: openb_node_list_gpu_node.csv and openb_pod_list_TRACE.csv, plain or gzipped. `--orders`: TRACE.txt, for each
seed a line `openb_pod_list_TRACE SEED pods ROW ROW …` and a line `… nodes ROW ROW …`, rows counted from 0. A policy is
a configuration beside this file; `NAME+gangs` hands pods of several GPUs in as gangs of pods with one GPU each. The
table has the columns of the authors' analysis_allo_discrete.csv. What has been run before is not run again.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pumice.cli.exits import Exit, UsageError, guarded
from pumice.cli.options import LogLevel, Quiet, Workers
from pumice.cli.terminal import Terminal
from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import run_cycle
from pumice.core.session.carry import Carry, CycleClock, SessionOptions
from pumice.core.state.view import View
from pumice.core.state.volumes import volume_rules
from pumice.errors import InputError
from pumice.executors import executors
from pumice.load.openb import NODE_COLUMNS, POD_COLUMNS, QUEUE, START, OpenbRow, rows_of
from pumice.load.openb_cards import card_node, card_pod, class_of, typical_pods
from pumice.load.source import read_text
from pumice.questions.sweep.one_run import configuration
from pumice.questions.sweep.spec import SweepSpec
from pumice.questions.sweep.sweep import sweep

HERE: Final = Path(__file__).resolve().parent
LIST: Final = "openb_pod_list_"
NODES: Final = "openb_node_list_gpu_node.csv"
GANGS: Final = "+gangs"
TUNE: Final = 1.3
"""Demand that arrives, as a part of all GPUs."""
CURVE: Final = range(131)
COLUMNS: Final = ("workload", "sc_policy", "tune", "seed", "total_gpus", *map(str, CURVE))

Object = dict[str, Any]


@guarded
def main(
    traces: Annotated[Path, typer.Option(help="The folder with nodes and pods.")],
    orders: Annotated[Path, typer.Option(help="The folder with the orders of arrival.")],
    workers: Workers,
    policies: Annotated[str, typer.Option(help="Configurations beside this file.")] = ",".join(
        path.stem for path in sorted(HERE.glob("0*.conf"))
    ),
    names: Annotated[str, typer.Option("--names", help="Names of traces. Default: all that have an order.")] = "",
    seeds: Annotated[str, typer.Option(help="Default: all that the orders have.")] = "",
    output: Annotated[Path, typer.Option("-o", "--output", metavar="TABLE")] = Path("fgd.csv"),
    results: Annotated[Path | None, typer.Option(help="One file a run. Default: TABLE.results.")] = None,
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Work on that Dask cluster.")] = None,
    quiet: Quiet = False,
) -> int:
    """Run what has not been run yet, and write the table."""
    spec = spec_of(traces, orders, _parts(policies), _parts(names), _seeds(seeds))
    terminal = Terminal(None, quiet, LogLevel.WARNING)
    with terminal.progress("runs", len(spec.runs)) as advance:
        swept = sweep(
            spec, results or output.with_suffix(".results"), executors(workers, dask), lambda: advance(1), one_run
        )
    with output.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        table.writeheader()
        table.writerows(swept.rows)
    terminal.say(f"{len(swept.rows)} runs, {swept.fresh} of them now, in {output}")
    return Exit.DONE


def _parts(said: str) -> list[str]:
    return [part for part in said.split(",") if part]


def _seeds(said: str) -> list[int]:
    try:
        return [int(seed) for seed in _parts(said)]
    except ValueError:
        raise UsageError(f"expected whole numbers joined by commas, was {said!r}", path="--seeds") from None


def spec_of(
    traces: Path, orders: Path, policies: Sequence[str], names: Sequence[str] = (), seeds: Sequence[int] = ()
) -> SweepSpec:
    """The runs in the order of the authors' table. Raises InputError for files that are not there."""
    known = sorted(path.name.split(".")[0] for path in orders.glob("*.txt*"))
    runs = [
        {
            "input": [str(each) for each in (*files, __file__)],
            "config": str(HERE / f"{policy.removesuffix(GANGS)}.conf"),
            "workload": f"{LIST}{name}",
            "sc_policy": policy,
            "tune": TUNE,
            "seed": seed,
        }
        for name in names or known
        for files in [(_file(traces, NODES), _file(traces, f"{LIST}{name}.csv"), _file(orders, f"{name}.txt"))]
        for policy in policies
        for seed in seeds or sorted(orders_of(files[-1]))
    ]
    return SweepSpec(HERE, tuple(runs), ("workload", "sc_policy", "tune", "seed"))


def _file(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path.resolve()
    raise InputError("no such file, plain or gzipped", source=str(folder / name))


def orders_of(path: Path) -> dict[int, dict[str, list[int]]]:
    """By seed, the rows of `pods` and of `nodes` in their order."""
    found: dict[int, dict[str, list[int]]] = defaultdict(dict)
    for line, text in enumerate(read_text(path).splitlines(), 1):
        try:
            _, seed, what, *rows = text.split()
            found[int(seed)][what] = [int(row) for row in rows]
        except ValueError as error:
            raise InputError("expected TRACE SEED pods|nodes ROW ROW …", source=str(path), line=line) from error
    return found


def one_run(run: dict[str, Any], folder: str) -> dict[str, Any]:
    """GPUs, and the curve of a run. All that a worker does."""
    nodes_file, pods_file, order_file = (Path(each) for each in run["input"][:3])
    order = orders_of(order_file).get(run["seed"], {})
    if order.keys() != {"pods", "nodes"}:
        raise InputError(f"expected lines for pods and nodes of seed {run['seed']}", source=str(order_file))
    parted = run["sc_policy"].endswith(GANGS)
    pods = [workers_of(row) if parted else [row] for row in rows_of(pods_file, POD_COLUMNS)]
    nodes = list(rows_of(nodes_file, NODE_COLUMNS))
    for what, rows in (("pods", pods), ("nodes", nodes)):
        if max(order[what], default=0) >= len(rows):
            found = max(order[what])
            raise InputError(f"expected rows below {len(rows)}, found {found}", source=str(order_file), path=what)
    text = configuration({**run, **_typical(run, pods)}, Path(folder))
    bound = placed(text, [nodes[row] for row in order["nodes"]], [pods[row] for row in order["pods"]])
    total = sum(row.number("gpu") for row in nodes)
    asked = [sum(pod.milli * pod.cards for pod in map(class_of, pods[row])) for row in order["pods"]]
    return {"total_gpus": total, **dict(zip(map(str, CURVE), curve(asked, bound, 1000 * total), strict=True))}


def _typical(run: dict[str, Any], pods: list[list[OpenbRow]]) -> dict[str, Any]:
    """What FGD has to know of the trace."""
    if "FGD" not in run["sc_policy"]:
        return {}
    return {"arguments.fgd.fgd.typicalPods": typical_pods(Counter(class_of(row) for gang in pods for row in gang))}


def workers_of(row: OpenbRow) -> list[OpenbRow]:
    """A pod of several GPUs as pods of one GPU each, which share its CPU and memory."""
    count = max(row.number("num_gpu"), 1)
    parts = {name: str(-(-row.number(name) // count)) for name in ("cpu_milli", "memory_mib")}
    one = {**row.row, **parts, "num_gpu": str(min(row.number("num_gpu"), 1))}
    return [OpenbRow(one, row.path, row.line)] * count


def placed(text: str, nodes: Sequence[OpenbRow], gangs: Sequence[Sequence[OpenbRow]]) -> list[bool]:
    """Which of the gangs find a place, one after the other, in one session of the scheduler."""
    config = parse_scheduler_config(text, source="experiment")
    view = View()
    for obj in (QUEUE, *(card_node(row, f"n{place:05}") for place, row in enumerate(nodes)), *_arriving(gangs)):
        view.apply("ADDED", obj)
    clock = CycleClock(1, START + len(gangs))
    result = run_cycle(view.snapshot(volume_rules(config)), config, clock, Carry(), SessionOptions(wordless=True))
    bound = Counter(bind.name.split("-")[0] for bind in result.binds)
    return [bound[f"p{place:05}"] == len(gang) for place, gang in enumerate(gangs)]


def _arriving(gangs: Sequence[Sequence[OpenbRow]]) -> Iterator[Object]:
    """Each gang with a group of its own, a second after the one before it."""
    for place, gang in enumerate(gangs):
        name = f"p{place:05}"
        for number, row in enumerate(gang):
            pod = card_pod(row, f"{name}-{number}", place)
            metadata = pod["metadata"]
            if not number:
                named = {"name": name, "namespace": metadata["namespace"]}
                yield {
                    "apiVersion": "scheduling.volcano.sh/v1beta1",
                    "kind": "PodGroup",
                    "metadata": {**named, "creationTimestamp": metadata["creationTimestamp"]},
                    "spec": {"minMember": len(gang), "queue": "default"},
                    "status": {"phase": "Inqueue"},
                }
            metadata["annotations"]["scheduling.k8s.io/group-name"] = name
            yield pod


def curve(asked: Sequence[int], bound: Sequence[bool], capacity: int) -> list[float | None]:
    """Allocated by arrived demand, in per cent of the capacity; `asked`: thousandths of GPUs by arrival. None: nothing
    arrived about there.
    """
    arrived = allocated = 0
    found: dict[int, list[float]] = defaultdict(list)
    for milli, fits in zip(asked, bound, strict=True):
        arrived += milli
        allocated += milli * fits
        found[round(100 * arrived / capacity)].append(round(100 * allocated / capacity, 2))
    near = [found.get(x) or [y for beside in (x - 1, x, x + 1) for y in found.get(beside, ())] for x in CURVE]
    return [round(sum(each) / len(each), 2) if each else None for each in near]


if __name__ == "__main__":
    typer.run(main)
