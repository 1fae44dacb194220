"""How long pods run in one future: any part of runs like them is as likely, and all go a little together."""

from __future__ import annotations

import statistics

import pytest

from pumice.questions.eta.durations import Knowledge
from pumice.questions.eta.futures import TOGETHER, Draw, Lasting
from pumice.questions.eta.runs import RunKeys

NOBODY = Knowledge([], [])


def parts(job: str, futures: int = 3000) -> list[float]:
    """Of a deadline of a second, when nothing else is known: any part is as likely."""
    pod = Lasting(RunKeys(job, "", "", ""), 0.0, 1.0)
    return [Draw(NOBODY, 0, number).lasts_s(pod) or 0.0 for number in range(futures)]


def test_any_part_is_as_likely() -> None:
    assert statistics.quantiles(parts("a"), n=10) == pytest.approx([tenth / 10 for tenth in range(1, 10)], abs=0.03)


def test_jobs_of_one_future_go_a_little_together() -> None:
    assert statistics.correlation(parts("a"), parts("b")) == pytest.approx(TOGETHER, abs=0.06)
    assert statistics.correlation(parts("a"), parts("b")[::-1]) == pytest.approx(0.0, abs=0.06)


def test_a_future_comes_out_again() -> None:
    assert parts("a", 20) == parts("a", 20) != parts("b", 20)
