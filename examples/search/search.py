"""A search for a policy: a program proposes plugin code, `pumice.evaluate` judges it in a sandbox, the best stay.

    python search.py --rounds 20 --keep found.results

The proposer is a toy: it writes random formulas of what a node would have left, and changes the best ones. A proposer
of your own, with a model or without, takes its place: it returns a text from which Python source with a table `PLUGINS`
is made. What it proposes runs without files and network, and cannot take more than its bounds; whether the winner is
honest is read from its code. The search sees some draws; others have the last word, beside the policy to beat.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

import pumice

RESOURCE = "nvidia.com/gpu"
OBJECTIVE = f"maximise util.{RESOURCE}"
SEARCHED, HELD_OUT = range(1, 4), range(101, 106)
FEATURES = ("cpu_left", "gpu_left", "cpu_idle", "gpu_idle", "gpu_torn")
OPERATORS = ("+", "-", "*")
PLUGIN = '''"""Scores nodes by a formula of what the pod would leave, each as a part of the node's own."""
import numpy as np
from pumice.plugins import ColumnRule, Reads, Volatility

class Found:
    name = "found"
    reads = Reads()

    def __init__(self, arguments):
        pass

    def on_session_open(self, session):
        session.points.node_order.add(self.name, [self])

    def on_session_close(self, session):
        pass

    def prepare(self, session, task):
        nodes, asked = session.nodes, dict(task.template.items)
        names = session.dims.names
        cpu, gpu = names.index("cpu"), names.index("{resource}")
        whole_cpu = np.maximum(nodes.allocatable[cpu], 1.0)
        whole_gpu = np.maximum(nodes.allocatable[gpu], 1.0)

        def score(rows):
            cpu_idle, gpu_idle = nodes.idle[cpu][rows] / whole_cpu[rows], nodes.idle[gpu][rows] / whole_gpu[rows]
            cpu_left = cpu_idle - asked.get(cpu, 0.0) / whole_cpu[rows]
            gpu_left = gpu_idle - asked.get(gpu, 0.0) / whole_gpu[rows]
            gpu_torn = np.minimum(cpu_left, gpu_left) - gpu_left
            return np.zeros(len(cpu_idle)) + ({formula})

        return ColumnRule(score, Volatility.ROW)

PLUGINS = {{"found": Found}}
'''
CONFIG = """\
actions: allocate
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: found
"""
BASELINE = CONFIG.replace("found", "binpack")


@dataclass(frozen=True)
class Candidate:
    """A formula and its score."""

    formula: str
    score: float


Proposer = Callable[[random.Random, Sequence[Candidate]], str]


def formula(chance: random.Random, depth: int = 2) -> str:
    """Write a random formula."""
    if depth == 0 or chance.random() < 0.2:
        return chance.choice([*FEATURES, f"{chance.uniform(-2, 2):.2f}"])
    return f"({formula(chance, depth - 1)} {chance.choice(OPERATORS)} {formula(chance, depth - 1)})"


def toy(chance: random.Random, best: Sequence[Candidate]) -> str:
    """Propose a formula: a new one, or a good one with another term."""
    if not best or chance.random() < 0.3:
        return formula(chance)
    parent = chance.choice(best).formula
    return f"({parent} {chance.choice(OPERATORS)} {formula(chance, 1)})"


def policy_of(text: str) -> pumice.Policy:
    """Return the policy that scores by a formula."""
    return pumice.Policy(CONFIG, modules={"found": PLUGIN.format(resource=RESOURCE, formula=text)}, name=text)


def work(seed: int) -> list[dict[str, object]]:
    """Draw a small cluster and more pods than fit: some need much CPU for their cards, and some whole nodes."""
    chance = random.Random(seed)
    nodes = [
        node
        for number in range(24)
        for node in pumice.nodes(1, cpu=chance.choice((16, 32, 64)), gpu=chance.choice((4, 8)), name=f"n{number}")
    ]
    pods = [
        pumice.gang(f"p{number}", 1, cpu=chance.choice((1, 4, 8, 16)), gpu=chance.choice((0, 1, 1, 2, 4, 8)))
        for number in range(90)
    ]
    return [*nodes, *pods]


def search(
    rounds: int, keep: Path | None, proposer: Proposer = toy, seed: int = 0, workers: int = 1, survivors: int = 4
) -> list[Candidate]:
    """Return the best candidates of a search, the best first; one that fails or breaks its bounds is passed over."""
    workload = pumice.Workload("drawn", work, placement=True)
    judge = pumice.Evaluator(
        workload, OBJECTIVE, [*SEARCHED], keep=keep, workers=workers, sandbox=pumice.Sandbox(seconds=60, cpu_s=30)
    )
    chance, best = random.Random(seed), list[Candidate]()
    for _ in range(rounds):
        proposed = proposer(chance, best)
        found = judge(policy_of(proposed))
        if found.figures is not None:
            best = sorted({*best, Candidate(proposed, found.score)}, key=lambda each: (-each.score, len(each.formula)))
            best = best[:survivors]
    return best


def held_out(policy: pumice.Policy | str, keep: Path | None) -> pumice.Evaluation:
    """Evaluate a policy on draws that no search has seen."""
    return pumice.evaluate(policy, pumice.Workload("drawn", work, placement=True), OBJECTIVE, [*HELD_OUT], keep=keep)


def main(
    rounds: Annotated[int, typer.Option(min=1)] = 20,
    keep: Annotated[Path | None, typer.Option(help="Keep figures there, by content.")] = None,
    seed: int = 0,
    workers: Annotated[int, typer.Option(min=1)] = 1,
) -> None:
    """Search, and show the winner beside bin packing on draws that the search has not seen."""
    best = search(rounds, keep, seed=seed, workers=workers)
    typer.echo("\n".join(f"{each.score:.4f}  {each.formula}" for each in best))
    for name, policy in (("found", policy_of(best[0].formula)), ("binpack", pumice.Policy(BASELINE))):
        found = held_out(policy, keep)
        assert found.figures is not None
        figure = found.figures[f"util.{RESOURCE}"]
        typer.echo(f"held out: {name} {figure.mean:.4f} ({figure.low:.4f} to {figure.high:.4f})")


if __name__ == "__main__":
    typer.run(main)
