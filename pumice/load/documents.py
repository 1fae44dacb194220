"""YAML text to plain data with the line of every document and list item, fast enough for 10,000 objects in one file.

Built on libyaml's events rather than on PyYAML's loader: constructing from events costs a third, and the loader would
turn timestamps into dates where Kubernetes keeps text. Scalars, tags, merge keys and keys given twice come out as
kubectl's reader has them (config/scalars.py).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from pumice.cluster.api.fields import is_list, is_mapping
from pumice.config.scalars import Scalar, as_json_number, key_text, resolve_for_api, resolve_plain, resolve_tagged
from pumice.config.yaml_tree import bounded_events
from pumice.core.objects.metadata import Object
from pumice.core.quantity import parse_quantity
from pumice.load.places import JsonLines

# --- NodeMetrics

PERIODS: Final = ("10m", "5m")
"""One sample stands for both averages."""

Usage = dict[str, dict[str, dict[str, float]]]


def usage_of(objects: Iterable[Object]) -> Usage:
    """Usage ÷ allocatable × 100 by node, resource (cpu, memory) and period; only nodes with metrics."""
    allocatable: dict[str, Object] = {}
    sampled: dict[str, Object] = {}
    for obj in objects:
        name: str = obj["metadata"]["name"]
        if obj["kind"] == "Node":
            status: Object = obj.get("status") or {}
            allocatable[name] = status.get("allocatable") or {}
        elif obj["kind"] == "NodeMetrics":
            sampled[name] = obj.get("usage") or {}
    return {name: _shares(usage, allocatable[name]) for name, usage in sampled.items() if name in allocatable}


def _shares(usage: Object, allocatable: Object) -> dict[str, dict[str, float]]:
    shares: dict[str, dict[str, float]] = {}
    for resource in ("cpu", "memory"):
        whole = _amount(resource, allocatable.get(resource))
        used = _amount(resource, usage.get(resource))
        if whole:
            shares[resource] = dict.fromkeys(PERIODS, used / whole * 100)
    return shares


def _amount(resource: str, text: Any) -> float:
    if text is None:
        return 0.0
    quantity = parse_quantity(str(text))
    return float(quantity.milli_value() if resource == "cpu" else quantity.value())


_SEPARATOR: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_BYTE_ORDER_MARK: Final = re.compile(r"(?:\A|(?<=\n))\ufeff")  # also where files were joined
_TAG: Final = "tag:yaml.org,2002:"
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
    """One document; `line` is where its content starts, `item_lines` where its `items` do; of JSON `lines` say it.

    `remarks` name what was read otherwise than its writer may think, with the line of each.
    """

    number: int
    line: int
    value: Any
    item_lines: list[int] = field(default_factory=list[int])
    lines: JsonLines | None = None
    remarks: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])


def read_documents(text: str, number: int = 0, line: int = 0) -> Iterator[ManifestDocument | DocumentError]:
    """Give the documents of a YAML stream, in order, and an error in the place of each that cannot be used.

    The text follows `number` documents and `line` lines. After an error it goes on at the next line that begins
    with `---`.
    """
    text = _BYTE_ORDER_MARK.sub("", text)
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
    """Return the offset at which the line of this number (from 0) begins, or the end of the text; always at least 1."""
    at = 0
    for _ in range(line):
        at = text.find("\n", at) + 1
        if not at:
            return len(text)
    return max(at, 1)


class _Stream:
    """Rest of a stream after document `number` and line `line`."""

    def __init__(self, text: str, number: int, line: int) -> None:
        self._text = text
        self._number = number
        self._line = line
        self.began = 0  # the line after the one where the last document begins

    def documents(self) -> Iterator[ManifestDocument]:
        """Yield the documents in order. Raises DocumentError at the first that is malformed."""
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


def _from_base64(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode("utf-8", "replace")
    except binascii.Error as error:
        raise ValueError("!!binary: not valid base64") from error


class _Open:
    """A mapping or a sequence that is being filled."""

    __slots__ = ("anchored", "before", "inherited", "key", "keyed", "merged_into", "merges", "value")

    def __init__(
        self, value: dict[Any, Any] | list[Any], anchored: _Anchored | None, before: int, merged_into: _Open | None
    ) -> None:
        self.value = value
        self.anchored = anchored
        self.before = before  # so many values came first
        self.merged_into = merged_into  # the mapping whose merge key this is the value of
        self.key: Any = None
        self.keyed = False
        self.merges = False  # its key is a merge key: one that is quoted is a key like any other
        self.inherited: frozenset[Any] = frozenset()  # keys that only merge keys have given


@dataclass(slots=True)
class _Anchored:
    """Value of an anchor and the number of values it contains; None while the anchor is being filled."""

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
                self._close(self.stack.pop(), event)
            elif kind is yaml.AliasEvent:
                self._value(self._alias(event), event)
            else:
                break  # the document's end
        return self.document

    def _open(self, value: dict[Any, Any] | list[Any], event: Any) -> None:
        before = self.values
        merged_into = self.stack[-1] if self.stack and self.stack[-1].merges and self.stack[-1].keyed else None
        self._value(value, event)
        anchored = None
        if event.anchor is not None:
            anchored = self.anchors[event.anchor]
            anchored.size = None
        self.stack.append(_Open(value, anchored, before, merged_into))

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
            if event.__class__ is yaml.AliasEvent or event.__class__ is yaml.ScalarEvent:
                self._merge(top, value, event)
            return  # a mapping or list is merged when it is whole
        if top.key in mapping and top.key not in top.inherited:
            remark = f"the key {top.key!r} is given twice; the last one counts"
            self.document.remarks.append((self.line + event.start_mark.line + 1, remark))
        top.inherited -= {top.key}
        mapping[top.key] = value

    def _close(self, ended: _Open, event: Any) -> None:
        if ended.anchored is not None:
            ended.anchored.size = self.values - ended.before
        if ended.merged_into is not None:
            self._merge(ended.merged_into, ended.value, event)

    def _merge(self, top: _Open, value: Any, event: Any) -> None:
        """Merge at the key's place: later keys override, earlier ones are overridden, as in yaml.v2."""
        for source in reversed(value) if is_list(value) else [value]:
            if not is_mapping(source):
                raise self._error("expected a mapping to merge", event)
            mapping: Any = top.value
            mapping.update(source)
            top.inherited |= source.keys()

    def _key(self, value: Any, event: Any) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, (dict, list)):
            raise self._error("expected a text as key", event)
        try:
            return key_text(resolve_plain(event.value) if event.implicit[0] else value)
        except ValueError as error:
            raise self._error(str(error), event) from error

    def _scalar(self, event: Any) -> Scalar:
        tag: str | None = event.tag
        try:
            if tag is None:
                return resolve_for_api(event.value) if event.implicit[0] else event.value
            if tag == _TAG + "binary":
                return _from_base64(event.value)
            return as_json_number(resolve_tagged(tag, event.value))
        except ValueError as error:
            raise self._error(str(error), event) from error

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
