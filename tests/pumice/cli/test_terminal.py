"""What others have written never gives orders to a terminal, nor begins a line of a log."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.table import Table
from rich.text import Text

from pumice.cli.kubeconfig import KubeconfigResult
from pumice.cli.options import Format, LogLevel
from pumice.cli.tables.table import WholeTable
from pumice.cli.terminal import PlainConsole, PlainLines, Terminal
from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.queues import queue
from tests.pumice.cli.terminal import pumice

EVIL = "a\x1b[2Jb\r\nERROR forged: line\x9b31m\u202e"


def on_terminal(*shown: Any) -> str:
    """What a colour terminal would get, without what colours need."""
    file = io.StringIO()
    console = PlainConsole(file=file, force_terminal=True, color_system=None, width=200)
    for each in shown:
        console.print(each)
    return file.getvalue()


def shown(table: WholeTable, width: int) -> list[str]:
    file = io.StringIO()
    PlainConsole(file=file, width=width).print(table)
    return file.getvalue().splitlines()


def test_table_of_words_too_long_breaks_and_cuts_none() -> None:
    table = WholeTable("resource", "much")
    table.add_row("volcano.sh/vgpu-memory-of-all", "1")
    table.add_row("volcano.sh/vgpu-number", "22")
    lines = shown(table, 24)
    assert max(map(len, lines)) <= 24
    assert "".join(line[:19].strip() for line in lines[1:]) == "volcano.sh/vgpu-memory-of-allvolcano.sh/vgpu-number"
    assert [line[19:].strip() for line in lines if line[19:].strip()] == ["much", "1", "22"]


def test_table_with_sentences_puts_them_below_narrow_rows() -> None:
    table = WholeTable("job", "queue", "waits for", sentences=True)
    table.add_row("production/a-job-with-a-name", "a-queue-with-a-name", "no node is that large, and none will be soon")
    table.add_row("b", "q", "")
    assert shown(table, 120)[1].endswith("no node is that large, and none will be soon")
    narrow = shown(table, 50)
    assert narrow[2:4] == ["    no node is that large, and none will be soon", "b" + " " * 29 + "q"]


def test_table_with_figures_sets_them_to_the_right() -> None:
    table = WholeTable("node", "memory")
    table.add_row("a", "8Gi\n512Mi")
    assert shown(table, 80) == ["node  memory", "a        8Gi", "       512Mi"]


def test_tables_and_lines_spell_out_what_is_not_printable() -> None:
    table = Table("name")
    table.add_row(EVIL)
    for text in (on_terminal(EVIL), on_terminal(table)):
        assert not {"\x1b", "\r", "\x9b", "\u202e"} & set(text)
        assert "\\x1b[2J" in text


@pytest.mark.parametrize("table", [WholeTable, Table])
def test_brackets_and_colons_stand_as_they_are(table: type[WholeTable | Table]) -> None:
    said = "policy[group2-1] of [/x]:smile:[red]"
    made = table(said, title=said)
    made.add_row(said)
    assert on_terminal(made).count(said) == 3
    assert on_terminal(said) == f"{said}\n"


@pytest.mark.parametrize("policy", ["/x", "group2-1", "red"])
@pytest.mark.parametrize(
    "command",
    [
        ("decide",),
        ("explain", "pod", "default/p"),
        ("queue",),
        ("whatif", "--add-nodes", "1:like=n0", "--horizon", "5s"),
    ],
)
def test_what_a_pod_asks_for_is_told_word_by_word(command: tuple[str, ...], policy: str, tmp_path: Path) -> None:
    waits = pod("p", group="g", annotations={"volcano.sh/numa-topology-policy": policy})
    asked = waits["spec"]["containers"][0]["resources"]
    asked["limits"] = asked["requests"]
    numa: dict[str, Any] = {
        "apiVersion": "nodeinfo.volcano.sh/v1alpha1",
        "kind": "Numatopology",
        "metadata": {"name": "n0"},
        "spec": {
            "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "best-effort"},
            "numares": {"cpu": {"allocatable": "0-1", "capacity": 2}},
            "cpuDetail": {"0": {}, "1": {}},
        },
    }
    cluster, config = tmp_path / "cluster.yaml", tmp_path / "numa.conf"
    cluster.write_text(yaml.safe_dump_all([node("n0"), numa, queue("default"), pod_group("g"), waits]))
    config.write_text("actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: numa-aware}]}]\n")
    option = "--base-config" if command[0] == "whatif" else "--config"
    said = pumice(*command, "-f", cluster, option, config, "-o", "table", env={"COLUMNS": "250"})
    assert f"policy[{policy}]" in said.out
    assert "policy is different" not in said.out


def test_colours_of_our_own_are_left() -> None:
    file = io.StringIO()
    PlainConsole(file=file, force_terminal=True, color_system="standard").print(Text("x", "bold"))
    assert "\x1b[1mx" in file.getvalue()


@pytest.mark.parametrize("method", ["say", "warn", "error"])
def test_what_is_said_is_one_line(method: str, capsys: pytest.CaptureFixture[str]) -> None:
    getattr(Terminal(Format.JSON, False, LogLevel.WARNING), method)(EVIL)
    assert capsys.readouterr().err.count("\n") == 1


def test_json_stays_json_and_is_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal(Format.JSON, False, LogLevel.WARNING).emit(KubeconfigResult({EVIL: EVIL}), lambda _: None)
    text = capsys.readouterr().out
    assert json.loads(text) == {"schema": "kubeconfig/1", EVIL: EVIL}
    assert not {"\x1b", "\r", "\x9b", "\u202e"} & set(text)


def test_a_log_record_is_one_line_and_its_traceback_has_no_orders() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(PlainLines())
    logger = logging.Logger("x")
    logger.addHandler(handler)
    logger.warning("pod %s", EVIL)
    assert stream.getvalue().count("\n") == 1
    try:
        raise ValueError(EVIL)
    except ValueError:
        logger.exception("failed")
    assert "\x1b" not in stream.getvalue()
    assert stream.getvalue().count("\n") > 3


def test_output_without_an_option_is_a_table_in_a_pipe_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUMICE_OUTPUT")
    config = tmp_path / "scheduler.conf"
    config.write_text('actions: "enqueue, allocate"\n')
    assert pumice("check", config).out.startswith("In every cycle:\n")
