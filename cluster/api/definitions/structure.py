# SPDX-License-Identifier: Apache-2.0
"""Check that a definition's schema is structural: typed at every level, so that objects can be pruned and defaulted."""

from __future__ import annotations

from typing import Any, Final

from pumice.cluster.api.definitions.rules import RULES, unreadable
from pumice.cluster.api.refusals import Cause, invalid_value, required, unsupported
from pumice.core.kube.patterns import PatternError, pattern_of
from pumice.core.objects.metadata import Object, is_list, is_mapping

TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"

MOST_STEPS: Final = 20_000
"""Instructions of all regular expressions of a schema together, each counted once."""
MOST_BAD_PATTERNS: Final = 5
"""Limit on the bad ones in an answer: finding out that one is too large takes milliseconds."""

_NUMBERS: Final = (
    "maximum", "minimum", "maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties",
    "multipleOf",
)  # fmt: skip
_FLAGS: Final = ("nullable", "uniqueItems", "exclusiveMinimum", "exclusiveMaximum", INT_OR_STRING, PRESERVE, EMBEDDED)
_TEXTS: Final = ("pattern", "format", "x-kubernetes-list-type", "x-kubernetes-map-type", "description", "title")
_NAMES: Final = ("required", "x-kubernetes-list-map-keys")
_JUNCTORS: Final = ("allOf", "anyOf", "oneOf")
_LISTS: Final = ("enum", RULES, *_JUNCTORS)


def structure_problems(schema: object, path: str) -> list[Cause]:
    """Return all problems of a schema; `path` is its place. The root is an object."""
    if is_mapping(schema) and schema.get("type", "object") != "object":
        return [invalid_value(f"{path}.type", schema["type"], "must be object at the root")]
    if is_mapping(schema) and "type" not in schema:
        return [required(f"{path}.type", "must not be empty at the root")]
    found: list[Cause] = []
    patterns = _Patterns()
    ruled: list[tuple[Object, str]] = []
    # a list and no recursion: how deep a schema nests is its author's choice
    waiting: list[tuple[object, str, bool]] = [(schema, path, True)]
    while waiting:
        part, place, typed = waiting.pop()
        if not is_mapping(part):
            found.append(invalid_value(place, type(part).__name__, "a schema is a mapping"))
            continue
        node = part
        found += _node_problems(node, place, typed=typed) or patterns.problems(node, place)
        waiting += _below(node, place, typed=typed)
        if RULES in node:
            ruled.append((node, place))
    if found:  # rules are about types, which are not sound then
        return found
    return [cause for node, place in ruled for cause in unreadable(node, place, root=place == path)]


def _node_problems(node: Object, path: str, *, typed: bool) -> list[Cause]:
    found: list[Cause] = []
    kind: Any = node.get("type")
    if kind is not None and kind not in TYPES:
        found.append(unsupported(f"{path}.type", kind, TYPES))
    if typed and kind is None and not node.get(INT_OR_STRING) and not node.get(PRESERVE):
        found.append(required(f"{path}.type", "must not be empty for specified object fields"))
    if "$ref" in node:
        found.append(invalid_value(f"{path}.$ref", node["$ref"], "references are not supported"))
    if kind == "array" and typed and not isinstance(node.get("items"), dict):
        found.append(required(f"{path}.items", "must be specified"))
    found += [
        invalid_value(f"{path}.{name}", node[name], "must be a number")
        for name in _NUMBERS
        if name in node and (isinstance(node[name], bool) or not isinstance(node[name], int | float))
    ]
    found += [
        invalid_value(f"{path}.{name}", node[name], "must be true or false")
        for name in _FLAGS
        if name in node and not isinstance(node[name], bool)
    ]
    for names, holds, what in (
        (_TEXTS, _is_text, "a string"),
        (_NAMES, _is_texts, "a list of names"),
        (_LISTS, is_list, "a list"),
    ):
        wrong = [name for name in names if name in node and not holds(node[name])]
        found += [invalid_value(f"{path}.{name}", node[name], f"must be {what}") for name in wrong]
    return found


class _Patterns:
    """The regular expressions of one schema; all are compiled together when an object comes."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._steps = self._bad = 0

    def problems(self, node: Object, path: str) -> list[Cause]:
        """Return the problems of the schema at this place; the search ends after several bad ones."""
        pattern = node.get("pattern")
        if pattern is None or pattern in self._seen or self._bad >= MOST_BAD_PATTERNS:
            return []
        self._seen.add(pattern)
        try:
            self._steps += pattern_of(pattern).steps
            if self._steps > MOST_STEPS:
                raise PatternError(f"the schema's patterns have more than {MOST_STEPS} steps together")
        except PatternError as error:
            self._bad += 1
            return [invalid_value(f"{path}.pattern", pattern, f"must be a valid regular expression: {error}")]
        return []


def _below(node: Object, path: str, *, typed: bool) -> list[tuple[object, str, bool]]:
    """Return the schemas inside a schema, their places, and whether they must have a type."""
    parts: list[tuple[object, str, bool]] = []
    properties = node.get("properties")
    if is_mapping(properties):
        named = properties
        parts += [(named[name], f"{path}.properties[{name}]", typed) for name in named]
    elif properties is not None:
        parts.append((properties, f"{path}.properties", typed))
    if (items := node.get("items")) is not None:
        parts.append((items, f"{path}.items", typed))
    if not isinstance(more := node.get("additionalProperties", True), bool):
        parts.append((more, f"{path}.additionalProperties", typed))
    # structural schemas state types outside of `allOf` and its like; inside they only narrow values down
    for name in _JUNCTORS:
        listed = node.get(name)
        for index, part in enumerate(listed if is_list(listed) else ()):
            parts.append((part, f"{path}.{name}[{index}]", False))
    if "not" in node:
        parts.append((node["not"], f"{path}.not", False))
    return parts


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_texts(value: object) -> bool:
    return is_list(value) and all(isinstance(each, str) for each in value)
