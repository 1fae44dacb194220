"""Rows written as CSV: a header, a line for each, and empty cells for what there was none of."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.questions.measures.jobs import JobRow
from pumice.questions.measures.tables import CsvWriter, ParquetWriter, PointRow, columns_of, to_arrow

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Row:
    """A row of every kind of column."""

    name: str
    count: int
    amount: float
    maybe: float | None


ROWS = st.lists(
    st.builds(
        Row,
        st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=5),
        st.integers(-9, 9),
        st.floats(-1e6, 1e6).map(lambda value: round(value, 3)),
        st.none() | st.integers(0, 9).map(float),
    ),
    max_size=4,
)


def written(rows: Sequence[Row]) -> str:
    file = StringIO()
    writer = CsvWriter(file, Row)
    for row in rows:
        writer.write(row)
    writer.close()
    return file.getvalue()


@given(ROWS)
def test_rows_come_back_from_csv(rows: list[Row]) -> None:
    header, *lines = csv.reader(StringIO(written(rows)))
    assert header == ["name", "count", "amount", "maybe"]
    found = [Row(a, int(b), float(c), float(d) if d else None) for a, b, c, d in lines]
    assert found == rows


def test_cells_of_csv_are_short_and_empty_for_none() -> None:
    assert written([Row("a,b", 1, 0.1 + 0.2, None)]) == 'name,count,amount,maybe\n"a,b",1,0.3,\n'


@pytest.mark.parametrize(
    ("row", "column", "kind"), [(Row, "maybe", float), (PointRow, "what", str), (JobRow, "pods", int)]
)
def test_columns_have_plain_kinds(row: type, column: str, kind: type) -> None:
    columns = columns_of(row)
    assert columns[column] is kind
    assert set(columns.values()) <= {str, int, float}


def test_rows_come_back_from_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [Row("a", 1, 0.5, None), Row("b", 2, 1.5, 3.0)]
    writer = ParquetWriter(tmp_path / "rows.parquet", Row)
    for row in rows:
        writer.write(row)
    writer.close()
    found = parquet.read_table(tmp_path / "rows.parquet")
    assert [Row(**each) for each in found.to_pylist()] == rows
    assert to_arrow(rows, Row).equals(found)
