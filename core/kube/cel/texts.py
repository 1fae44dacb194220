# SPDX-License-Identifier: Apache-2.0
"""Functions of strings: cel-go's `ext/strings` and Kubernetes' regular expressions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from pumice.core.kube.cel.numbers import text_of_double
from pumice.core.kube.cel.reading import is_list, is_map
from pumice.core.kube.cel.times import Duration, Timestamp
from pumice.core.kube.cel.values import TypeValue, kind_of
from pumice.core.kube.patterns import pattern_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONGEST_VALUE: Final = 1 << 20
"""Letters or elements of a value that an expression makes."""
_DIGITS: Final = 6
_MOST_DIGITS: Final = 1_000
# What Go's unicode.IsSpace takes for blank. Python's strip() also takes U+001C to U+001F.
_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_QUOTED: Final = {ord(letter): f"\\{mark}" for letter, mark in zip('\a\b\f\n\r\t\v\\"', 'abfnrtv\\"', strict=True)}
_RAISED: Final = str.maketrans("+-0123456789", "⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class TextError(ValueError):
    """A place outside of a text, or a format that cannot be followed."""


def bounded(length: int) -> None:
    """Check the length of a value. Raises TextError for one that is too long."""
    if length > LONGEST_VALUE:
        raise TextError("a value of the expression gets too long")


def char_at(text: str, place: int) -> str:
    """Return one letter; "" behind the last."""
    if not 0 <= place <= len(text):
        raise TextError(f"index out of range: {place}")
    return text[place : place + 1]


def index_of(text: str, wanted: str, start: int = 0) -> int:
    """Return where a text begins in another, -1 if nowhere."""
    if not wanted:
        return start  # wherever that is, as in the version of cel-go that Kubernetes has
    if start < 0:
        raise TextError(f"index out of range: {start}")
    return text.find(wanted, start)


def last_index_of(text: str, wanted: str, start: int | None = None) -> int:
    """Return where a text begins last in another, at `start` at the latest."""
    if start is None:
        return text.rfind(wanted)
    if not wanted:
        return start
    if start < 0:
        raise TextError(f"index out of range: {start}")
    return -1 if start >= len(text) else text.rfind(wanted, 0, start + len(wanted))


def lower(text: str) -> str:
    """Return a text with ASCII letters small."""
    # bytes.lower() changes ASCII letters alone; str.lower() would change all.
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def upper(text: str) -> str:
    """Return a text with ASCII letters large."""
    return text.encode("utf-8", "surrogatepass").upper().decode("utf-8", "surrogatepass")


def replaced(text: str, old: str, new: str, most: int = -1) -> str:
    """Return a text with some or all occurrences of another replaced."""
    # Counted first: the new text may be longer than memory allows.
    count = text.count(old)
    bounded(len(text) + (count if most < 0 else min(count, most)) * len(new))
    return text.replace(old, new, max(most, -1))


def split(text: str, separator: str, most: int = -1) -> list[str]:
    """Return the parts of a text, at most so many; single letters without a separator."""
    if most == 0:
        return []
    if separator:
        # Python counts the cuts, Go's SplitN the parts.
        return text.split(separator, -1 if most < 0 else most - 1)
    if most < 0 or most >= len(text):
        return list(text)
    return [*text[: most - 1], text[most - 1 :]]


def substring(text: str, start: int, end: int | None = None) -> str:
    """Return a piece of a text."""
    last = len(text) if end is None else end
    if end is not None and start > end:
        raise TextError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text) or not 0 <= last <= len(text):
        raise TextError(f"index out of range: {start if not 0 <= start <= len(text) else last}")
    return text[start:last]


def trimmed(text: str) -> str:
    """Return a text without the blanks at its ends."""
    return text.strip(_SPACE)


def joined(parts: list[Any], between: str = "") -> str:
    """Return texts as one."""
    for part in parts:
        if not isinstance(part, str):
            raise TextError("join: every element must be a string")
    bounded(len(between) * len(parts) + sum(map(len, parts)))
    return between.join(parts)


def quoted(text: str) -> str:
    """Return a text as a literal of CEL."""
    return '"' + text.translate(_QUOTED) + '"'


def escaped_key(text: str) -> str:
    """Return a key as a part of a path of a JSON patch."""
    return text.replace("~", "~0").replace("/", "~1")


def matches(text: str, pattern: str) -> bool:
    """Return whether a regular expression matches anywhere."""
    return pattern_of(pattern).is_in(text)


def found(text: str, pattern: str) -> str:
    """Return the first match, "" without one."""
    return next(iter(pattern_of(pattern).all_in(text, 1)), "")


def all_found(text: str, pattern: str, most: int = -1) -> list[str]:
    """Return the matches that do not overlap, at most so many."""
    return pattern_of(pattern).all_in(text, most)


def encoded(text: str) -> bytes:
    """Return a text as bytes."""
    return text.encode("utf-8", "replace")


def contains(text: str, part: str) -> bool:
    """Return whether a text is in another."""
    return part in text


def text_of(value: object) -> str:
    """Return a value as `string(value)` has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return text_of_double(value)
    if isinstance(value, bytes):
        # Not "replace": a conversion of bytes that are not UTF-8 is an error in cel-go.
        return value.decode("utf-8")
    return value.name if isinstance(value, TypeValue) else str(value)


