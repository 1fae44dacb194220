"""YAML text as plain data plus the line of every value, through PyYAML's nodes, which are made of its events here.

Scalars are read as yaml.v2 reads them (scalars.py). Mapping keys are texts; nested keys keep their raw spelling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import yaml

from pumice.config.errors import ConfigSyntaxError, DuplicateKeyError
from pumice.config.scalars import Scalar, as_json_number, resolve_plain, resolve_tagged

if TYPE_CHECKING:
    from collections.abc import Iterator

# --- Events
# They are bounded in depth: libyaml's composer calls itself for every level, without looking at the stack, and 50,000
# brackets end the process. Newer ones read no further than 1,000 levels themselves, and may reach them before we
# do, as they read ahead.

DEEPEST: Final = 128
"""Levels of mappings and lists in what is meant for a person to read; an object of the API may have as many."""
LIBYAML_SAYS: Final = "exceeded maximum nesting depth"


class TooDeepError(yaml.MarkedYAMLError):
    """More levels than a real file has; its mark is where the first one too many begins."""


def bounded_events(text: str, loader: Any, deepest: int = DEEPEST) -> Iterator[Any]:
    """The events in order, as ``yaml.parse`` gives them. Raises yaml.YAMLError, and TooDeepError for more levels than
    `deepest`, which is 1,000 at most.
    """
    depth, problem = 0, f"nested deeper than {deepest} levels"
    events: Iterator[Any] = yaml.parse(text, Loader=loader)
    try:
        for event in events:
            kind: Any = event.__class__
            if kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                depth += 1
                if depth > deepest:
                    raise TooDeepError(problem=problem, problem_mark=event.start_mark)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                depth -= 1
            yield event
    except yaml.MarkedYAMLError as error:
        if error.problem != LIBYAML_SAYS:
            raise
        raise TooDeepError(problem=problem, problem_mark=error.problem_mark) from error


Path = tuple[str | int, ...]

_PLAIN = "plain"
_QUOTED = "quoted"
_MOST_ALIASED = 10_000  # beyond one value a letter: aliases can make a small text enormous


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


class _Composer:
    """Nodes of one document from its events, without a call for every level."""

    def __init__(self) -> None:
        self._anchors: dict[str, yaml.Node] = {}
        self._open: list[tuple[Any, list[yaml.Node]]] = []  # with what has come of each

    def root(self, events: Iterator[Any]) -> yaml.Node:
        """The root; `events` stand behind the document's start, and end up behind its end."""
        root: yaml.Node | None = None
        for event in events:
            if isinstance(event, yaml.DocumentEndEvent):
                break
            if isinstance(event, yaml.CollectionEndEvent):
                self._close()
                continue
            node = self._node(event)
            if self._open:
                self._open[-1][1].append(node)
            root = root or node
            if isinstance(event, yaml.CollectionStartEvent):
                self._open.append((node, []))
        assert root is not None  # a document without one has an empty scalar
        return root

    def _node(self, event: Any) -> yaml.Node:
        start, end = event.start_mark, event.end_mark
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                problem = f"the alias {event.anchor!r} has no anchor"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=start)
            return self._anchors[event.anchor]
        node: yaml.Node
        if isinstance(event, yaml.ScalarEvent):
            node = yaml.ScalarNode(_scalar_tag(event), event.value, start, end, event.style)
        else:
            mapping = isinstance(event, yaml.MappingStartEvent)
            node = (yaml.MappingNode if mapping else yaml.SequenceNode)("", [], start)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _close(self) -> None:
        node, inside = self._open.pop()
        if isinstance(node, yaml.MappingNode):
            node.value = list(zip(inside[::2], inside[1::2], strict=True))
        else:
            node.value = inside


def _scalar_tag(event: Any) -> str:
    """Keeps apart what PyYAML's resolvers would mix: plain scalars, quoted ones, and explicit tags."""
    if event.tag is None or event.tag == "!":
        return _PLAIN if event.implicit[0] else _QUOTED
    return str(event.tag)


