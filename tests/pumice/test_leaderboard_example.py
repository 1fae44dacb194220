"""The leaderboard in examples/leaderboard: a table a trace, the best first; and a published rule beside a plain one."""

from __future__ import annotations

import random
from pathlib import Path

import pumice
from examples.leaderboard import leaderboard
from pumice.load.openb import NODE_COLUMNS, POD_COLUMNS, rows_of

NODES = "sn,cpu_milli,memory_mib,gpu,model\na,32000,65536,2,T4\nb,32000,65536,1,T4\nc,32000,65536,1,P100\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\nhalf,1000,1024,1,500,\npair,1001,1024,2,1000,\n"
FOUND = """\
actions: allocate
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: alphaevolve}]
"""


def test_a_board_has_a_row_for_each_policy(tmp_path: Path) -> None:
    (tmp_path / "openb").mkdir()
    (tmp_path / "openb" / "openb_node_list_gpu_node.csv").write_text(NODES)
    (tmp_path / "openb" / "openb_pod_list_little.csv").write_text(PODS)
    leaderboard.main(tmp_path, tmp_path / "board.md", "little", 2, 5, tmp_path / "kept", 1)
    lines = (tmp_path / "board.md").read_text().splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("| ") and not line.startswith("| policy")]
    names = [row[0].removeprefix("| ") for row in rows]
    assert {"FGD", "BestFit", "DotProd", "GpuClustering", "GpuPacking", "volcano", "binpack", "alphaevolve"} == {*names}
    allocated = [float(row[1].split(" ")[0]) for row in rows]
    assert allocated == sorted(allocated, reverse=True)
    assert 0 < allocated[0] <= 1


def test_draws_ask_for_more_than_there_is_and_differ_by_seed(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "pods.csv").write_text(PODS)
    nodes, pods = [*rows_of(tmp_path / "nodes.csv", NODE_COLUMNS)], [*rows_of(tmp_path / "pods.csv", POD_COLUMNS)]
    draws = [leaderboard.drawn(nodes, pods, seed) for seed in (1, 2, 1)]
    assert draws[0] == draws[2] != draws[1]
    assert all(len(draw) >= 3 + 3 for draw in draws)


def test_the_found_rule_chooses_as_a_plain_one() -> None:
    """The least sum of the asked parts of what is free, and of their ratios."""
    chance = random.Random(4)
    for _ in range(15):
        free = {f"n{at}": (chance.randint(4, 64), chance.randint(8, 128)) for at in range(5)}
        cpu, memory = chance.randint(1, 4), chance.randint(1, 8)

        def cost(room: tuple[int, int], cpu: int = cpu, memory: int = memory) -> float:
            first, second = cpu / room[0], memory / room[1]
            return first + second + first / second + second / first

        nodes = [pumice.nodes(1, cpu=cores, memory=f"{size}Gi", name=name)[0] for name, (cores, size) in free.items()]
        objects = [*nodes, pumice.gang("one", 1, cpu=cpu, memory=f"{memory}Gi")]
        policy = pumice.Policy(FOUND).with_modules(leaderboard.HERE / "found.py")
        best = min(free, key=lambda name: cost(free[name]))
        placed = pumice.Workload("one", objects, placement=True)
        assert pumice.evaluate(policy, placed, f"maximise where.{best}-0").score == 1.0
