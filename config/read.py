# SPDX-License-Identifier: Apache-2.0
"""Readers of configuration values: each error names the place, the expected and the found value."""

from __future__ import annotations

import re
from copy import copy
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import msgspec
from msgspec import inspect

from pumice.config.errors import ConfigError, ConfigSyntaxError, UnknownNameError, WrongTypeError
from pumice.config.scalars import Scalar, resolve_plain
from pumice.config.yaml_tree import Document, Path, read_documents

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

T = TypeVar("T")


class ValuePlace(msgspec.Struct, frozen=True):
    """Place of a value: its document and the path to it."""

    document: Document
    path: Path = ()

    def at(self, step: str | int) -> ValuePlace:
        """Return the place of a key or of an item."""
        return ValuePlace(self.document, (*self.path, step))

    @property
    def dotted(self) -> str:
        """Return the path as text, ``tiers[1].plugins[0].name``; a key with dots stands in brackets."""
        text = ""
        for step in self.path:
            if isinstance(step, int) or "." in step:
                text += f"[{step}]"
            else:
                text += f".{step}" if text else step
        return text

    @property
    def line(self) -> int:
        """Return the line of the value, or of the nearest value around it; 0 for a source without lines."""
        lines = self.document.lines
        # From the inside out: what a file leaves out has no line, but what it belongs in has one.
        return next((lines[self.path[:end]] for end in range(len(self.path), -1, -1) if self.path[:end] in lines), 0)

    @property
    def spelling(self) -> str | None:
        """Return the spelling of a plain scalar that is not a text, or None."""
        return self.document.texts.get(self.path)

    def wrong(self, expected: str, found: object) -> WrongTypeError:
        """Return the error for a value of the wrong kind here."""
        return WrongTypeError(expected, found, source=self.document.source, line=self.line, path=self.dotted)

    def unknown(self, what: str, name: str, known: Collection[str]) -> UnknownNameError:
        """Return the error for an unknown name."""
        return UnknownNameError(what, name, known, source=self.document.source, line=self.line, path=self.dotted)

    def error(self, kind: type[ConfigError], problem: str) -> ConfigError:
        """Return an error of this kind here."""
        return kind(problem, source=self.document.source, line=self.line, path=self.dotted)


def read_yaml(text: str, source: str, plain: Callable[[str], Scalar] = resolve_plain) -> tuple[ValuePlace, Any]:
    """Return the place of the only document of a text, and its value; None for an empty text.

    ``plain`` reads plain scalars. Raises ConfigSyntaxError with the line.
    """
    documents = read_documents(text, source, plain=plain)
    if len(documents) > 1:
        raise ValuePlace(documents[1]).error(ConfigSyntaxError, "a second YAML document: expected one")
    document = documents[0] if documents else Document(source, None)
    return ValuePlace(document), document.data


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
    """Return a mapping; null counts as an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise place.wrong("a mapping", value)
    return cast("dict[str, Any]", value)


def sequence(place: ValuePlace, value: object) -> list[Any]:
    """Return a list; null counts as an empty one."""
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        raise place.wrong("a list", value)
    # A copy: what is handed in by `from_parsed` stays its caller's.
    return list(cast("list[Any]", value))


def text(place: ValuePlace, value: object) -> str:
    """Return a text. A plain number or boolean counts with its spelling, null as an empty text, as yaml.v2 has it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        # The spelling first: `1.10` was read as the number 1.1, and a text must keep its zero.
        return place.spelling or (str(value).lower() if isinstance(value, bool) else str(value))
    raise place.wrong("a text", value)


def switch(place: ValuePlace, value: object) -> bool | None:
    """Return true or false (YAML 1.1: yes, on, ... too), or None for an absent value."""
    if value is None or isinstance(value, bool):
        return value
    raise place.wrong("true or false", value)


def known_entries(
    place: ValuePlace, value: object, known: Collection[str], strictness: Strictness, what: str = "key"
) -> dict[str, Any]:
    """Return a mapping's entries whose keys are known; the others are refused."""
    found: dict[str, Any] = {}
    for key, item in mapping(place, value).items():
        if key in known:
            found[key] = item
        else:
            strictness.refuse(place.at(key).unknown(what, key, known))
    return found


