"""The leaderboard in examples/leaderboard: a table a trace, the best first; and a published rule beside a plain one."""

from __future__ import annotations

import gzip
import random
from collections import Counter
from pathlib import Path

import msgspec
import pytest
import yaml

import pumice
from examples.leaderboard import leaderboard
from pumice.core.devices.milli import CardClass
from pumice.load.openb import OpenbRow
from pumice.load.openb_cards import card_node, card_pod

NODES = "sn,cpu_milli,memory_mib,gpu,model\na,32000,65536,2,T4\nb,32000,65536,1,T4\nc,32000,65536,1,P100\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\nhalf,1000,1024,1,500,\npair,1001,1024,2,1000,\n"
FOUND = """\
actions: allocate
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: alphaevolve}]
"""


SWF = "; MaxProcs: 8\n; MaxNodes: 2\n" + "".join(
    f"{at} {at * 10} 0 {20 + at % 3} {1 + at % 4} -1 -1 {1 + at % 4} -1 -1 1 {at % 2} 1 -1 1 -1 -1 -1\n"
    for at in range(1, 13)
)


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """A folder with two little traces."""
    (tmp_path / "openb").mkdir()
    (tmp_path / "openb" / "openb_node_list_gpu_node.csv").write_text(NODES)
    (tmp_path / "openb" / "openb_pod_list_default.csv.gz").write_bytes(gzip.compress(PODS.encode()))
    (tmp_path / "swf").mkdir()
    (tmp_path / "swf" / "NASA-iPSC-1993-3.1-cln.swf.gz").write_bytes(gzip.compress(SWF.encode()))
    return tmp_path


def rows_by_table(text: str) -> dict[str, list[list[str]]]:
    """Return the rows of each table of a board, as cells."""
    found: dict[str, list[list[str]]] = {}
    for part in text.split("## ")[1:]:
        name, *lines = part.splitlines()
        rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
        found[name] = [row for row in rows if row[0] != "policy"]
    return found


def board(traces: Path, only: str, policies: str = "", seeds: int = 2) -> dict[str, list[list[str]]]:
    """Return the tables of a run."""
    out = traces / "board.md"
    leaderboard.main(traces, out, leaderboard.BOARD, only, policies, seeds, 4, traces / "kept", 1)
    return rows_by_table(out.read_text())


def test_a_board_has_a_row_for_each_policy(traces: Path) -> None:
    found = board(traces, "openb default")
    said = yaml.safe_load(leaderboard.BOARD.read_text())["boards"][0]
    assert [*found] == ["openb default"]
    assert sorted(row[0] for row in found["openb default"]) == sorted(said["policies"])
    allocated = [float(row[1].split(" ")[0]) for row in found["openb default"]]
    assert allocated == sorted(allocated, reverse=True)
    assert 0 < allocated[0] <= 1


def test_leaderboard_name_of_a_board_takes_its_variants_and_sums_up(traces: Path) -> None:
    """The last table has a row a variant and the means of both, the best policy first."""
    other = traces / "openb" / "openb_pod_list_cpu050.csv"
    other.write_text(PODS + "more,1000,1024,1,400,\n")
    found = board(traces, "openb", "FGD,BestFit,DotProd", seeds=1)
    assert [*found] == ["openb default", "openb cpu050", "openb, all variants: maximise util.volcano.sh/vgpu-memory"]
    header, *rows = found["openb, all variants: maximise util.volcano.sh/vgpu-memory"]
    assert [row[0] for row in rows] == ["openb default", "openb cpu050", "mean"]
    for variant, *cells in rows[:2]:
        told = {row[0]: row[1] for row in found[variant]}
        assert [cell.strip("*") for cell in cells] == [told[name] for name in header[1:]]
    means = [float(cell) for cell in rows[2][1:]]
    assert means == sorted(means, reverse=True)


