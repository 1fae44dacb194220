"""Which time of a schedule is due."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.controllers.crons import due_time
from pumice.cluster.kube.schedules import read_schedule


@given(st.integers(0, 20_000), st.integers(0, 200_000), st.sampled_from(["*/7 * * * *", "3 * * * *", "@every 11m"]))
def test_the_last_time_up_to_now(since: int, passed: int, text: str) -> None:
    schedule, now = read_schedule(text), float(since + passed)
    times, at = list[float](), schedule.after(float(since))
    while at is not None and at <= now:
        times.append(at)
        at = schedule.after(at)
    due = due_time(schedule, float(since), now)
    assert due.at == (times[-1] if times else None)
    assert bool(due.missed) == (len(times) > 1)


def test_a_year_back_is_found_without_counting() -> None:
    year = 365 * 86400.0
    due = due_time(read_schedule("* * * * *"), 0.0, year)
    assert (due.at, due.missed) == (year, 365 * 1440)


def test_times_of_one_hour_a_day_are_found_at_night() -> None:
    year, nine = 365 * 86400.0, 9 * 3600.0
    due = due_time(read_schedule("* 9 * * *"), 0.0, year + 3600.0)
    assert due.at == year - 86400.0 + nine + 59 * 60.0
