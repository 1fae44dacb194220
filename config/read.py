"""Readers of configuration values: each says, by place, what was expected and what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from pumice.config.errors import ConfigError, UnknownNameError, WrongTypeError
from pumice.config.yaml_tree import Document, Path

if TYPE_CHECKING:
    from collections.abc import Collection


class ValuePlace(msgspec.Struct, frozen=True):
    """Place of a value: its document and the path to it."""

    document: Document
    path: Path = ()

    def at(self, step: str | int) -> ValuePlace:
        """The place of a key or of an item."""
        return ValuePlace(self.document, (*self.path, step))

    @property
    def dotted(self) -> str:
        """``tiers[1].plugins[0].name``; a key that has dots itself stands in brackets."""
        text = ""
        for step in self.path:
            if isinstance(step, int) or "." in step:
                text += f"[{step}]"
            else:
                text += f".{step}" if text else step
        return text

    @property
    def line(self) -> int:
        """The line of the value, or of the nearest thing around it; 0 when there are no lines."""
        lines = self.document.lines
        return next((lines[self.path[:end]] for end in range(len(self.path), -1, -1) if self.path[:end] in lines), 0)

    @property
    def spelling(self) -> str | None:
        """Return the spelling of a plain scalar that is not a text, or None."""
        return self.document.texts.get(self.path)

    def wrong(self, expected: str, found: object) -> WrongTypeError:
        """The error for a value of the wrong kind here."""
        return WrongTypeError(expected, found, source=self.document.source, line=self.line, path=self.dotted)

    def unknown(self, what: str, name: str, known: Collection[str]) -> UnknownNameError:
        """The error for a name nobody knows here."""
        return UnknownNameError(what, name, known, source=self.document.source, line=self.line, path=self.dotted)

    def error(self, kind: type[ConfigError], problem: str) -> ConfigError:
        """An error of this kind here."""
        return kind(problem, source=self.document.source, line=self.line, path=self.dotted)


class Strictness:
    """Treatment of unknown names: an error, or (lenient) only a warning."""

    def __init__(self, *, lenient: bool = False) -> None:
        self.lenient = lenient
        self.warnings: list[str] = []

    def refuse(self, error: ConfigError) -> None:
        """Raise the error, or keep it as a warning: its subject is then left out."""
        if not self.lenient:
            raise error
        self.warnings.append(f"{error}; ignored")

    def pass_over(self, error: ConfigError) -> None:
        """Keep as a warning, strict or not, what Volcano passes over."""
        self.warnings.append(f"{error}; the default stays")


def mapping(place: ValuePlace, value: object) -> dict[str, Any]:
    """A mapping; nothing counts as an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise place.wrong("a mapping", value)
    return cast("dict[str, Any]", value)


def sequence(place: ValuePlace, value: object) -> list[Any]:
    """A list; nothing counts as an empty one."""
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        raise place.wrong("a list", value)
    return list(cast("list[Any]", value))


def text(place: ValuePlace, value: object) -> str:
    """A text. A plain number or boolean counts with its spelling, nothing as an empty text, as yaml.v2 has it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return place.spelling or (str(value).lower() if isinstance(value, bool) else str(value))
    raise place.wrong("a text", value)


def switch(place: ValuePlace, value: object) -> bool | None:
    """true or false (YAML 1.1: yes, on, ... too), or None where nothing is said."""
    if value is None or isinstance(value, bool):
        return value
    raise place.wrong("true or false", value)


def known_entries(
    place: ValuePlace, value: object, known: Collection[str], strictness: Strictness, what: str = "key"
) -> dict[str, Any]:
    """A mapping's entries whose keys are known; the others are refused."""
    found: dict[str, Any] = {}
    for key, item in mapping(place, value).items():
        if key in known:
            found[key] = item
        else:
            strictness.refuse(place.at(key).unknown(what, key, known))
    return found
