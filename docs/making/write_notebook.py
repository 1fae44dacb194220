"""Runs the notebook of `examples/` and writes what it says into it: `python -m docs.making.write_notebook`.

Time is virtual there, so it says the same in every run, and `tests/pumice/lab/test_notebook.py` compares.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import nbclient
import nbformat

NOTEBOOK: Final = Path(__file__).parents[2] / "examples" / "laboratory.ipynb"
FORMAT: Any = nbformat  # its functions have no types
CLIENT: Any = nbclient.NotebookClient


def written() -> Any:
    """Return the notebook as it is."""
    return FORMAT.read(NOTEBOOK, as_version=4)


def executed(notebook: Any) -> Any:
    """Return a copy with what its cells say, in a kernel of its own. Raises CellExecutionError when one fails."""
    kept: Any = FORMAT.from_dict(notebook)
    CLIENT(kept, timeout=120, record_timing=False).execute()
    for number, cell in enumerate(kept.cells):
        cell["id"] = f"cell-{number}"
    kept["metadata"] = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return kept


def main() -> int:
    """Execute it and write it."""
    FORMAT.write(executed(written()), NOTEBOOK)
    return 0


if __name__ == "__main__":
    sys.exit(main())
