"""What others have written never gives orders to a terminal, nor begins a line of a log."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

import pytest
from rich.table import Table

from pumice.cli.options import Format, LogLevel
from pumice.cli.tables.whole import WholeTable
from pumice.cli.terminal import PlainConsole, PlainLines, Terminal

EVIL = "a\x1b[2Jb\r\nERROR forged: line\x9b31m\u202e"


def on_terminal(*shown: Any) -> str:
    """What a colour terminal would get, without what colours need."""
    file = io.StringIO()
    console = PlainConsole(file=file, force_terminal=True, color_system=None, width=200)
    for each in shown:
        console.print(each, markup=False)
    return file.getvalue()


def test_nothing_is_cut_off_in_a_table() -> None:
    table = WholeTable("resource", "much")
    table.add_row("volcano.sh/vgpu-memory", "1")
    table.add_row("volcano.sh/vgpu-number", "2")
    file = io.StringIO()
    PlainConsole(file=file, width=24).print(table)
    assert "…" not in file.getvalue()
    told = "".join(line.split("│")[1].strip() for line in file.getvalue().splitlines() if "│" in line)
    assert told == "volcano.sh/vgpu-memoryvolcano.sh/vgpu-number"


def test_tables_and_lines_spell_out_what_is_not_printable() -> None:
    table = Table("name")
    table.add_row(EVIL)
    for text in (on_terminal(EVIL), on_terminal(table)):
        assert not {"\x1b", "\r", "\x9b", "\u202e"} & set(text)
        assert "\\x1b[2J" in text


def test_colours_of_our_own_are_left() -> None:
    file = io.StringIO()
    PlainConsole(file=file, force_terminal=True, color_system="standard").print("[bold]x[/bold]")
    assert "\x1b[1mx" in file.getvalue()


@pytest.mark.parametrize("method", ["say", "warn", "error"])
def test_what_is_said_is_one_line(method: str, capsys: pytest.CaptureFixture[str]) -> None:
    getattr(Terminal(Format.JSON, False, LogLevel.WARNING), method)(EVIL)
    assert capsys.readouterr().err.count("\n") == 1


def test_json_stays_json_and_is_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal(Format.JSON, False, LogLevel.WARNING).emit({EVIL: EVIL}, lambda _: None)
    text = capsys.readouterr().out
    assert json.loads(text) == {EVIL: EVIL}
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
