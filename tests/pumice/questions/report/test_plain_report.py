"""A report where nothing can draw plots: tables, and a sentence that says what is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from tests.kit import gang, node
from tests.pumice.cli.terminal import pumice


def test_a_report_without_plots_says_so_and_has_everything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = gang("large", pods=1, cpu="900")
    (tmp_path / "all.yaml").write_text(
        yaml.safe_dump_all([node("n0"), *gang("g", pods=2, duration="5s"), *large]), "utf-8"
    )
    run = ("run", "-f", tmp_path / "all.yaml", "--time", "virtual", "--until", "idle", "--db", tmp_path / "j.db")
    assert pumice(*run).code == 0
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    said = pumice("report", tmp_path / "j.db", "-o", tmp_path / "r.html")
    assert said.code == 0
    assert "Plots need vl_convert, which is not installed: pip install 'pumice[report]'" in said.err
    told = (tmp_path / "r.html").read_text("utf-8")
    assert "<script" not in told
    assert "In figures" in told
    assert "The slowest jobs" in told
    assert "<h2>What jobs wait for</h2><p class=of>NoCapacity (LargerThanAnyNode) 1; in the order" in told
    row = "<td class=job>default/large</td><td class=job>default</td><td class=job>LargerThanAnyNode</td>"
    assert row in told
    refused = pumice("report", tmp_path / "j.db", "-o", tmp_path / "p.html", "--png", tmp_path / "plots")
    assert refused.code == 2
    assert "pip install 'pumice[report]'" in refused.err
    assert not (tmp_path / "p.html").exists()
