"""The bounds on a flood, and a short one against a real server."""

from __future__ import annotations

import pytest

from tests.benches.floods.__main__ import FloodFound, main


def test_each_bound_that_is_broken_is_named() -> None:
    good = FloodFound("lists", 100.0, 150.0, 110.0, 1.0, 20.0, 60.0, 9.0)
    assert good.wrong == []
    assert "1.50 ×" in good.told()
    bad = FloodFound("lists", 100.0, 151.0, 120.0, 1.1, 21.0, float("inf"), 9.0)
    assert bad.wrong == [
        "memory grew 1.51 ×",
        "memory did not return within 60 s",
        "/livez took 1.10 s",
        "21 KB were logged",
    ]
    assert "WRONG" in bad.told()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_flood_of_resets_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    """On a small server, so that its bounds may be broken: nothing is judged but that it goes on and logs nothing."""
    assert main(["resets", "--nodes", "10", "--rest-s", "0"]) in (0, 1)
    said = capsys.readouterr().out
    assert said.startswith("resets ")
    assert "log 0.0 KB" in said
    assert "traceback" not in said
