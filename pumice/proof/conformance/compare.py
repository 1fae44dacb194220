"""Comparing what came out with what a case expects: exact, key by key, each difference with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal

from pumice.shapes import is_list, is_mapping

Group = Literal["decisions", "numbers", "words"]

GROUP_OF: Final[Mapping[str, Group]] = {
    "binds": "decisions",
    "evictions": "decisions",
    "pipelined": "decisions",
    "uncommitted": "decisions",
    "awaitingVolumes": "decisions",
    "phases": "decisions",
    "taskStatus": "decisions",
    "nominated": "decisions",
    "podAnnotations": "decisions",
    "queueAllocated": "numbers",
    "numaAllocatable": "numbers",
    "conditions": "words",
    "podConditions": "words",
}
"""Which of the three scores a key of an OUTCOME counts for."""


class Absence(Enum):
    """Stands where one side has no such key; an enumeration, so that it stays itself on its way between processes."""

    ABSENT = "nothing"

    def __repr__(self) -> str:
        return self.value


ABSENT: Final = Absence.ABSENT


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where expectation and outcome part: `path` is dotted, with the cycle in front of a story's."""

    group: Group
    path: str
    expected: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.path}: expected {_short(self.expected)}, was {_short(self.found)}"


def compare_outcome(expected: Mapping[str, Any], found: Mapping[str, Any], where: str = "") -> list[Difference]:
    """Differences over the keys that the expectation has; others are not checked. KeyError: a key nobody knows."""
    differences: list[Difference] = []
    for key, value in expected.items():
        wanted: Any = sorted(value) if key == "evictions" else value
        differences += compare_value(GROUP_OF[key], wanted, found.get(key), where + key)
    return differences


def compare_value(group: Group, expected: Any, found: Any, path: str) -> list[Difference]:
    """Differences of two plain values, as deep as both are mappings. Numbers are compared as float64."""
    return [Difference(group, *parts) for parts in _walk(expected, found, path)]


def _walk(expected: Any, found: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if is_mapping(expected):
        right = found if is_mapping(found) else {}
        for key in sorted({*expected, *right}):
            yield from _walk(expected.get(key, ABSENT), right.get(key, ABSENT), f"{path}.{key}")
    elif not _equal(expected, found):
        yield path, expected, found


def _equal(expected: Any, found: Any) -> bool:
    if _is_number(expected) and _is_number(found):
        return float(expected) == float(found)
    return bool(expected == found)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _short(value: Any) -> str:
    if is_list(value) and value and all(is_mapping(one) for one in value):
        return "; ".join(_condition(one) for one in value)
    return repr(value)


def _condition(condition: Mapping[str, Any]) -> str:
    """A PodGroup condition in one breath: `Unschedulable (NotEnoughResources): 2/4 tasks ...`."""
    kind = str(condition.get("type", condition))
    if condition.get("status", "True") != "True":
        kind += f"={condition['status']}"
    return f"{kind} ({condition.get('reason', '')}): {condition.get('message', '')}"
