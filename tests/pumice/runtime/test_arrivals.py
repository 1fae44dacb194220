"""What an annotation says of an arrival, and what a run makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pumice.config.durations import parse_duration
from pumice.runtime.arrivals import ARRIVAL, arrival_at, duration_text, hastened, part
from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.pumice.cli.terminal import pumice

BEGAN = 1_700_000_000.0


@pytest.mark.parametrize(
    ("said", "after"), [("90s", 90.0), ("1h30m", 5400.0), ("0", 0.0), ("2023-11-14T22:13:50Z", 30.0), ("soon", None)]
)
def test_an_arrival_is_a_duration_or_a_moment(said: str, after: float | None) -> None:
    assert arrival_at(said, BEGAN) == (None if after is None else BEGAN + after)


def test_what_says_nothing_comes_immediately_and_nonsense_never() -> None:
    plain, later, odd, over = pod("a"), pod("b"), pod("c"), pod("d")
    for obj, said in ((later, "5s"), (odd, "soon"), (over, "-5s")):
        obj["metadata"]["annotations"] = {ARRIVAL: said}
    found = part([plain, later, odd, over], BEGAN)
    assert [obj["metadata"]["name"] for obj in found.now] == ["a", "d"]
    assert [arrival.at for arrival in found.later] == [BEGAN + 5.0]
    ((named, why),) = found.problems
    assert named is odd
    assert "'soon'" in why


@given(st.integers(0, 10**9))
def test_durations_are_read_as_they_were_written(milliseconds: int) -> None:
    assert parse_duration(duration_text(milliseconds / 1000)) == pytest.approx(milliseconds / 1000, abs=1e-9)


def test_all_that_is_said_of_time_comes_sooner() -> None:
    obj = {"metadata": {"annotations": {ARRIVAL: "1h", "x": "1h"}}, "spec": [{"pumice.dev/duration": "10s"}]}
    assert hastened([obj], 60) == [
        {"metadata": {"annotations": {ARRIVAL: "60s", "x": "1h"}}, "spec": [{"pumice.dev/duration": "0.167s"}]}
    ]


def test_a_run_is_idle_when_the_last_one_has_come_and_ended(tmp_path: Path) -> None:
    late = pod("late", duration="60s")
    late["metadata"].setdefault("annotations", {})[ARRIVAL] = "1h"
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([node("n0"), pod("soon", duration="5s"), late]), "utf-8")
    said = pumice("run", "-f", tmp_path / "all.yaml", "--time", "virtual", "--until", "idle", "--db", tmp_path / "j.db")
    assert said.code == 0, said.err
    assert said.json["pods"]["succeeded"] == 2
    assert 3660 <= said.json["seconds"] < 3663
    jobs = pumice("measures", tmp_path / "j.db", "-o", "json").json["jobs"]
    assert sorted(round(job["submitted"] / 60) for job in jobs) == [0, 60]
    assert pumice("replay", tmp_path / "j.db", "--verify").code == 0
