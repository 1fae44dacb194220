"""Ages: the boundaries of every unit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.actors.gateway.columns.words import age, human_duration, since

DAY = 86400
YEAR = 365 * DAY


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-2, "<invalid>"),
        (-1.9, "0s"),
        (-0.5, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (121, "2m1s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (7 * 3600 + 59 * 60, "7h59m"),
        (8 * 3600, "8h"),
        (48 * 3600 - 1, "47h"),
        (48 * 3600, "2d"),
        (7 * DAY + 23 * 3600, "7d23h"),
        (8 * DAY, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + DAY, "2y1d"),
        (8 * YEAR, "8y"),
    ],
)
def test_an_age_has_few_figures(seconds: float, told: str) -> None:
    assert human_duration(seconds) == told


@given(st.floats(min_value=-1.9, max_value=1e10))
def test_an_age_is_short(seconds: float) -> None:
    assert len(human_duration(seconds)) <= 6


def test_an_age_counts_from_creation() -> None:
    assert age({"metadata": {"creationTimestamp": "1970-01-01T00:01:00Z"}}, 65.0) == "5s"
    assert age({}, 65.0) == "<unknown>"
    assert since("yesterday", 65.0) == "<invalid>"
