# SPDX-License-Identifier: Apache-2.0
"""Arguments of plugins and actions as records: the name, the kind of value, the default and the purpose of each.

The reader of an argument and the check of a configuration are the same function, so they cannot differ. A value of
another kind is not an error in Volcano (`framework/arguments.go`): the default stays, and the loader warns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from pumice.config.durations import EXPECTED, parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

T = TypeVar("T")
N = TypeVar("N", int, float)
PluginArguments = dict[str, Any]
"""Values by the name of an argument, as a configuration gives them."""

# What Go's `strconv.ParseBool` takes, and nothing else.
_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
_FALSE: Final = ("0", "f", "F", "false", "FALSE", "False")
ANY_ENDING: Final = "*"


@dataclass(frozen=True)
class ArgumentKind(Generic[T]):
    """A kind of value: its name in a sentence, and its reader, which raises ValueError for a value of another kind."""

    expected: str
    read: Callable[[Any], T]

    def holds(self, value: object) -> bool:
        """Return whether a value is of this kind."""
        try:
            self.read(value)
        except ValueError:
            return False
        return True


@dataclass(frozen=True)
class Argument(Generic[T]):
    """An argument that a plugin or an action reads. A name that ends in `*` stands for any ending.

    `what` says in a sentence what the argument is for, `shown` the default in words where its value does not.
    """

    name: str
    kind: ArgumentKind[T]
    default: T
    what: str
    shown: str = ""

    def of(self, values: Mapping[str, Any], ending: str = "") -> T:
        """Return the value among a plugin's arguments, else the default. `ending`: what stands for `*`."""
        return self.kept(values, self.default, ending)

    def kept(self, values: Mapping[str, Any], other: T, ending: str = "") -> T:
        """Return the value, else another one in place of the default."""
        name = self.name.removesuffix(ANY_ENDING) + ending
        if name not in values:
            return other
        try:
            return self.kind.read(values[name])
        except ValueError:
            return other

    def is_named(self, name: str) -> bool:
        """Return whether a configuration means this argument by a name."""
        start = self.name.removesuffix(ANY_ENDING)
        # A `*` stands for at least one letter: the bare beginning names nothing.
        return name == self.name if start == self.name else name.startswith(start) and name != start

    @property
    def default_words(self) -> str:
        """Return the default as people write it."""
        if self.shown:
            return self.shown
        return str(self.default).lower() if isinstance(self.default, bool) else f"{self.default}" or "none"


def argument_named(name: str, known: Sequence[Argument[Any]]) -> Argument[Any] | None:
    """Return the argument that a configuration means by a name; None for an unknown name."""
    return next((each for each in known if each.is_named(name)), None)


# --- Kinds
# The first four as Volcano's GetInt, GetFloat64, GetBool and GetString have them.


def _integer(value: object) -> int:
    # In Python a bool is an int, and an int has no end; in Go neither is so.
    if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63:
        return value
    raise ValueError(value)


def _number(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise ValueError(value)


def _switch(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in _TRUE + _FALSE:
        return value in _TRUE
    raise ValueError(value)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise ValueError(value)


def _duration(value: object) -> float:
    return parse_duration(_text(value))


def _names(value: object) -> tuple[str, ...]:
    return tuple(name.strip() for name in _text(value).split(",") if name.strip())


def _list(value: object) -> list[Any]:
    if isinstance(value, list):
        return value  # pyright: ignore[reportUnknownVariableType]
    raise ValueError(value)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(_text(each) for each in _list(value))


def _mapping(value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    raise ValueError(value)


INTEGER: Final = ArgumentKind("an integer", _integer)
NUMBER: Final = ArgumentKind("a number", _number)
SWITCH: Final = ArgumentKind("true or false", _switch)
TEXT: Final = ArgumentKind("a text", _text)
DURATION: Final = ArgumentKind(EXPECTED, _duration)
NAMES: Final = ArgumentKind("a text: names with commas between", _names)
TEXTS: Final = ArgumentKind("a list of texts", _texts)
MAPPING: Final = ArgumentKind("a mapping", _mapping)
LIST: Final = ArgumentKind("a list", _list)
ANYTHING: Final = ArgumentKind[Any]("anything", lambda value: value)


def at_least(kind: ArgumentKind[N], least: N, why: str = "") -> ArgumentKind[N]:
    """Return the kind of numbers from a bound on; `why` explains the bound in brackets."""

    def read(value: object) -> N:
        number = kind.read(value)
        if number < least:
            raise ValueError(value)
        return number

    return ArgumentKind(f"{kind.expected} of at least {least:g}{f' ({why})' if why else ''}", read)
