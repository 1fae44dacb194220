"""What counts as flat, and that a table comes back from its file as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benches.soak.halves import Judged, SampleTable, compared, percentiles, read_table, table


def rows(*values: float, name: str = "rss_mb") -> list[dict[str, float]]:
    return [{"t_s": 10.0 * place, name: value} for place, value in enumerate(values, start=1)]


@pytest.mark.parametrize(
    ("values", "flat"),
    [
        ((100, 100, 105, 105), True),
        ((100, 100, 106, 106), False),
        ((100, 100, 50, 50), True),  # less is no growth
        ((100, 100, 900, 105, 105, 105, 105, 105), True),  # one outlier moves no median
        ((20, 20, 21.5, 21.5), True),  # more than a twentieth, and less than the slack
    ],
)
def test_medians_of_the_halves(values: tuple[float, ...], flat: bool) -> None:
    (verdict,) = compared(rows(*values), 0.0, [Judged("rss_mb", slack=2.0)])
    assert verdict.flat is flat


def test_the_warm_up_counts_for_nothing() -> None:
    verdicts = compared(rows(1, 1, 1, 100, 100, 100, 100), 30.0, [Judged("rss_mb"), Judged("absent")])
    assert [(each.name, each.first, each.second, each.growth) for each in verdicts] == [("rss_mb", 100, 100, 0.0)]
    assert not compared(rows(1, 1, 1, 100, 100, 100, 100), 0.0, [Judged("rss_mb")])[0].flat


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="3 samples after the warm-up are too few"):
        compared(rows(1, 1, 1, 1), 10.0)


def test_what_grows_is_marked_in_the_text() -> None:
    text = table(compared(rows(100, 100, 120, 120), 0.0, [Judged("rss_mb")]))
    assert text.splitlines()[1].split() == ["rss_mb", "100.00", "120.00", "+20.0%", "GROWS"]


def test_a_table_is_on_disk_row_by_row(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    written = SampleTable(path, ["t_s", "rss_mb", "lag_p50_ms"])
    written.add({"t_s": 5.0, "rss_mb": 321.5, "lag_p50_ms": 0.25})
    assert read_table(path) == [{"t_s": 5.0, "rss_mb": 321.5, "lag_p50_ms": 0.25}]
    written.add({"t_s": 10.0, "rss_mb": 1234567.0})
    assert read_table(path) == written.rows


def test_percentiles_are_of_values_that_were_there() -> None:
    assert percentiles([3.0, 1.0, 2.0]) == (2.0, 3.0)
    assert percentiles([float(each) for each in range(1, 1001)]) == (500.5, 991.0)
