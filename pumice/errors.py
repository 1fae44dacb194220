# SPDX-License-Identifier: Apache-2.0
"""The application's branch of the error tree (root: config/errors.py), and optional packages."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pumice.config.errors import RequestError

# --- Extras


def demand(module: str, extra: str, what: str) -> Any:
    """Import a module of an optional package. Raises RequestError, which says how to install it.

    `what` begins the sentence: "Parquet files".
    """
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise RequestError(f"{what} need {package}, which is not installed: pip install 'pumice[{extra}]'") from None


def absent(module: str, extra: str, what: str) -> str:
    """Return the message of `demand` for a missing module; "" if the module is installed."""
    try:
        demand(module, extra, what)
    except RequestError as error:
        return str(error)
    return ""


class InputError(RequestError):
    """An input is not valid.

    Names the file, the document (from 1; 0: the whole file), the line (0: unknown), the dotted path of the field, and
    what was expected.
    """

    def __init__(self, problem: str, *, source: str = "", document: int = 0, line: int = 0, path: str = "") -> None:
        self.problem = problem
        self.source = source
        self.document = document
        self.line = line
        self.path = path
        super().__init__(": ".join(part for part in (self.place, path, problem) if part))

    @property
    def place(self) -> str:
        """Return the place, like `job.yaml: document 2 (line 14)`, as far as known."""
        where = f"{self.source}:{self.line}" if self.line else self.source
        return f"{where} (document {self.document})" if self.document > 1 else where
