# SPDX-License-Identifier: Apache-2.0
"""Expressions over the cells of a row: `end_time-start_time`, `(AllocTRES.cpu|AllocCPUS)/NNodes`, `job_type=="HP"`.

A name is a column (in double quotes where it has other letters than those of names), `COLUMN.KEY` a part of a cell such
as `cpu=4,mem=8G` (where only `KEY:TYPE` stand there, their sum). A cell is a number (`K`, `M`, `G`, `T` are powers of
1024), a time (ISO 8601, in the table's zone where it does not say; or seconds since the epoch), a span (`1-02:03:04`),
else a text; an empty one is missing.

`|` takes the first that is there and binds the tightest. `+ - * /`, `<` and its kin need numbers, `==` and `!=`
compare, `~` and `!~` ask whether a text contains another. What is missing makes the whole missing, but for `|`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, tzinfo
from math import isfinite
from typing import Any, Final

Value = float | str | None
Expression = Callable[[Mapping[str, Any], tzinfo], Value]

_TOKEN: Final = re.compile(r'\s*(?:(\d+(?:\.\d+)?)|"([^"]*)"|([A-Za-z_][\w.]*)|(==|!=|!~|<=|>=|[-+*/|()~<>]))')
_NUMBER: Final = re.compile(r"([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)([KMGTP]?)[Bb]?\Z")
_SPAN: Final = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)\Z")
MISSING: Final = frozenset(("", "null", "none", "unknown", "nan", "n/a", "-"))
POWERS: Final = "KMGTP"
COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "~": lambda a, b: str(b) in str(a),
    "!~": lambda a, b: str(b) not in str(a),
    "<": lambda a, b: bool(a < b),
    ">": lambda a, b: bool(a > b),
    "<=": lambda a, b: bool(a <= b),
    ">=": lambda a, b: bool(a >= b),
}
OF_NUMBERS: Final = frozenset(("<", ">", "<=", ">="))


class RowError(ValueError):
    """An expression that cannot be read, or a row that it cannot be applied to."""


# --- Cells


def value_of(cell: object, zone: tzinfo) -> Value:
    """Return what a cell says; None for a missing one."""
    match cell:
        case None | "":
            return None
        case bool() | int() | float():
            return float(cell) if isfinite(cell) else None
        case datetime():
            return (cell if cell.tzinfo else cell.replace(tzinfo=zone)).timestamp()
        case _:
            return _read(str(cell).strip(), zone)


def _read(text: str, zone: tzinfo) -> Value:
    if text.lower() in MISSING:
        return None
    if found := _NUMBER.match(text):
        return float(found[1]) * 1024.0 ** (POWERS.index(found[2]) + 1 if found[2] else 0)
    if found := _SPAN.match(text):
        days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if text[:4].isdigit() and "-" in text:
        try:
            at = datetime.fromisoformat(text.replace(" UTC", "+00:00"))
        except ValueError:
            return text
        return (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC).timestamp()
    return text


def cell_of(row: Mapping[str, Any], name: str) -> object:
    """Return a cell, or a part `KEY=VALUE` of one. Raises RowError for an unknown column."""
    if name in row:
        return row[name]
    column, _, key = name.partition(".")
    if not key or column not in row:
        if not key:
            raise RowError(f"there is no column {name!r}; found {', '.join(row)}")
        return None
    parts = [part.strip().partition("=") for part in str(row[column] or "").split(",")]
    found = next((value for given, _, value in parts if given == key), None)
    # Slurm may count `gres/gpu:a100=2,gres/gpu:v100=1` alone, without their sum.
    typed = [value for given, _, value in parts if given.startswith(f"{key}:")] if found is None else []
    if not typed or not all(value.isdigit() for value in typed):
        return found
    return sum(map(int, typed))


# --- Reading


def expression_of(text: str) -> Expression:
    """Return a function of a row and a zone. Raises RowError for a text that is not an expression."""
    reader = _Reader(text)
    found = reader.comparison()
    if reader.next is not None:
        raise RowError(f"expected the end of {text!r}, found {reader.next[1]!r}")
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self.next: tuple[str, str] | None = None
        self._advance()

    def _advance(self) -> None:
        if not self._text[self._at :].strip():
            self.next = None
            return
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            raise RowError(f"not an expression: {self._text!r} (at {self._text[self._at :]!r})")
        self._at = found.end()
        kinds = ("number", "quoted", "name", "mark")
        self.next = next((kind, said) for kind, said in zip(kinds, found.groups(), strict=True) if said is not None)

    def _take(self, *marks: str) -> str:
        if self.next is None or self.next[0] != "mark" or self.next[1] not in marks:
            return ""
        mark = self.next[1]
        self._advance()
        return mark

    def comparison(self) -> Expression:
        left = self._sum()
        mark = self._take(*COMPARISONS)
        return left if not mark else _compared(mark, left, self._sum(text=True))

    def _sum(self, *, text: bool = False) -> Expression:
        found = self._product(text=text)
        while mark := self._take("+", "-"):
            found = _reckoned(mark, found, self._product(text=text))
        return found

    def _product(self, *, text: bool) -> Expression:
        found = self._first(text=text)
        while mark := self._take("*", "/"):
            found = _reckoned(mark, found, self._first(text=text))
        return found

    def _first(self, *, text: bool) -> Expression:
        choices = [self._atom(text=text)]
        while self._take("|"):
            choices.append(self._atom(text=text))
        return choices[0] if len(choices) == 1 else _first_there(choices)

    def _atom(self, *, text: bool) -> Expression:
        if self._take("("):
            found = self.comparison()
            if not self._take(")"):
                raise RowError(f"expected ) in {self._text!r}")
            return found
        if self.next is None or self.next[0] == "mark":
            raise RowError(f"expected a column or a number in {self._text!r}")
        kind, said = self.next
        self._advance()
        if kind == "number":
            number = float(said)
            return lambda row, zone: number
        if kind == "quoted" and text:
            return lambda row, zone: said
        return NamedCell(said)


class NamedCell:
    """The value of a column."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, row: Mapping[str, Any], zone: tzinfo) -> Value:
        """Return what the cell says."""
        return value_of(cell_of(row, self.name), zone)

    def text(self, row: Mapping[str, Any]) -> str:
        """Return the cell as it stands: `15.0` is a step of job 15, and no number."""
        cell = cell_of(row, self.name)
        return "" if cell is None else str(cell).strip()


