# SPDX-License-Identifier: Apache-2.0
"""Label selectors: Kubernetes' text form (`app=web,tier in (a, b),!old`) and the structured form of specs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final

from pumice.cluster.api.names import label_value_problem, qualified_name_problem
from pumice.core.objects.metadata import Object
from pumice.core.texts import remembers

Labels = Mapping[str, str]
Requirement = tuple[str, str, frozenset[str]]
"""Key, operator (In, NotIn, Exists, DoesNotExist), values."""

MOST_REQUIREMENTS: Final = 256
"""Of one selector, which every object is held against; the values of one requirement may be many."""
SHOWN: Final = 200
"""Limit on the letters of a requirement in an error."""

# Nothing is tried twice: what a part has taken it keeps.
_PART: Final = re.compile(r"(?:[^,()]++|\([^()]*+\)|[()])*+")
_SET: Final = re.compile(r"\s*+(\S++)\s++(in|notin)\s*+\(([^()]*+)\)\s*+")
_EQUAL: Final = re.compile(r"\s*+([^\s=!]++)\s*+(==|=|!=)\s*+([^\s=!]*+)\s*+")
_BARE: Final = re.compile(r"\s*+(!?+)\s*+([^\s=!()]++)\s*+")


class SelectorTextError(ValueError):
    """The text is not a valid label selector."""


@remembers(1024)
def parse_selector(text: str) -> tuple[Requirement, ...]:
    """Return the requirements of a selector's text form; all must hold. Raises SelectorError."""
    if not text.strip():
        return ()
    # one more than is allowed tells enough, however long the text is
    parts = list(islice(_parts(text), MOST_REQUIREMENTS + 1))
    if len(parts) > MOST_REQUIREMENTS:
        raise SelectorTextError(f"more than {MOST_REQUIREMENTS} requirements")
    return tuple(map(_requirement, parts))


def _parts(text: str) -> Iterator[str]:
    """Return the parts between commas that stand in no brackets."""
    at = -1
    while at < len(text):
        match = _PART.match(text, at + 1)
        assert match is not None  # it takes nothing at worst
        at = match.end()
        yield match[0]


def selector_of(structured: Object | None) -> tuple[Requirement, ...]:
    """Return the requirements of a `{matchLabels, matchExpressions}` selector; None and {} select everything."""
    if not structured:
        return ()
    labels: Mapping[str, str] = structured.get("matchLabels") or {}
    parts: list[Requirement] = [(key, "In", frozenset((value,))) for key, value in labels.items()]
    parts += [
        (expression["key"], expression["operator"], frozenset(expression.get("values") or ()))
        for expression in structured.get("matchExpressions") or ()
    ]
    return tuple(parts)


def matches(requirements: tuple[Requirement, ...], labels: Labels) -> bool:
    """Return whether all requirements hold. As in Kubernetes, NotIn holds for an absent label."""
    return all(_HOLDS[operator](labels.get(key), values) for key, operator, values in requirements)


_HOLDS: Final[Mapping[str, Callable[[str | None, frozenset[str]], bool]]] = {
    "In": lambda value, values: value is not None and value in values,
    "NotIn": lambda value, values: value is None or value not in values,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
}


def _requirement(part: str) -> Requirement:
    if match := _SET.fullmatch(part):
        key, word, inside = match.groups()
        values = frozenset(value.strip() for value in inside.split(","))
        return _checked((key, "In" if word == "in" else "NotIn", values), part)
    if match := _EQUAL.fullmatch(part):
        key, sign, value = match.groups()
        return _checked((key, "NotIn" if sign == "!=" else "In", frozenset((value,))), part)
    if match := _BARE.fullmatch(part):
        return _checked((match[2], "DoesNotExist" if match[1] else "Exists", frozenset()), part)
    raise SelectorTextError(f"unable to parse requirement {part.strip()[:SHOWN]!r}")


def _checked(requirement: Requirement, part: str) -> Requirement:
    key, _, values = requirement
    problem = qualified_name_problem(key) or next(filter(None, map(label_value_problem, sorted(values))), None)
    if problem:
        raise SelectorTextError(f"unable to parse requirement {part.strip()[:SHOWN]!r}: {problem}")
    return requirement