def test_a_timed_board_has_the_best_first_and_leaves_out_what_is_absent(
    traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = board(traces, "nasa,gavel", "volcano,sjf,funsearch")
    assert sorted(row[0] for row in found["nasa"]) == ["funsearch", "sjf", "volcano"]
    waits = [float(row[1].split(" ")[0]) for row in found["nasa"]]
    assert waits == sorted(waits)
    assert "gavel: left out" in capsys.readouterr().err


def test_every_policy_of_the_board_is_read_and_every_one_is_on_a_board() -> None:
    said = msgspec.convert(yaml.safe_load(leaderboard.BOARD.read_text()), leaderboard.Boards)
    assert {name for each in said.boards for name in each.policies} == said.policies.keys()
    for name, policy in said.policies.items():
        made = policy.policy(name, Counter({CardClass(1, 500, 1): 3}))
        assert "PLUGIN" not in made.text
        assert "actions" in made.text


def test_seeds_are_other_stretches_of_a_trace(traces: Path) -> None:
    objects = pumice.read(f"swf:{traces}/swf/NASA-iPSC-1993-3.1-cln.swf.gz")
    names = [
        [obj["metadata"]["name"] for obj in leaderboard.stretch(objects, 4, seed) if obj["kind"] == "Job"]
        for seed in (0, 1, 4)
    ]
    assert names[0] == ["job-1", "job-2", "job-3", "job-4"]
    assert names[1] == ["job-5", "job-6", "job-7", "job-8"] == names[2]
    short = [leaderboard.stretch(objects, 12, seed) for seed in (0, 1, 0)]
    assert short[0] == short[2] != short[1]


def test_the_generated_trace_follows_its_seed_and_knows_day_and_night() -> None:
    asked = leaderboard.Generated(2, 8, 8, {"a": 3, "b": 1}, 60.0)
    draws = [leaderboard.production(asked, 1500, seed) for seed in (1, 2, 1)]
    assert draws[0] == draws[2] != draws[1]
    jobs = [obj for obj in draws[0] if obj["kind"] == "Job"]
    hours = [leaderboard._arrival(job) / 3600 % 24 for job in jobs]  # pyright: ignore[reportPrivateUsage]
    assert sum(2 <= hour < 10 for hour in hours) > 2 * sum(14 <= hour < 22 for hour in hours)
    queues = Counter(job["spec"]["queue"] for job in jobs)
    assert queues["a"] > 2 * queues["b"]


def test_draws_ask_for_more_than_there_is_and_differ_by_seed(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "pods.csv").write_text(PODS)
    nodes, pods = leaderboard.openb(tmp_path / "nodes.csv", tmp_path / "pods.csv")
    draws = [leaderboard.drawn(nodes, pods, seed) for seed in (1, 2, 1)]
    assert draws[0] == draws[2] != draws[1]
    assert all(len(draw) >= 3 + 3 for draw in draws)


def test_draws_are_written_for_a_search(traces: Path) -> None:
    leaderboard.main(traces, traces / "b.md", leaderboard.BOARD, "openb default", seeds=2, draws=traces / "draws")
    assert sorted(path.name for path in (traces / "draws").iterdir()) == ["default-1.json", "default-2.json"]
    assert {obj["kind"] for obj in pumice.read(traces / "draws" / "default-1.json")} >= {"Node", "Pod"}


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
        policy = pumice.Policy(FOUND).with_modules(leaderboard.HERE / "plugins" / "found.py")
        best = min(free, key=lambda name: cost(free[name]))
        placed = pumice.Workload("one", objects, placement=True)
        assert pumice.evaluate(policy, placed, f"maximise where.{best}-0").score == 1.0


def test_the_rule_for_bins_chooses_as_a_plain_one() -> None:
    """FunSearch's published function, over the nodes with room, the largest of 150 units."""
    chance = random.Random(5)
    for _ in range(15):
        free = {f"n{at}": chance.randint(10, 64) for at in range(5)}
        unit, cpu = 150 / max(free.values()), chance.randint(1, 9)
        room, item = [cores * unit for cores in free.values()], cpu * unit
        scores = [1000 - each * (each - item) for each in room]
        least = room.index(min(room))
        scores[least] = scores[least] * item - (room[least] - item) ** 4
        nodes = [pumice.nodes(1, cpu=cores, memory="64Gi", name=name)[0] for name, cores in free.items()]
        policy = pumice.Policy(FOUND.replace("alphaevolve", "funsearch"))
        policy = policy.with_modules(leaderboard.HERE / "plugins" / "found.py")
        placed = pumice.Workload("one", [*nodes, pumice.gang("one", 1, cpu=cpu, memory="1Gi")], placement=True)
        best = [*free][scores.index(max(scores))]
        assert pumice.evaluate(policy, placed, f"maximise where.{best}-0").score == 1.0


def test_cards_are_kept_for_pods_that_fill_them() -> None:
    """A pod of 0.6 cards, beside which 0.4 stay free, opens no card; one of 0.5 does, as two of these fill it."""
    sizes = {"whole": "1000", "most": "600", "half": "500"}
    here = Path("rows.csv")
    asked = {"cpu_milli": "100", "memory_mib": "10", "num_gpu": "1"}
    pods = [card_pod(OpenbRow({**asked, "gpu_milli": milli}, here, 1), name, 0) for name, milli in sizes.items()]
    node = OpenbRow({"cpu_milli": "8000", "memory_mib": "999", "gpu": "3", "model": "T4"}, here, 1)
    objects = [card_node(node, "n"), *pods]
    said = (leaderboard.HERE / "holding.conf").read_text()
    work = pumice.Workload("cards", objects, placement=True)
    for config, unplaced in ((said, 1.0), (said.replace("waste: 50", "waste: 400"), 0.0)):
        policy = pumice.Policy(config).with_modules(leaderboard.HERE / "plugins" / "found.py")
        found = pumice.evaluate(policy, work, ("minimise unstarted[name=*most*]", "minimise unstarted"))
        assert found.scores == [unplaced, unplaced]