def formatted(template: str, arguments: list[Any]) -> str:
    """Return a template with its clauses filled in (source: cel-go's `ext/formatting.go`). Raises TextError."""
    parts: list[str] = []
    used = length = 0
    for text, clause in _pieces(template):
        parts.append(text)
        if clause is not None:
            if used >= len(arguments):
                raise TextError(f"index {used} out of range")
            parts.append(_written(clause, arguments[used]))
            used += 1
        length += sum(map(len, parts[-2:]))
        bounded(length)
    return "".join(parts)


def clauses(template: str) -> list[str]:
    """Return the verbs of a template's clauses. Raises TextError for an unknown one."""
    return [clause[0] for _, clause in _pieces(template) if clause is not None]


def _pieces(template: str) -> Iterator[tuple[str, tuple[str, int] | None]]:
    """Yield the texts of a template, each with the clause behind it: its verb and precision."""
    place = 0
    while (at := template.find("%", place)) >= 0:
        # Two signs are one percent sign, and take no argument.
        if template[at + 1 : at + 2] == "%":
            yield template[place : at + 1], None
            place = at + 2
            continue
        text, digits, place = template[place:at], _DIGITS, at + 1
        if template[place : place + 1] == ".":
            digits, place = _precision(template, place + 1)
        verb = template[place : place + 1]
        if not verb:
            raise TextError("unexpected end of string")
        if verb not in VERBS:
            raise TextError(f"could not parse formatting clause: unrecognized formatting clause {verb!r}")
        place += 1
        yield text, (verb, digits)
    yield template[place:], None


def _precision(template: str, start: int) -> tuple[int, int]:
    end = start
    while template[end : end + 1].isascii() and template[end : end + 1].isdigit():
        end += 1
    digits = template[start:end]
    # Bounded: `%.999999999f` would write a text of a gigabyte.
    if not 0 < len(digits) < 5 or int(digits) > _MOST_DIGITS:
        raise TextError(f"could not parse formatting clause: precision {digits[:20]!r}")
    return int(digits), end


def _written(clause: tuple[str, int], value: object) -> str:
    """Return a value as a clause of a format requests it."""
    kinds, why, write = VERBS[clause[0]]
    if kind_of(value) not in kinds:
        raise TextError(f"error during formatting: {why}, was given {kind_of(value)}")
    return write(value, clause[1])


