# SPDX-License-Identifier: Apache-2.0
"""The table that every command prints: columns without a frame, fitted to the terminal, no cell cut."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.text import Text

from pumice.config.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType

GAP: Final = 2
"""Spaces between two columns; one, where words would have to be broken for two."""
INDENT: Final = "    "
PROSE: Final = 32
"""Columns that a sentence needs; with fewer it stands below its row."""
UNBROKEN: Final = 24
"""Columns of a word that is not broken while another column can give way."""
FIGURE: Final = re.compile(r"([+-]?[\d,.]+(e[+-]?\d+)?( ?%|m|[KMGT]i)?|([\d.]+[dhms])+|-|)")


class WholeTable:
    """Rows below a heading, each in one line where the terminal is wide enough. A wider cell continues in the next
    line: names of resources, nodes and jobs differ at their ends, so nothing is cut. `sentences`: the last column holds
    these, and stands below its row where the others leave no room for it.
    """

    def __init__(self, *heads: str, title: str = "", sentences: bool = False) -> None:
        self._heads = heads
        self._title = title
        self._sentences = sentences
        self._rows: list[tuple[str, ...]] = []

    @property
    def row_count(self) -> int:
        """Return the number of rows below the heading."""
        return len(self._rows)

    def add_row(self, *cells: str) -> None:
        """Add a row; a cell may have several lines."""
        self._rows.append(tuple(printable(cell, keep="\n") for cell in cells))

    def least_width(self) -> int:
        """Return the width below which words of names and figures have to be broken."""
        return _sum(_unbroken(self._all()), 1)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the title, the heading and the rows, each as its lines."""
        if self._title:
            yield Text(self._title)
        rows, width = self._all(), options.max_width
        widths = _widest(rows)
        left = width - _sum(widths[:-1], GAP) - GAP
        below = self._sentences and left < min(widths[-1], PROSE)
        said = [row[-1] if below else "" for row in rows]
        if below:
            rows = [row[:-1] for row in rows]
            widths = widths[:-1]
        elif self._sentences:
            widths[-1] = min(widths[-1], left)
        gap = GAP if _sum(_unbroken(rows), GAP) <= width else 1
        widths = _fitted(rows, widths, width - gap * (len(widths) - 1))
        right = [_is_numeric(column[1:]) for column in zip(*rows, strict=True)]
        for at, (row, sentence) in enumerate(zip(rows, said, strict=True)):
            yield from (Text(line, "" if at else "bold") for line in _lines(console, row, widths, right, " " * gap))
            if sentence and at:
                yield from (Text(INDENT + line) for line in _wrapped(console, sentence, width - len(INDENT)))

    def _all(self) -> list[tuple[str, ...]]:
        return [self._heads, *self._rows]


def _lines(
    console: Console, row: Sequence[str], widths: Sequence[int], right: Sequence[bool], gap: str
) -> Iterator[str]:
    """Yield the lines of a row, cells below the heading of their column."""
    cells = [_wrapped(console, cell, width) for cell, width in zip(row, widths, strict=True)]
    for at in range(max(map(len, cells), default=0)):
        parts: list[str] = []
        for lines, width, to_right in zip(cells, widths, right, strict=True):
            text = lines[at] if at < len(lines) else ""
            space = " " * (width - cell_len(text))
            parts.append(space + text if to_right else text + space)
        yield gap.join(parts).rstrip()


def _wrapped(console: Console, cell: str, width: int) -> list[str]:
    """Return a cell in lines of at most that width, broken at spaces where it has some."""
    if all(cell_len(line) <= width for line in cell.split("\n")):
        return cell.split("\n")
    return [line.plain.rstrip() for line in Text(cell).wrap(console, max(width, 1), overflow="fold")]


def _widest(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column if no cell is wrapped."""
    return [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in zip(*rows, strict=True)]


def _unbroken(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column below which its words have to be broken, or long ones of them."""
    columns = zip(*rows, strict=True)
    longest = (max(cell_len(word) for cell in column for word in cell.split() or [""]) for column in columns)
    return [min(each, UNBROKEN) for each in longest]


def _is_numeric(column: Sequence[str]) -> bool:
    """Return whether the cells are figures, which are compared digit by digit."""
    return all(FIGURE.fullmatch(line) for cell in column for line in cell.split("\n"))


def _sum(widths: Sequence[int], gap: int) -> int:
    return sum(widths) + gap * (len(widths) - 1)


def _fitted(rows: Sequence[Sequence[str]], widths: Sequence[int], room: int) -> list[int]:
    """Return widths whose sum fits: the widest shrink first, down to their longest words, which are broken only as a
    last resort.
    """
    found = [*widths]
    for least in (_unbroken(rows), [1] * len(found)):
        while sum(found) > room:
            able = [at for at, each in enumerate(found) if each > least[at]]
            if not able:
                break
            found[max(able, key=lambda at: found[at])] -= 1
    return found