def text_of(expression: Expression, row: Mapping[str, Any], zone: tzinfo) -> str:
    """Return what an expression says as a text; of a column the cell as it stands, "" for a missing one."""
    if isinstance(expression, NamedCell):
        said = expression.text(row)
        return "" if said.lower() in MISSING else said
    value = expression(row, zone)
    return plain(value) if isinstance(value, float) else str(value or "")


def plain(number: float) -> str:
    """Return a number without needless digits."""
    return str(int(number)) if number == int(number) else f"{number:.3f}".rstrip("0").rstrip(".")


def _first_there(choices: list[Expression]) -> Expression:
    def first(row: Mapping[str, Any], zone: tzinfo) -> Value:
        for each in choices:
            try:
                found = each(row, zone)
            except RowError:  # a column that this table does not have
                continue
            if found is not None:
                return found
        return None

    return first


def _compared(mark: str, left: Expression, right: Expression) -> Expression:
    compare = COMPARISONS[mark]

    def compared(row: Mapping[str, Any], zone: tzinfo) -> Value:
        a, b = left(row, zone), right(row, zone)
        if a is None or b is None:
            return None
        if mark in OF_NUMBERS and not (isinstance(a, float) and isinstance(b, float)):
            raise RowError(f"expected numbers beside {mark}, were {a!r} and {b!r}")
        if mark in ("~", "!~"):
            a, b = text_of(left, row, zone), text_of(right, row, zone)
        return float(compare(a, b))

    return compared


def _reckoned(mark: str, left: Expression, right: Expression) -> Expression:
    def reckoned(row: Mapping[str, Any], zone: tzinfo) -> Value:
        a, b = left(row, zone), right(row, zone)
        if a is None or b is None:
            return None
        if isinstance(a, str) or isinstance(b, str):
            raise RowError(f"expected numbers beside {mark}, were {a!r} and {b!r}")
        if mark == "/":
            return a / b if b else None
        return a + b if mark == "+" else a - b if mark == "-" else a * b

    return reckoned
