"""The notebooks say what they say in every run: in a kernel, whose event loop runs beside it, and without one."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from docs.making.write_notebook import NOTEBOOKS, executed, written
from pumice.core.plugins import PLUGINS


@pytest.fixture
def notebook() -> Any:
    """The one of the library."""
    return written(NOTEBOOKS[0])


def said(cell: Any) -> str:
    return "".join(output["text"] for output in cell.outputs)


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.slow
def test_the_cells_say_what_is_written_under_them(notebook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'pumice[tables]'")
    monkeypatch.setattr("pumice.core.cycle.PLUGINS", table := dict(PLUGINS))
    monkeypatch.setattr("pumice.lab.cluster.PLUGINS", table)
    monkeypatch.setattr("pumice.core.plugins.PLUGINS", table)
    names: dict[str, Any] = {}
    for cell in code(notebook):
        with redirect_stdout(io.StringIO()) as heard:
            exec(compile(cell.source, "cell", "exec"), names)
        assert heard.getvalue() == said(cell), "run `python -m docs.making.write_notebook`"


def test_the_first_cell_is_short(notebook: Any) -> None:
    lines = [line for line in code(notebook)[0].source.splitlines() if line]
    assert len(lines) <= 8


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_kernel_says_the_same(file: Path) -> None:
    notebook = written(file)
    again = executed(notebook)
    assert [said(cell) for cell in code(again)] == [said(cell) for cell in code(notebook)]
