"""The application's branch of the error tree (root: config/errors.py)."""

from __future__ import annotations

from pumice.config.errors import RequestError


class InputError(RequestError):
    """Something handed in is not what it should be.

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
        """`job.yaml: document 2 (line 14)`, as far as known."""
        where = f"{self.source}:{self.line}" if self.line else self.source
        return f"{where} (document {self.document})" if self.document > 1 else where