def _shown(value: object, _: int = 0) -> str:
    if is_list(value):
        return "[" + ", ".join(map(_inner, value)) + "]"
    if is_map(value):
        pairs = [(_inner(key), _inner(each)) for key, each in value.items()]
        # Sorted, as cel-go does: a map has no order, and equal maps must give equal texts.
        return "{" + ", ".join(f"{key}:{each}" for key, each in sorted(pairs)) + "}"
    return "null" if value is None else text_of(value)


def _inner(value: object) -> str:
    """Return a value inside a list or map: as a literal of CEL."""
    if isinstance(value, str):
        return _go_quoted(value)
    if isinstance(value, bytes):
        return "b" + _go_quoted(value.decode("utf-8", "replace"))
    if isinstance(value, Duration | Timestamp):
        return f'{kind_of(value)}("{value}")'
    if isinstance(value, float):
        return f"{value:.6f}" if math.isfinite(value) else f'"{text_of_double(value)}"'
    if kind_of(value) not in VERBS["s"][0]:
        raise TextError(f"no formatting function for {kind_of(value)}")
    return _shown(value)


def _go_quoted(text: str) -> str:
    """Return a text as Go's `%q` prints it."""
    marks = text.translate(_QUOTED)
    return '"' + "".join(each if each.isprintable() else _code(each) for each in marks) + '"'


def _code(letter: str) -> str:
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _number_of(value: Any) -> float:
    if isinstance(value, str):
        if value not in ("NaN", "Infinity", "-Infinity"):
            raise TextError("error during formatting: fixed-point clause can only be used on doubles, was given string")
        return float(value)
    return float(value)


def _special(number: float) -> str:
    return "NaN" if math.isnan(number) else "∞" if number > 0 else "-∞"


def _fixed(value: object, digits: int) -> str:
    number = _number_of(value)
    # With commas, and powers of ten in raised digits below: cel-go prints in the locale en_US.
    return f"{number:,.{digits}f}" if math.isfinite(number) else _special(number)


def _scientific(value: object, digits: int) -> str:
    number = _number_of(value)
    if not math.isfinite(number):
        return _special(number)
    mantissa, _, exponent = f"{number:.{digits}e}".partition("e")
    return f"{mantissa}×10{exponent.removeprefix('+').translate(_RAISED)}"


def _based(letter: str) -> Callable[[Any, int], str]:
    def write(value: Any, _: int) -> str:
        if isinstance(value, str | bytes):
            text = (value.encode("utf-8", "replace") if isinstance(value, str) else value).hex()
            return text.upper() if letter == "X" else text
        return format(int(value), letter)

    return write


_WHOLE: Final = frozenset({"int", "uint"})
_PLAIN: Final = _WHOLE | {
    "list",
    "map",
    "double",
    "bool",
    "string",
    "timestamp",
    "bytes",
    "duration",
    "type",
    "null_type",
}
_DOUBLES: Final = frozenset({"double", "string"})
_HEX: Final = (_WHOLE | {"string", "bytes"}, "only integers, byte buffers, and strings can be formatted as hex")
_OF_STRINGS: Final = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    "timestamps"
)
VERBS: Final[dict[str, tuple[frozenset[str], str, Callable[[Any, int], str]]]] = {
    "s": (
        _PLAIN,
        _OF_STRINGS,
        _shown,
    ),
    "d": (_WHOLE, "decimal clause can only be used on integers", lambda value, _: str(int(value))),
    "f": (_DOUBLES, "fixed-point clause can only be used on doubles", _fixed),
    "e": (_DOUBLES, "scientific clause can only be used on doubles", _scientific),
    "b": (_WHOLE | {"bool"}, "only integers and bools can be formatted as binary", _based("b")),
    "o": (_WHOLE, "octal clause can only be used on integers", _based("o")),
    "x": (*_HEX, _based("x")),
    "X": (*_HEX, _based("X")),
}
"""Clauses of a format: the types that each takes, what to say of others, and how it writes."""