class _Reader:
    """Builds one Document from its root node."""

    def __init__(self, source: str, first_line: int, size: int, *, for_api: bool) -> None:
        self._source = source
        self._for_api = for_api
        self._most = size + _MOST_ALIASED
        self._first_line = first_line
        self._values = 0
        self._open: set[int] = set()
        self.lines: dict[Path, int] = {}
        self.texts: dict[Path, str] = {}
        self.literals: set[Path] = set()

    def document(self, root: yaml.Node) -> Document:
        data = self._value(root, ())
        return Document(self._source, data, self.lines, self.texts, frozenset(self.literals))

    def _line(self, node: yaml.Node) -> int:
        return int(node.start_mark.line) + self._first_line

    def _value(self, node: yaml.Node, path: Path) -> Any:
        self._values += 1
        if self._values > self._most:
            raise self._error(node, f"more than {self._most} values")
        if len(path) > DEEPEST:  # aliases of aliases
            raise self._error(node, f"nested deeper than {DEEPEST} levels")
        self.lines.setdefault(path, self._line(node))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if id(node) in self._open:
            raise self._error(node, "an alias contains itself")
        self._open.add(id(node))
        value = self._mapping(node, path) if isinstance(node, yaml.MappingNode) else self._sequence(node, path)
        self._open.discard(id(node))
        return value

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Scalar:
        text: str = node.value
        if node.style == "|":
            self.literals.add(path)
        if node.tag == _QUOTED:
            return text
        try:
            value = resolve_plain(text) if node.tag == _PLAIN else resolve_tagged(node.tag, text)
            value = as_json_number(value) if self._for_api else value
        except ValueError as error:
            raise self._error(node, str(error)) from error
        if value is not None and not isinstance(value, str):
            self.texts[path] = text
        return value

    def _sequence(self, node: yaml.Node, path: Path) -> list[Any]:
        return [self._value(child, (*path, index)) for index, child in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        own: set[str] = set()
        for key, child in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(key, "a mapping's key must be a text")
            name: str = key.value
            if name == "<<" and key.tag == _PLAIN:
                found.update(self._merged(child, path))
                continue
            if name in own:
                raise DuplicateKeyError(name, source=self._source, line=self._line(key))
            own.add(name)
            self.lines[(*path, name)] = self._line(key)
            found[name] = self._value(child, (*path, name))
        return found

    def _merged(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        """Return the keys that ``<<: *anchor`` or a list of anchors merges in; the first of a list wins."""
        if isinstance(node, yaml.SequenceNode):
            merged: dict[str, Any] = {}
            for child in reversed(node.value):
                merged.update(self._merged(child, path))
            return merged
        value = self._value(node, path)
        if not isinstance(value, dict):
            raise self._error(node, "<< needs a mapping")
        return value  # pyright: ignore[reportUnknownVariableType]

    def _error(self, node: yaml.Node, problem: str) -> ConfigSyntaxError:
        return ConfigSyntaxError(problem, source=self._source, line=self._line(node))


def read_documents(text: str, source: str, first_line: int = 1, *, for_api: bool = False) -> list[Document]:
    """Return all documents of a YAML text that are not empty. ``first_line``: where the text begins in its source.

    ``for_api``: numbers as they arrive at the API, which YAML reaches in the form of JSON.

    Raises ConfigSyntaxError with the line.
    """
    try:
        return [_Reader(source, first_line, len(text), for_api=for_api).document(root) for root in _roots(text)]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = int(mark.line) + first_line if mark is not None else 0
        raise ConfigSyntaxError(f"not YAML: {error.problem or error.context}", source=source, line=line) from error
    except yaml.YAMLError as error:
        raise ConfigSyntaxError(f"not YAML: {error}", source=source) from error


def _roots(text: str) -> Iterator[yaml.Node]:
    events = bounded_events(text, LOADER)
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            root = _Composer().root(events)
            if not (isinstance(root, yaml.ScalarNode) and root.value == ""):
                yield root


LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser, or PyYAML's own where it is missing."""
