# SPDX-License-Identifier: Apache-2.0
"""Label selectors as apimachinery reads them (`labels.NewRequirement`, `LabelSelectorAsSelector`).

What is valid and what matches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pumice.config.errors import RequestError
from pumice.core.go_numbers import parse_int
from pumice.core.objects.metadata import Object
from pumice.core.texts import remembers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS = (*_LABEL_OPERATORS, "Gt", "Lt")


class SelectorError(RequestError):
    """A selector that Kubernetes refuses; the text says which part and why."""

    code = 422
    reason = "Invalid"


parse_int64: Final = remembers(65536)(parse_int)
"""Read a number of 64 bits; remembers, since nodes are asked again and again."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One key, operator and its values, known to be valid. Operators: In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def accepts(self, value: str | None) -> bool:
        """Return whether a label of this value (None: no such label) satisfies the requirement. Gt and Lt compare
        int64.

        Anything else fails them.
        """
        if self.operator == "Exists":
            return value is not None
        if self.operator == "DoesNotExist":
            return value is None
        if self.operator == "NotIn":
            return value is None or value not in self.values
        if value is None:
            return False
        if self.operator == "In":
            return value in self.values
        number, bound = parse_int64(value), parse_int64(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "Gt" else number < bound


def _check_key(key: str) -> None:
    prefix, slash, name = key.rpartition("/")
    if slash and (not prefix or len(prefix) > 253 or _PREFIX.fullmatch(prefix) is None):
        raise SelectorError(f"key {key!r}: the part before the slash must be a DNS subdomain")
    if not name or len(name) > 63 or _NAME.fullmatch(name) is None:
        raise SelectorError(
            f"key {key!r}: must be at most 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends"
        )


def _check_value(key: str, value: str) -> None:
    if value and (len(value) > 63 or _NAME.fullmatch(value) is None):
        raise SelectorError(f"key {key!r}: value {value!r} must be at most 63 letters, digits, '-', '_' or '.'")


def _check_count(key: str, operator: str, values: tuple[str, ...]) -> None:
    if operator in ("In", "NotIn") and not values:
        raise SelectorError(f"key {key!r}: {operator} needs at least one value")
    if operator in ("Exists", "DoesNotExist") and values:
        raise SelectorError(f"key {key!r}: {operator} takes no values")
    if operator in ("Gt", "Lt") and (len(values) != 1 or parse_int64(values[0]) is None):
        raise SelectorError(f"key {key!r}: {operator} needs exactly one integer")


def requirement(expression: Object, operators: Sequence[str] = _NODE_OPERATORS) -> Requirement:
    """Read one matchExpression; raises SelectorError where Kubernetes would."""
    key, operator = str(expression.get("key") or ""), str(expression.get("operator") or "")
    values = tuple(str(v) for v in expression.get("values") or ())
    if operator not in operators:
        raise SelectorError(f"key {key!r}: unknown operator {operator!r}; known: {', '.join(operators)}")
    _check_key(key)
    _check_count(key, operator, values)
    for value in values:
        _check_value(key, value)
    return Requirement(key, operator, values)


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements that must all hold. `nothing`: the absent selector, which matches no labels.

    No requirements at all match every set.
    """

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    @property
    def empty(self) -> bool:
        """Return whether the selector restricts nothing (an absent selector is not empty: it selects nothing)."""
        return not self.nothing and not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether these labels satisfy it."""
        return not self.nothing and all(r.accepts(labels.get(r.key)) for r in self.requirements)

    def restricted_to(self, labels: Mapping[str, str]) -> LabelSelector:
        """Return this selector with `labels` required, too (matchLabelKeys); an absent selector stays absent."""
        if self.nothing:
            return self
        return LabelSelector((*(Requirement(k, "In", (v,)) for k, v in sorted(labels.items())), *self.requirements))


NOTHING = LabelSelector(nothing=True)


def label_selector(selector: Object | None) -> LabelSelector:
    """Read a LabelSelector (matchLabels, matchExpressions); raises SelectorError where Kubernetes would."""
    if selector is None:
        return NOTHING
    equal: Mapping[str, str] = selector.get("matchLabels") or {}
    found = [requirement({"key": k, "operator": "In", "values": [v]}) for k, v in sorted(equal.items())]
    found += [requirement(expression, _LABEL_OPERATORS) for expression in selector.get("matchExpressions") or ()]
    return LabelSelector(tuple(found))
