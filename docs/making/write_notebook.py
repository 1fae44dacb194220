"""Runs the notebooks of `examples/` and writes what they say into them: `python -m docs.making.write_notebook`.

Time is virtual there, so they say the same in every run, and `tests/pumice/lab/test_notebook.py` compares.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import nbclient
import nbformat

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
NOTEBOOKS: Final = tuple(EXAMPLES / f"{name}.ipynb" for name in ("laboratory", "better"))
FORMAT: Any = nbformat  # its functions have no types
CLIENT: Any = nbclient.NotebookClient


def written(notebook: Path) -> Any:
    """Return a notebook as it is."""
    return FORMAT.read(notebook, as_version=4)


def executed(notebook: Any) -> Any:
    """Return a copy with what its cells say, in a kernel of its own. Raises CellExecutionError when one fails."""
    kept: Any = FORMAT.from_dict(notebook)
    # Coalesced: in how many pieces a cell's words arrive is a matter of the machine's load.
    place = {"metadata": {"path": str(EXAMPLES)}}
    CLIENT(kept, timeout=240, record_timing=False, coalesce_streams=True, resources=place).execute()
    for number, cell in enumerate(kept.cells):
        cell["id"] = f"cell-{number}"
    kept["metadata"] = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return kept


def main() -> int:
    """Execute them and write them."""
    for notebook in NOTEBOOKS:
        FORMAT.write(executed(written(notebook)), notebook)
    return 0


if __name__ == "__main__":
    sys.exit(main())
