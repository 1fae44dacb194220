"""Makes pages of the library from its docstrings, with pdoc: `python -m docs.making.write_api FOLDER`."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Final

import pdoc

import pumice

MODULES: Final = ("pumice", "pumice.plugins", "pumice.questions.whatif.changes")
FOLDER: Final = "site/api"


def main(folder: str = FOLDER) -> int:
    """A page for each module: the library, what plugins are written with, and the changes of futures."""
    for name in pumice.__all__:
        getattr(pumice, name)  # pdoc sees what has been imported
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of annotations whose names only type checkers see
        pdoc.pdoc(*MODULES, output_directory=Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
