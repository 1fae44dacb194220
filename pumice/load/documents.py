# SPDX-License-Identifier: Apache-2.0
"""YAML text to plain data with the line of every document and list item, fast enough for 10,000 objects in one file.

Scalars, tags, merge keys and keys given twice come out as kubectl's reader has them (config/yaml_values.py,
config/scalars.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from pumice.config.scalars import resolve_for_api, resolve_tagged_for_api
from pumice.config.yaml_values import LOADER, OpenValue, ValueBuilder, bounded_events
from pumice.core.objects.metadata import Object
from pumice.core.quantity import parse_quantity
from pumice.load.places import JsonLines

# --- NodeMetrics

PERIODS: Final = ("10m", "5m")
"""One sample stands for both averages."""

Usage = dict[str, dict[str, dict[str, float]]]


def usage_of(objects: Iterable[Object]) -> Usage:
    """Return usage ÷ allocatable × 100 by node, resource (cpu, memory) and period; only nodes with metrics."""
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


def _amount(resource: str, text: object) -> float:
    if text is None:
        return 0.0
    quantity = parse_quantity(str(text))
    return float(quantity.milli_value() if resource == "cpu" else quantity.value())


_SEPARATOR: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_BYTE_ORDER_MARK: Final = re.compile(r"(?:\A|(?<=\n))\ufeff")  # also where files were joined
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
    """One document; `line` is where its content starts, `item_lines` where its `items` do; for JSON `lines` finds them.

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
    """The rest of a stream after document `number` and line `line`."""

    def __init__(self, text: str, number: int, line: int) -> None:
        self._text = text
        self._number = number
        self._line = line
        self.began = 0  # the line after the one where the last document begins

    def documents(self) -> Iterator[ManifestDocument]:
        """Yield the documents in order. Raises DocumentError at the first that is malformed."""
        try:
            events: Iterator[Any] = bounded_events(self._text, LOADER, DEEPEST)
            for event in events:
                kind: Any = event.__class__
                if kind is yaml.DocumentStartEvent:
                    self._number += 1
                    self.began = self._line + event.start_mark.line + 1
                    yield _Builder(self._number, self._line).document(events)
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


class _Builder(ValueBuilder):
    """Fills one document from its events; `line`: how many lines of the text come before theirs."""

    def __init__(self, number: int, line: int) -> None:
        super().__init__(resolve_for_api, resolve_tagged_for_api, MOST_ALIASED)
        self._document = ManifestDocument(number, 1, None)
        self._line = line

    def document(self, events: Iterator[Any]) -> ManifestDocument:
        self.build(events)
        self._document.value = self.value
        self._document.line = self._line_of(self.root)
        return self._document

    def _line_of(self, event: Any) -> int:
        return self._line + int(event.start_mark.line) + 1

    def _item(self, top: OpenValue, event: object) -> None:
        if len(self._stack) == 2 and self._stack[0].key == "items":
            self._document.item_lines.append(self._line_of(event))

    def _twice(self, top: OpenValue, event: object) -> None:
        remark = f"the key {top.key!r} is given twice; the last one counts"
        self._document.remarks.append((self._line_of(event), remark))

    def _error(self, problem: str, event: Any) -> Exception:
        return DocumentError(problem, self._line_of(event), event.start_mark.column + 1, self._document.number)
