"""YAML text to plain data with the line of every document and list item, fast enough for 10,000 objects in one file.

Built on libyaml's events rather than on PyYAML's loader: constructing from events costs a third, and the loader would
turn timestamps into dates where Kubernetes keeps text. Scalars resolve as Kubernetes' own YAML reader resolves them
(Go's yaml.v2: YAML 1.1 booleans, octal and hexadecimal integers, no sexagesimals, no timestamps).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from typing import Any, Final

import yaml

from config.yaml_events import bounded_events
from pumice.load.places import JsonLines
from pumice.shapes import is_list, is_mapping

_INT: Final = re.compile(r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)\Z")
_LONGEST_INT: Final = 66  # 64 bits in binary, with their prefix
_SEPARATOR: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_TAG: Final = "tag:yaml.org,2002:"
_PLAIN_TAGS: Final = (None, "!", *(_TAG + name for name in ("null", "bool", "int", "float", "map", "seq")))
_Loader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DEEPEST: Final = 1_000
"""Levels of a document: more than an object may have, so that one of a long list can be named for it."""
MOST_ALIASED: Final = 1_000_000
"""Values of a document that aliases may stand for: the shortest text could say more than fits into memory."""


class DocumentError(Exception):
    """The text is not YAML, or not plain data. `line` and `column` count from 1; `document` from 1."""

    def __init__(self, problem: str, line: int, column: int, document: int) -> None:
        self.problem = problem
        self.line = line
        self.column = column
        self.document = document
        super().__init__(f"line {line}, column {column}: {problem}")


@dataclass(slots=True)
class ManifestDocument:
    """One document; `line` is where its content starts, `item_lines` where its `items` do; of JSON `lines` say it."""

    number: int
    line: int
    value: Any
    item_lines: list[int] = field(default_factory=list[int])
    lines: JsonLines | None = None


def read_documents(text: str) -> Iterator[ManifestDocument | DocumentError]:
    """The documents of a YAML stream, in order, and an error in the place of each that cannot be used.

    After an error it goes on at the next line that begins with `---`.
    """
    number, line = 0, 0
    while True:
        stream = _Stream(text, number, line)
        try:
            yield from stream.documents()
        except DocumentError as error:
            yield error
            number = error.document
            follows = _SEPARATOR.search(text, _start_of(text, max(error.line - 1, stream.began) - line))
            if follows is None:
                return
            line += text.count("\n", 0, follows.start())
            text = text[follows.start() :]
        else:
            return


def _start_of(text: str, line: int) -> int:
    """Where the line of this number (from 0) begins, or the text ends; never its very beginning."""
    at = 0
    for _ in range(line):
        at = text.find("\n", at) + 1
        if not at:
            return len(text)
    return max(at, 1)


class _Stream:
    """What follows document `number` and line `line`."""

    def __init__(self, text: str, number: int, line: int) -> None:
        self._text = text
        self._number = number
        self._line = line
        self.began = 0  # the line after the one where the last document begins

    def documents(self) -> Iterator[ManifestDocument]:
        """In order. Raises DocumentError at the first that is malformed."""
        try:
            events: Iterator[Any] = bounded_events(self._text, _Loader, DEEPEST)
            for event in events:
                kind: Any = event.__class__
                if kind is yaml.DocumentStartEvent:
                    self._number += 1
                    self.began = self._line + event.start_mark.line + 1
                    yield _Builder(self._number, self._line).build(events)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            problem = " ".join(part for part in (error.context, error.problem) if part)
            raise self._error(f"malformed YAML: {problem}", line, column) from error
        except yaml.reader.ReaderError as error:
            line = self._text.count("\n", 0, error.position) + 1
            raise self._error(f"malformed YAML: {error.reason}", line, 1) from error

    def _error(self, problem: str, line: int, column: int) -> DocumentError:
        return DocumentError(problem, self._line + line, column, max(1, self._number))


@lru_cache(maxsize=65_536)
def resolve(text: str) -> Any:
    """The value of a plain scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _INT.match(text):
        return _integer(text)
    if _FLOAT.match(text):
        return _long(text)
    return text


def _integer(text: str) -> int | float | str:
    """A whole number of 64 bits; a longer one is a fraction to Go, or a text when it has another base."""
    digits = text.replace("_", "").lower()
    bare = digits.lstrip("+-")
    if len(bare) > _LONGEST_INT:
        return _long(text)
    if len(bare) > 1 and bare[0] == "0" and bare[1] in "01234567":
        sign = digits[: len(digits) - len(bare)]
        number = int(f"{sign}0o{bare[1:]}", 8)
    else:
        number = int(digits, 0)
    return number if -(2**63) <= number < 2**64 else _long(text)


def _long(text: str) -> float | str:
    found = float(text.replace("_", "")) if _FLOAT.match(text) else text
    return text if found in (inf, -inf) else found


