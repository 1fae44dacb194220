# SPDX-License-Identifier: Apache-2.0
"""Places of objects in the input, for errors about them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from pumice.errors import InputError

_SPACE: Final = re.compile(r"[ \t\n\r]*")


class JsonLines:
    """The lines of one JSON document in `text`, which begins at or after `begin`: found on demand, since the fast
    readers of JSON count none.
    """

    def __init__(self, text: str, begin: int) -> None:
        self._text = text
        self._begin = _after_space(text, begin)

    def of(self, index: int) -> int:
        """Return the line, from 1, of the item of the document's `items` (from 0); of the document itself without such
        an item.
        """
        return self._items[index] if 0 <= index < len(self._items) else self._own

    @cached_property
    def _own(self) -> int:
        return self._text.count("\n", 0, self._begin) + 1

    @cached_property
    def _items(self) -> list[int]:
        lines, line, counted = list[int](), self._own, self._begin
        try:
            for start in _item_starts(self._text, self._begin):
                line += self._text.count("\n", counted, start)
                counted = start
                lines.append(line)
        except (ValueError, IndexError, RecursionError):  # nothing is known of what follows
            pass
        return lines


@dataclass(frozen=True, slots=True)
class ManifestPlace:
    """Place of one object in the input. `line` 0: `lines` knows it; `index`: the place in a List, -1 for none."""

    source: str
    document: int
    line: int
    lines: JsonLines | None = None
    index: int = -1

    def __str__(self) -> str:
        return self.error("").place

    def error(self, problem: str, path: str = "") -> InputError:
        """Return a problem of the object, or of one of its fields."""
        line = self.line or (self.lines.of(self.index) if self.lines is not None else 0)
        return InputError(problem, source=self.source, document=self.document, line=line, path=path)


def _item_starts(text: str, begin: int) -> Iterator[int]:
    """Yield the offset at which each of the `items` of a mapping begins. Raises ValueError, IndexError,
    RecursionError."""
    read = json.JSONDecoder().raw_decode
    at = _after_space(text, begin + 1)
    while text[begin] == "{" and text[at] == '"':
        key, at = read(text, at)
        at = _after_space(text, _after_space(text, at) + 1)  # the colon
        if key == "items" and text[at] == "[":
            at = _after_space(text, at + 1)
            while text[at] != "]":
                yield at
                at = _next(text, read(text, at)[1])
            return
        at = _next(text, read(text, at)[1])


def _next(text: str, at: int) -> int:
    """Return the position behind a comma, if there is one."""
    at = _after_space(text, at)
    return _after_space(text, at + 1) if text[at] == "," else at


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
