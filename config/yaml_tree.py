# SPDX-License-Identifier: Apache-2.0
"""YAML text as plain data plus the line of every value.

Scalars are read as yaml.v2 reads them (scalars.py). Mapping keys are texts; nested keys keep their raw spelling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
import yaml

from pumice.config.errors import ConfigSyntaxError, DuplicateKeyError
from pumice.config.scalars import Scalar, resolve_for_api, resolve_plain, resolve_tagged, resolve_tagged_for_api
from pumice.config.yaml_values import DEEPEST, LOADER, OpenValue, ValueBuilder, bounded_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    PlainReader = Callable[[str], Scalar]

Path = tuple[str | int, ...]

_MOST_ALIASED: Final = 10_000  # beyond one value a letter: aliases can make a small text enormous


class Document(msgspec.Struct, frozen=True):
    """One YAML document. ``lines`` counts from 1, by path.

    ``texts`` holds the spelling of plain scalars that are not texts; ``literals`` the paths of ``|`` blocks, inside
    which lines can be traced.
    """

    source: str
    data: Any
    lines: dict[Path, int] = {}
    texts: dict[Path, str] = {}
    literals: frozenset[Path] = frozenset()


class _PlacedBuilder(ValueBuilder):
    """Keeps the event of every value and of its key beside the data, by container and step."""

    KEY: ClassVar[str] = "a mapping's key must be a text"
    MERGE: ClassVar[str] = "<< needs a mapping"
    NO_ANCHOR: ClassVar[str] = "not YAML: the alias {!r} has no anchor"
    ITSELF: ClassVar[str] = "an alias contains itself"
    TOO_MANY: ClassVar[str] = "more than {} values"

    def __init__(self, source: str, first_line: int, size: int, plain: PlainReader) -> None:
        # Both readers must be of one sort: a document goes to the API or it does not.
        tagged = resolve_tagged_for_api if plain is resolve_for_api else resolve_tagged
        super().__init__(plain, tagged, size + _MOST_ALIASED)
        self._source = source
        self._first_line = first_line
        self._places: dict[int, dict[str | int, tuple[Any, Any]]] = {}  # by id: aliases share their anchor's
        self._lines: dict[Path, int] = {}
        self._texts: dict[Path, str] = {}
        self._literals: set[Path] = set()

    def document(self) -> Document:
        """Return the data with each value at its own paths. Raises ConfigSyntaxError where aliases nest too deeply."""
        data = self._placed(self.value, self.root, self.root, ())
        return Document(self._source, data, self._lines, self._texts, frozenset(self._literals))

    def _placed(self, value: Any, begin: Any, event: Any, path: Path) -> Any:
        if len(path) > DEEPEST:  # aliases of aliases
            raise self._error(f"nested deeper than {DEEPEST} levels", event)
        self._lines[path] = begin.start_mark.line + self._first_line
        if event.__class__ is not yaml.ScalarEvent:
            inside = self._places[id(value)]
            if value.__class__ is dict:
                return {name: self._placed(each, *inside[name], (*path, name)) for name, each in value.items()}
            return [self._placed(each, *inside[index], (*path, index)) for index, each in enumerate(value)]
        if event.style == "|":
            self._literals.add(path)
        # A text is its own spelling, and null has none that a reader needs.
        if value is not None and not isinstance(value, str):
            self._texts[path] = event.value
        return value

    def _line(self, event: Any) -> int:
        return int(event.start_mark.line) + self._first_line

    def _error(self, problem: str, event: object) -> Exception:
        return ConfigSyntaxError(problem, source=self._source, line=self._line(self._origin(event)))

    def _twice(self, top: OpenValue, event: object) -> None:
        raise DuplicateKeyError(top.key, source=self._source, line=self._line(self._origin(top.key_event)))

    def _open(self, value: dict[Any, Any] | list[Any], event: object) -> None:
        self._places[id(value)] = {}
        super()._open(value, event)

    def _item(self, top: OpenValue, event: object) -> None:
        origin = self._origin(event)
        self._places[id(top.value)][len(top.value) - 1] = (origin, origin)

    def _entry(self, top: OpenValue, value: object, event: object) -> None:
        if not top.merges:
            begin = top.key_event
            # Errors name the line of the anchor: there the wrong value is written.
            if begin.__class__ is yaml.AliasEvent or event.__class__ is yaml.AliasEvent:
                begin, event = self._origin(begin), self._origin(event)
            self._places[id(top.value)][top.key] = (begin, event)
        super()._entry(top, value, event)

    def _merge(self, top: OpenValue, value: Any, event: Any) -> None:
        inside = self._places.get(id(value), {})
        if value.__class__ is list:
            # Backwards: of several merged mappings the first has the last word.
            for index in range(len(value) - 1, -1, -1):
                self._merge(top, value[index], inside[index][1])
            return
        super()._merge(top, value, event)
        self._places[id(top.value)].update(inside)

    def _scalar(self, event: Any) -> Scalar:
        top = self._stack[-1] if self._stack else None
        if top is not None and type(top.value) is dict and not top.keyed:
            return str(event.value)  # keys keep their spelling
        return super()._scalar(event)

    def _alias(self, event: object) -> Any:
        value = super()._alias(event)
        origin = self._origin(event)
        # Read anew where the alias stands: as a key a scalar keeps its spelling, as a value it does not.
        return self._scalar(origin) if origin.__class__ is yaml.ScalarEvent else value


def read_documents(
    text: str, source: str, first_line: int = 1, *, plain: PlainReader = resolve_plain
) -> list[Document]:
    """Return all documents of a YAML text that are not empty. ``first_line``: where the text begins in its source.

    ``plain`` reads plain scalars; resolve_for_api: as they arrive at the API, which YAML reaches in the form of JSON.

    Raises ConfigSyntaxError with the line.
    """
    try:
        found: list[Document] = []
        for events in _documents(text):
            builder = _PlacedBuilder(source, first_line, len(text), plain)
            builder.build(iter(events))
            found.append(builder.document())
        return found
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = int(mark.line) + first_line if mark is not None else 0
        raise ConfigSyntaxError(f"not YAML: {error.problem or error.context}", source=source, line=line) from error
    except yaml.YAMLError as error:
        raise ConfigSyntaxError(f"not YAML: {error}", source=source) from error


def _documents(text: str) -> Iterator[list[Any]]:
    """Yield the events of each document: invalid YAML is reported before errors in the content."""
    found: list[Any] = []
    for event in bounded_events(text, LOADER):
        kind: Any = event.__class__
        if kind is yaml.DocumentStartEvent:
            found = []
        elif kind is not yaml.DocumentEndEvent:
            found.append(event)
        elif not (found[0].__class__ is yaml.ScalarEvent and found[0].value == ""):
            yield found