# --- Values as a type of msgspec's

_WORDS: Final = {
    "int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false", "object": "a mapping",
    "array": "a list", "null": "nothing",
}  # fmt: skip
_EXPECTED: Final = re.compile(r"Expected `([^`]*)`(.*?)(?:, got .*)?", re.DOTALL)
_FIELD: Final = re.compile(r"Object (contains unknown|missing required) field `(.*)`", re.DOTALL)
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


def shaped(place: ValuePlace, value: object, to: type[T], read: Callable[[type, Any], Any] | None = None) -> T:
    """Convert a value to a type of msgspec's. Raises WrongTypeError, UnknownNameError at the place of the problem.

    What is expected is the description in a type's Meta, or else msgspec's own words in the words of other errors.
    `read` converts to classes that msgspec does not know; its ValueError says what is expected.
    """
    try:
        return msgspec.convert(value, to, dec_hook=read)
    except msgspec.ValidationError as error:
        raise _misshapen(place, value, to, read, str(error)) from error


def _misshapen(
    place: ValuePlace, value: Any, to: Any, read: Callable[[type, Any], Any] | None, said: str
) -> ConfigError:
    """Return the error for msgspec's `Expected … - at `$.a[0][...]``, where `[...]` is some key of a mapping."""
    problem, _, where = said.partition(" - at `")
    steps: list[str | int] = []
    found = value
    for name, index in _STEP.findall(where.removesuffix("`")):
        # msgspec writes `[...]` for every key of a mapping: which one it is must be tried.
        step = int(index) if index.isdigit() else name or _culprit(value, steps, found, to, read, said)
        steps.append(step)
        found = found[step]
    here = ValuePlace(place.document, (*place.path, *steps))
    known, described = _type_at(to, steps)
    if field := _FIELD.fullmatch(problem):
        if field[1] == "contains unknown":
            return here.at(field[2]).unknown("key", field[2], known)
        try:  # what it should have been, msgspec says only of what is there
            shaped(place, _with(value, [*steps, field[2]], None), to, read)
        except ConfigError as error:
            return error
    # A description in the type says more than msgspec's words for it, so it comes first.
    expected = _EXPECTED.fullmatch(problem)
    if expected is None or described:
        return here.wrong(described or problem, found)
    return here.wrong(" or ".join(_WORDS[kind] for kind in expected[1].split(" | ")) + expected[2], found)


def _type_at(to: object, steps: Sequence[str | int]) -> tuple[Sequence[str], str]:
    """Return the keys that a type has at a path, and the description in its Meta."""
    info: Any = inspect.type_info(to)
    for step in steps:
        match getattr(info, "type", info):
            case inspect.StructType(fields=inside):
                info = next(each.type for each in inside if each.encode_name == step)
            case inspect.DictType(value_type=inner) | inspect.ListType(item_type=inner):
                info = inner
            case inspect.VarTupleType(item_type=inner):
                info = inner
            case _:
                return (), ""
    schema: dict[str, str] = getattr(info, "extra_json_schema", None) or {}
    fields: Sequence[inspect.Field] = getattr(info, "fields", ())
    return [each.encode_name for each in fields], schema.get("description", "")


def _culprit(
    value: Any, steps: Sequence[str | int], found: Any, to: Any, read: Callable[[type, Any], Any] | None, said: str
) -> str:
    """Return the key of a mapping for whose value alone msgspec has the same message."""
    for key, item in found.items():
        try:
            msgspec.convert(_with(value, steps, {key: item}), to, dec_hook=read)
        except msgspec.ValidationError as error:
            if str(error) == said:
                return str(key)
    # msgspec has just refused one of these values with these very words.
    raise AssertionError(said)


def _with(value: Any, steps: Sequence[str | int], item: Any) -> Any:
    """Return a copy of a value that has another item at a path."""
    if not steps:
        return item
    step, *rest = steps
    copied: Any = copy(value)
    copied[step] = _with(value[step] if rest else None, rest, item)
    return copied
