# SPDX-License-Identifier: Apache-2.0
"""Regular expressions from outside, in RE2: Go's syntax, and linear time in the text whatever the expression.

Python's own engine tries every way in turn: `^(a+)+$` over forty letters takes it hours. The work of one search is
bounded besides, for it grows with the expression as well: where that is exceeded the answer is an error.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

import re2  # type: ignore[import-untyped]

from pumice.config.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LONGEST: Final = 4_096
"""Characters of an expression."""
MOST_STEPS: Final = 10_000
"""Instructions of an expression, once compiled; counted repetitions make many of a few characters."""
MOST_WORK: Final = 4_000_000
"""Instructions times bytes of the text: at worst some 20 ms."""
_MEMORY: Final = 1024 * 1024

_library = cast("Any", re2)  # it has no types


class PatternError(RequestError):
    """A text that is not a regular expression of RE2's, one that is too large, or one that is too costly for a text."""

    code = 422
    reason = "Invalid"


class Pattern:
    """A regular expression. `steps`: its number of instructions."""

    __slots__ = ("_each", "_search", "steps", "text")

    def __init__(self, text: str) -> None:
        """Compile the expression. Raises PatternError."""
        if len(text) > LONGEST:
            raise PatternError(f"longer than {LONGEST} characters")
        try:
            compiled = _library.compile(text, _options())
        except (_library.error, UnicodeEncodeError) as error:
            raise PatternError(_told(error)) from error
        self.text = text
        self.steps: int = compiled.programsize
        self._search: Callable[[bytes], object] = compiled.search
        self._each: Callable[[bytes], Iterator[Any]] = compiled.finditer
        if self.steps > MOST_STEPS:
            raise PatternError(f"too large: {self.steps} steps, at most {MOST_STEPS}")

    def is_in(self, text: str) -> bool:
        """Return whether the pattern matches anywhere in the text. Raises PatternError when the text is too long."""
        encoded = text.encode("utf-8", "replace")
        if self.steps * len(encoded) > MOST_WORK:
            raise PatternError(f"a text of {len(encoded)} bytes is too long for a pattern of {self.steps} steps")
        return self._search(encoded) is not None

    def all_in(self, text: str, most: int = -1) -> list[str]:
        """Return the matches that do not overlap, at most so many, as Go's `FindAllString`. Raises PatternError."""
        encoded = text.encode("utf-8", "replace")
        found: list[str] = []
        before, work = -1, 0
        if most == 0 or not self.is_in(text):
            return found
        for match in self._each(encoded):
            span: tuple[int, int] = match.span()
            start, end = span
            work += self.steps * (len(encoded) - start)  # the next search may look at all that is left
            if work > MOST_WORK:
                raise PatternError(f"a text of {len(encoded)} bytes has too many matches to find")
            within = start < len(encoded) and encoded[start] & 0xC0 == 0x80  # no match is empty inside of a letter
            if start == end and (start == before or within):
                continue
            found.append(encoded[start:end].decode("utf-8", "replace"))
            before = end
            if len(found) == most:
                break
        return found


class Patterns:
    """Several expressions, tried in one pass over a text."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._patterns = patterns
        together = _library.Set.SearchSet(_options())
        together.Add("")  # is in every text: where it is not found, the engine ran out of room and found nothing else
        self._match: Callable[[bytes], list[int]] | None = together.Match
        try:
            for pattern in patterns:
                together.Add(pattern.text)
            together.Compile()
        except _library.error:  # too large together
            self._match = None

    def those_in(self, text: str) -> list[int]:
        """Return the places of the expressions that match anywhere in the text. Raises PatternError when the text is
        too long for one of them.
        """
        found = [] if self._match is None else self._match(text.encode("utf-8", "replace"))
        if found and min(found) == 0:
            return sorted(place - 1 for place in found if place)
        return [place for place, pattern in enumerate(self._patterns) if pattern.is_in(text)]


@lru_cache(maxsize=1024)
def pattern_of(text: str) -> Pattern:
    """Return the expression, compiled. Raises PatternError."""
    return Pattern(text)


def _options() -> Any:
    options = _library.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _MEMORY
    return options


def _told(error: Exception) -> str:
    """Return the library's text of bytes."""
    return str(error).removeprefix("b'").removesuffix("'").removeprefix('b"').removesuffix('"').replace("\\\\", "\\")
