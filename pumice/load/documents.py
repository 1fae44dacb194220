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
from typing import Any, Final

import yaml

from pumice.shapes import is_list, is_mapping

_INT: Final = re.compile(r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)\Z")
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


class DocumentError(Exception):
    """The text is not YAML, or not plain data. `line` and `column` count from 1; `document` from 1."""

    def __init__(self, problem: str, line: int, column: int, document: int) -> None:
        self.problem = problem
        self.line = line
        self.column = column
        self.document = document
        super().__init__(f"line {line}, column {column}: {problem}")


@dataclass(slots=True)
class Document:
    """One YAML document; `line` is where its content starts, `item_lines` where its top-level `items` do."""

    number: int
    line: int
    value: Any
    item_lines: list[int] = field(default_factory=list[int])


def read_documents(text: str) -> Iterator[Document]:
    """The documents of a YAML stream, in order. DocumentError at the first malformed one, after those before it."""
    number = 0
    try:
        events: Iterator[Any] = yaml.parse(text, Loader=_Loader)
        for event in events:
            if event.__class__ is yaml.DocumentStartEvent:
                number += 1
                yield _Builder(number).build(events)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        problem = " ".join(part for part in (error.context, error.problem) if part)
        raise DocumentError(f"malformed YAML: {problem}", line, column, max(1, number)) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise DocumentError(f"malformed YAML: {error.reason}", line, 1, max(1, number)) from error


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
        return float(text.replace("_", ""))
    return text


def _integer(text: str) -> int:
    digits = text.replace("_", "").lower()
    bare = digits.lstrip("+-")
    if len(bare) > 1 and bare[0] == "0" and bare[1] in "01234567":
        sign = digits[: len(digits) - len(bare)]
        return int(f"{sign}0o{bare[1:]}", 8)
    return int(digits, 0)


class _Open:
    """A mapping or a sequence that is being filled."""

    __slots__ = ("anchor", "key", "keyed", "line", "merged", "value")

    def __init__(self, value: dict[Any, Any] | list[Any], anchor: str | None, line: int) -> None:
        self.value = value
        self.anchor = anchor
        self.line = line
        self.key: Any = None
        self.keyed = False
        self.merged: list[dict[str, Any]] = []  # from merge keys; they count only where nothing else is said


class _Builder:
    """One document from its events."""

    def __init__(self, number: int) -> None:
        self.document = Document(number, 1, None)
        self.stack: list[_Open] = []
        self.anchors: dict[str, Any] = {}
        self.started = False

    def build(self, events: Iterator[Any]) -> Document:
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
        self._value(value, event)
        self.stack.append(_Open(value, event.anchor, event.start_mark.line + 1))

    def _value(self, value: Any, event: Any) -> None:
        if event.anchor is not None and event.__class__ is not yaml.AliasEvent:
            self.anchors[event.anchor] = value
        if not self.stack:
            self.document.value = value
            self.document.line = event.start_mark.line + 1
            return
        top = self.stack[-1]
        if type(top.value) is list:
            top.value.append(value)
            if len(self.stack) == 2 and self.stack[0].key == "items":
                self.document.item_lines.append(event.start_mark.line + 1)
        elif top.keyed:
            top.keyed = False
            self._entry(top, value, event)
        else:
            top.keyed = True
            top.key = self._key(value, event)

    def _entry(self, top: _Open, value: Any, event: Any) -> None:
        mapping: Any = top.value
        if top.key == "<<":
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
        if event.anchor not in self.anchors:
            raise self._error(f"the alias {event.anchor!r} has no anchor", event)
        return self.anchors[event.anchor]

    def _error(self, problem: str, event: Any) -> DocumentError:
        mark = event.start_mark
        return DocumentError(problem, mark.line + 1, mark.column + 1, self.document.number)
