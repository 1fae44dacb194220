"""A sweep as a picture has a panel for each figure and a bar for each run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.errors import InputError
from pumice.questions.sweep.picture import FIGURES, checked, draw, picture
from tests.kit.nodes import node
from tests.pumice.cli.terminal import pumice

ROWS: list[dict[str, Any]] = [
    {
        "config": config,
        "seed": seed,
        "mean_wait_s": 1.0 + seed,
        "cpu utilisation": 0.5,
        "memory utilisation": 0.0,
        "pods utilisation": 0.1,
    }
    for config in ("one", "other")
    for seed in (0, 1)
]


def test_every_run_has_a_bar_in_every_panel() -> None:
    spec = picture(ROWS, ("config", "seed"))
    assert spec["facet"]["sort"] == [*FIGURES, "cpu utilisation"]
    bars = spec["data"]["values"]
    assert len(bars) == 4 * 5
    assert [(bar["run"], bar["as"], bar["value"]) for bar in bars if bar["figure"] == "mean_wait_s"] == [
        ("one", "0", 1.0),
        ("one", "1", 2.0),
        ("other", "0", 1.0),
        ("other", "1", 2.0),
    ]
    assert "color" not in picture(ROWS, ("config",))["spec"]["encoding"]


def test_the_command_draws_what_was_swept(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install 'pumice[report]'")
    (tmp_path / "n.yaml").write_text(yaml.safe_dump_all([node("n0", cpu="4")]), "utf-8")
    (tmp_path / "s.yaml").write_text("fixed: {input: n.yaml}\ngrid: {seed: [0, 1]}\n", "utf-8")
    said = pumice("sweep", tmp_path / "s.yaml", "--workers", 1, "--plot", tmp_path / "s.png")
    assert (said.code, (tmp_path / "s.png").exists()) == (0, True), said.err
    assert pumice("sweep", tmp_path / "s.yaml", "--plot", tmp_path / "s.gif").code == 2


def test_it_is_drawn_as_its_name_says(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install 'pumice[report]'")
    draw(picture(ROWS, ("config", "seed")), tmp_path / "p.svg")
    assert "mean_wait_s" in (tmp_path / "p.svg").read_text("utf-8")
    draw(picture(ROWS, ("config",)), tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match=r"expected a name that ends in .svg or .png"):
        checked(tmp_path / "p.gif")
