"""What a soak sends and reads, and a short one against a real server."""

from __future__ import annotations

import os
from itertools import islice
from mmap import mmap
from pathlib import Path

import pytest

from tests.benches.soak.__main__ import main
from tests.benches.soak.counting import Counts
from tests.benches.soak.curves import PANELS, curves
from tests.benches.soak.judging import read_table
from tests.benches.soak.plan import JOB_PODS, PODS_A_UNIT, SoakPlan, cluster, command, units
from tests.benches.soak.reading import file_mb, metric_lines, read_process
from tests.benches.soak.soaking import COLUMNS
from tests.benches.soak.users import credentials, roles, token_of


def test_writers_make_what_the_plan_says() -> None:
    plan = SoakPlan(seconds=100.0, pods=1_000, namespaces=5)
    made = [unit for writer in range(plan.writers) for unit in islice(units(plan, writer), 100)]
    assert len({(unit.namespace, unit.name) for unit in made}) == len(made)
    pods = sum(JOB_PODS if unit.job else 1 for unit in made)
    assert pods / len(made) == pytest.approx(PODS_A_UNIT, rel=0.05)
    assert plan.writers * plan.seconds / plan.pace_s * PODS_A_UNIT == pytest.approx(plan.pods)
    assert made == [unit for writer in range(plan.writers) for unit in islice(units(plan, writer), 100)]
    assert made != [unit for writer in range(50) for unit in islice(units(SoakPlan(seed=1, namespaces=5), writer), 100)]


def test_the_cluster_is_of_namespaces_and_ready_nodes() -> None:
    found = list(cluster(SoakPlan(nodes=3, namespaces=2)))
    assert [obj["kind"] for obj in found] == ["Namespace"] * 2 + ["Node"] * 3
    assert found[-1]["status"]["conditions"][-1]["type"] == "Ready"
    said = command(SoakPlan(), "f", 80)
    assert said[:3] == ["run", "-f", "f/cluster.json"]
    assert {"--keep", "--keep-events", "--event-ttl"} <= set(said)


def test_users_share_the_namespaces_and_nothing_else(tmp_path: Path) -> None:
    plan = SoakPlan(namespaces=5, users=2, segments="100", keep_bytes="1M")
    assert [plan.names_of(writer) for writer in (0, 1, 2)] == [
        ["soak-000", "soak-002", "soak-004"],
        ["soak-001", "soak-003"],
        ["soak-000", "soak-002", "soak-004"],
    ]
    assert {unit.namespace for unit in islice(units(plan, 1), 50)} == set(plan.names_of(1))
    bound = {each["metadata"]["namespace"]: each["subjects"][0]["name"] for each in list(roles(plan))[1:]}
    options = credentials(plan, tmp_path)
    cells = [line.split(",") for line in (tmp_path / "users.csv").read_text().splitlines()]
    users = {token: user for token, user, _ in cells}
    assert {name: users[token_of(plan, name)] for name in plan.names()} == bound
    assert {"rbac", str(tmp_path / "users.csv")} <= set(options)
    assert command(plan, "f", 80)[-6:-2] == ["--segments", "100", "--keep-bytes", "1M"]
    assert (list(roles(SoakPlan())), credentials(SoakPlan(), tmp_path), token_of(SoakPlan(), "soak-000")) == (
        [],
        (),
        "",
    )


def test_this_process_can_be_read(tmp_path: Path) -> None:
    before = read_process(os.getpid())
    with (tmp_path / "open").open("wb") as file:
        held = mmap(-1, 30_000_000)  # pages of its own: freed memory might be used again
        held[::4096] = b"x" * len(range(0, len(held), 4096))
        file.write(b"x" * 2_000_000)
        file.flush()
        now = read_process(os.getpid())
        assert now.descriptors == before.descriptors + 1
        assert now.rss_mb - before.rss_mb > 20
        assert 0 < now.uss_mb <= now.rss_mb
        assert now.threads >= 1
        assert now.cpu_s >= before.cpu_s > 0
        assert file_mb(tmp_path / "open") == 2.0
    assert file_mb(tmp_path / "none") == 0.0


def test_objects_are_counted_by_resource() -> None:
    text = '# HELP a\na{b="c"} 1\napiserver_resource_objects{group="",resource="pods"} 12.0\n'
    assert metric_lines(text) == (2, {"pods": 12})


def test_counting_begins_anew_with_every_sample() -> None:
    counts = Counts(made=7)
    counts.took_s["post"] += [0.001, 0.003]
    counts.heartbeats, counts.late_s = 20, 1.5
    counts.lag(None)
    counts.lag(0.004)
    first, second = counts.taken(2.0), counts.taken(2.0)
    assert (first["post_p50_ms"], first["post_p99_ms"], first["lag_p50_ms"]) == (2.0, 3.0, 4.0)
    assert (first["requests_per_s"], first["heartbeats_per_s"], first["late_s"]) == (1.0, 10.0, 1.5)
    assert "post_p50_ms" not in second
    assert (second["made"], second["heartbeats_per_s"]) == (7, 0.0)
    assert set(first) <= set(COLUMNS)


def test_the_picture_has_a_panel_for_each_group_of_columns() -> None:
    spec = curves([{"t_s": 60.0 * each, "rss_mb": 100.0} for each in range(10)], "ten minutes", 60.0)
    assert [each["title"] for each in spec["concat"]] == [name for name, _ in PANELS]
    assert {column for _, columns in PANELS for column in columns} <= set(COLUMNS)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("users", ["0", "3"])
def test_a_soak_of_ten_seconds(tmp_path: Path, capfd: pytest.CaptureFixture[str], users: str) -> None:
    """Every event is accounted for, and all figures are there. Ten seconds say nothing about growth."""
    small = "--seconds 10 --pods 60 --nodes 40 --namespaces 6 --node-watches 2 --writers 4 --sample-s 1 --users "
    small += users
    main([*small.split(), "--into", str(tmp_path)])
    said = capfd.readouterr().out
    assert "problems: 0" in said, said
    rows = read_table(tmp_path / "soak.csv")
    assert rows[-1]["made"] >= 30
    assert rows[-1].keys() >= set(COLUMNS) - {"delete_p50_ms", "delete_p99_ms", "get_p50_ms", "get_p99_ms"}
    assert (tmp_path / "soak.svg").read_text("utf-8").startswith("<svg")
    assert main([*small.split(), "--into", str(tmp_path), "--again"]) in (0, 1, 2)
