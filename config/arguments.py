"""Readers of plugin and action arguments, with Volcano's rules (``framework/arguments.go``).

A value of the wrong type is not an error there: it is reported and the default stays. The warnings are collected here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from pumice.config.durations import EXPECTED, parse_duration
from pumice.config.errors import describe

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")

_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
_FALSE: Final = ("0", "f", "F", "false", "FALSE", "False")


class Arguments:
    """The arguments of one plugin or action; warnings name the ``owner`` (``overcommit: overcommit-factor: ...``)."""

    def __init__(self, owner: str, values: Mapping[str, Any] | None) -> None:
        self.owner = owner
        self.values: Mapping[str, Any] = values or {}
        self.warnings: list[str] = []

    def __contains__(self, key: object) -> bool:
        return key in self.values

    def get_int(self, key: str, default: int) -> int:
        """A YAML integer that fits an int64 (``GetInt``); ``1.0`` and ``"1"`` are none."""
        value = self.values.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63:
            return value
        return self._keep(key, "an integer", value, default)

    def get_float(self, key: str, default: float) -> float:
        """A YAML float or integer (``GetFloat64``)."""
        value = self.values.get(key, default)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        return self._keep(key, "a number", value, default)

    def get_bool(self, key: str, default: bool) -> bool:
        """A YAML boolean, or a text that Go's ``strconv.ParseBool`` takes (``GetBool``)."""
        value = self.values.get(key, default)
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value in _TRUE + _FALSE:
            return value in _TRUE
        return self._keep(key, "true or false", value, default)

    def get_string(self, key: str, default: str) -> str:
        """A YAML text (``GetString``); a plain number is none."""
        value = self.values.get(key, default)
        return value if isinstance(value, str) else self._keep(key, "a text", value, default)

    def get_duration_s(self, key: str, default_s: float) -> float:
        """A text that is a Go duration, in seconds."""
        value = self.values.get(key)
        if value is None:
            return default_s
        try:
            return parse_duration(value) if isinstance(value, str) else self._keep(key, EXPECTED, value, default_s)
        except ValueError:
            return self._keep(key, EXPECTED, value, default_s)

    def _keep(self, key: str, expected: str, found: object, default: T) -> T:
        self.warnings.append(f"{self.owner}: {key}: expected {expected}, was {describe(found)}; {default!r} stays")
        return default
