"""YAML text as plain data plus the line of every value, through PyYAML's node tree.

Scalars are read as yaml.v2 reads them (scalars.py). Mapping keys are texts; nested keys keep their raw spelling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import yaml

from config.errors import ConfigSyntaxError
from config.scalars import Scalar, resolve_plain, resolve_tagged

if TYPE_CHECKING:
    from collections.abc import Iterator

Path = tuple[str | int, ...]

_PLAIN = "plain"
_QUOTED = "quoted"
_MOST_VALUES = 100_000  # aliases can make a small text enormous


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


class _Tagging:
    """Keeps apart what PyYAML's resolvers would mix: plain scalars, quoted ones, and explicit tags."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        del value
        if kind is yaml.ScalarNode:
            return _PLAIN if implicit[0] else _QUOTED
        return "tag:yaml.org,2002:map" if kind is yaml.MappingNode else "tag:yaml.org,2002:seq"


class PureLoader(_Tagging, yaml.SafeLoader):  # pyright: ignore[reportIncompatibleMethodOverride]
    """PyYAML's own parser, for where libyaml is missing."""


class _Reader:
    """Builds one Document from its root node."""

    def __init__(self, source: str, first_line: int) -> None:
        self._source = source
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
        if self._values > _MOST_VALUES:
            raise self._error(node, f"more than {_MOST_VALUES} values")
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
                raise self._error(key, f"the key {name!r} stands here twice")
            own.add(name)
            self.lines[(*path, name)] = self._line(key)
            found[name] = self._value(child, (*path, name))
        return found

    def _merged(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        """What ``<<: *anchor`` or a list of such brings in; of a list the first counts."""
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


def read_documents(text: str, source: str, first_line: int = 1) -> list[Document]:
    """All documents of a YAML text that are not empty. ``first_line``: where the text begins in its source.

    Raises ConfigSyntaxError with the line.
    """
    try:
        return [_Reader(source, first_line).document(root) for root in _roots(text)]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = int(mark.line) + first_line if mark is not None else 0
        raise ConfigSyntaxError(f"not YAML: {error.problem or error.context}", source=source, line=line) from error
    except yaml.YAMLError as error:
        raise ConfigSyntaxError(f"not YAML: {error}", source=source) from error
    except RecursionError as error:
        raise ConfigSyntaxError("nested too deeply", source=source) from error


def _roots(text: str) -> Iterator[yaml.Node]:
    loader = _LOADER(text)
    try:
        while loader.check_node():
            root = loader.get_node()
            if root is not None and not (isinstance(root, yaml.ScalarNode) and root.value == ""):
                yield root
    finally:
        loader.dispose()


def _fast_loader() -> Any:
    class _FastLoader(_Tagging, yaml.CSafeLoader):  # pyright: ignore[reportIncompatibleMethodOverride]
        pass

    return _FastLoader


_LOADER: Final[Any] = _fast_loader() if yaml.__with_libyaml__ else PureLoader