class _Open:
    """A mapping or a sequence that is being filled."""

    __slots__ = ("anchored", "before", "key", "keyed", "merged", "merges", "value")

    def __init__(self, value: dict[Any, Any] | list[Any], anchored: _Anchored | None, before: int) -> None:
        self.value = value
        self.anchored = anchored
        self.before = before  # so many values came first
        self.key: Any = None
        self.keyed = False
        self.merges = False  # its key is a merge key: one that is quoted is a key like any other
        self.merged: list[dict[str, Any]] = []  # from merge keys; they count only where nothing else is said


@dataclass(slots=True)
class _Anchored:
    """What an anchor stands for, and of how many values it is; None while it is being filled."""

    value: Any
    size: int | None


class _Builder:
    """One document from its events; `line`: how many lines of the text come before theirs."""

    def __init__(self, number: int, line: int = 0) -> None:
        self.document = ManifestDocument(number, 1, None)
        self.line = line
        self.stack: list[_Open] = []
        self.anchors: dict[str, _Anchored] = {}
        self.values = 0  # that there are, each alias counted as what it stands for
        self.aliased = 0

    def build(self, events: Iterator[Any]) -> ManifestDocument:
        for event in events:
            kind: Any = event.__class__
            if kind is yaml.ScalarEvent:
                self._value(self._scalar(event), event)
            elif kind is yaml.MappingStartEvent:
                self._open({}, event)
            elif kind is yaml.SequenceStartEvent:
                self._open([], event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._close(self.stack.pop())
            elif kind is yaml.AliasEvent:
                self._value(self._alias(event), event)
            else:
                break  # the document's end
        return self.document

    def _open(self, value: dict[Any, Any] | list[Any], event: Any) -> None:
        if event.tag not in _PLAIN_TAGS:
            raise self._error(f"the tag {event.tag!r} is not supported", event)
        before = self.values
        self._value(value, event)
        anchored = None
        if event.anchor is not None:
            anchored = self.anchors[event.anchor]
            anchored.size = None
        self.stack.append(_Open(value, anchored, before))

    def _value(self, value: Any, event: Any) -> None:
        self.values += 1
        if event.anchor is not None and event.__class__ is not yaml.AliasEvent:
            self.anchors[event.anchor] = _Anchored(value, 1)
        if not self.stack:
            self.document.value = value
            self.document.line = self.line + event.start_mark.line + 1
            return
        top = self.stack[-1]
        if type(top.value) is list:
            top.value.append(value)
            if len(self.stack) == 2 and self.stack[0].key == "items":
                self.document.item_lines.append(self.line + event.start_mark.line + 1)
        elif top.keyed:
            top.keyed = False
            self._entry(top, value, event)
        else:
            top.keyed = True
            top.key = self._key(value, event)
            top.merges = value == "<<" and event.__class__ is yaml.ScalarEvent and event.implicit[0]

    def _entry(self, top: _Open, value: Any, event: Any) -> None:
        mapping: Any = top.value
        if top.merges:
            self._merge(top, value, event)
        elif top.key in mapping:
            raise self._error(f"the key {top.key!r} is given twice", event)
        else:
            mapping[top.key] = value

    def _merge(self, top: _Open, value: Any, event: Any) -> None:
        for source in value if is_list(value) else [value]:
            if not is_mapping(source):
                raise self._error("expected a mapping to merge", event)
            top.merged.append(source)

    def _close(self, ended: _Open) -> None:
        if ended.anchored is not None:
            ended.anchored.size = self.values - ended.before
        mapping: Any = ended.value
        for source in ended.merged:
            for key, inherited in source.items():
                mapping.setdefault(key, inherited)

    def _key(self, value: Any, event: Any) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, (dict, list)):
            raise self._error("expected a text as key", event)
        return str(event.value)

    def _scalar(self, event: Any) -> Any:
        tag: str | None = event.tag
        if tag in _PLAIN_TAGS and event.implicit[0]:
            return resolve(event.value)
        if tag is None or tag in ("!", _TAG + "str"):
            return event.value
        if tag in _PLAIN_TAGS:
            return resolve(event.value)
        raise self._error(f"the tag {tag!r} is not supported", event)

    def _alias(self, event: Any) -> Any:
        anchored = self.anchors.get(event.anchor)
        if anchored is None:
            raise self._error(f"the alias {event.anchor!r} has no anchor", event)
        if anchored.size is None:
            raise self._error(f"the alias {event.anchor!r} contains itself", event)
        self.values += anchored.size - 1
        self.aliased += anchored.size
        if self.aliased > MOST_ALIASED:
            raise self._error(f"aliases stand for more than {MOST_ALIASED} values", event)
        return anchored.value

    def _error(self, problem: str, event: Any) -> DocumentError:
        mark = event.start_mark
        return DocumentError(problem, self.line + mark.line + 1, mark.column + 1, self.document.number)
