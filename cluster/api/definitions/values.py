# SPDX-License-Identifier: Apache-2.0
"""Validation of an object by its definition's schema, in the words of Kubernetes' validation."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from pumice.cluster.api.definitions.rules import RULES, rule_problems
from pumice.cluster.api.definitions.structure import EMBEDDED, INT_OR_STRING, PRESERVE
from pumice.cluster.api.definitions.work import Work
from pumice.cluster.api.refusals import Cause, duplicate, required, unsupported
from pumice.core.kube.patterns import PatternError, pattern_of
from pumice.core.objects.metadata import Object, is_list, is_mapping

Schema = Object

_SAY_NOTHING_MORE: Final = frozenset(("type", "description", "nullable", "default", INT_OR_STRING, PRESERVE, EMBEDDED))
_JUNCTIONS: Final = frozenset(("allOf", "anyOf", "oneOf", "not"))
STEPS_OF_PATTERNS: Final = 128
"""Number of instructions of a pattern, each over one letter, that cost about one look at a value."""

_SHOWN: Final = json.JSONEncoder(sort_keys=True, default=str)
_RANGES: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_IS: Final[dict[str, Callable[[Any], bool]]] = {
    "array": is_list,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: type(value) is int or (_is_number(value) and float(value).is_integer()),
    "number": _is_number,
    "object": is_mapping,
    "string": lambda value: isinstance(value, str),
}
_PLAIN: Final = {"boolean": bool, "integer": int, "number": float, "object": dict, "string": str}
"""Of these classes are most values of a type; where a schema says no more than it, they are passed without a look."""


def value_problems(value: Any, schema: Schema, work: Work, path: str = "") -> list[Cause]:
    """Return all problems of a value; the root's metadata is not checked. Raises TooDearError."""
    work.spend(1)
    if value is None and schema.get("nullable"):
        return []
    if problem := _type_problem(value, schema, path):
        work.spend(4)
        return [problem]
    # most leaves end here: their type is all that the schema says
    if schema.keys() <= _SAY_NOTHING_MORE:
        return []
    work.spend(3)
    found = _choices(value, schema, work, path) if "enum" in schema else []
    if not _JUNCTIONS.isdisjoint(schema):
        found += _junctions(value, schema, work, path)
    if is_mapping(value):
        found += _mapping(value, schema, work, path)
    elif is_list(value):
        found += _list(value, schema, work, path)
    elif isinstance(value, str):
        found += _text(value, schema, work, path)
    elif not isinstance(value, bool) and value is not None:
        found += _number(value, schema, path)
    if not found and RULES in schema:  # as a kube-apiserver does, which asks no rule about what is of another shape
        found = rule_problems(value, schema, work, path)
    if found:  # each shows its value, wholly
        work.spend(sum(len(cause.message) for cause in found) // 64)
    return found


def _type_problem(value: object, schema: Schema, path: str) -> Cause | None:
    if schema.get(INT_OR_STRING):
        if isinstance(value, str) or _IS["integer"](value):
            return None
        return _wrong(path, value, f"{path} in body must be of type integer,string: {_json(_type_name(value))}")
    wanted = schema.get("type")
    if wanted is None or _IS[wanted](value):
        return None
    shown = _type_name(value)
    return Cause(
        path,
        "FieldValueTypeInvalid",
        f"Invalid value: {_json(shown)}: {path} in body must be of type {wanted}: {_json(shown)}",
    )


def _choices(value: object, schema: Schema, work: Work, path: str) -> list[Cause]:
    choices: list[Any] = schema.get("enum") or []
    work.spend(len(choices))
    if not any(_same(value, choice) for choice in choices):
        work.spend(8 * len(choices))  # which are shown
        return [unsupported(path, value, [each if isinstance(each, str) else _json(each) for each in choices])]
    return []


def _junctions(value: object, schema: Schema, work: Work, path: str) -> list[Cause]:
    found = [cause for part in schema.get("allOf") or () for cause in value_problems(value, part, work, path)]
    choices: list[Schema] = schema.get("anyOf") or []
    if choices and all(value_problems(value, part, work, path) for part in choices):
        found.append(_wrong(path, value, f"{path} in body must validate at least one schema (anyOf)"))
    one_of: list[Schema] = schema.get("oneOf") or []
    if one_of and sum(not value_problems(value, part, work, path) for part in one_of) != 1:
        found.append(_wrong(path, value, f"{path} in body must validate one and only one schema (oneOf)"))
    if "not" in schema and not value_problems(value, schema["not"], work, path):
        found.append(_wrong(path, value, f"{path} in body must not validate the schema (not)"))
    return found


def _mapping(value: Object, schema: Schema, work: Work, path: str) -> list[Cause]:
    properties: dict[str, Schema] = schema.get("properties") or {}
    more = schema.get("additionalProperties")
    work.spend(len(schema.get("required") or ()))
    found = [required(_at(path, name)) for name in schema.get("required") or () if name not in value]
    if (most := schema.get("maxProperties")) is not None and len(value) > most:
        found.append(_wrong(path, len(value), f"{path} in body should have at most {most} properties"))
    if (least := schema.get("minProperties")) is not None and len(value) < least:
        found.append(_wrong(path, len(value), f"{path} in body should have at least {least} properties"))
    for name, each in value.items():
        below = properties.get(name, more if is_mapping(more) else None)
        # the root's metadata is the server's, and judged elsewhere
        if below and (path or name != "metadata"):
            found += value_problems(each, below, work, _at(path, name))
    return found


def _list(value: list[Any], schema: Schema, work: Work, path: str) -> list[Cause]:
    found: list[Cause] = []
    if (most := schema.get("maxItems")) is not None and len(value) > most:
        found.append(_wrong(path, len(value), f"{path} in body should have at most {most} items"))
    if (least := schema.get("minItems")) is not None and len(value) < least:
        found.append(_wrong(path, len(value), f"{path} in body should have at least {least} items"))
    items: Schema = schema.get("items") or {}
    plain, passed = _PLAIN.get(items.get("type", "")) if items.keys() <= _SAY_NOTHING_MORE else None, 0
    for index, each in enumerate(value):
        # most items of plain lists are passed without a call
        if each.__class__ is plain:
            passed += 1
        else:
            found += value_problems(each, items, work, f"{path}[{index}]")
    work.spend(passed)
    return found + _repeated(value, schema, work, path)


def _repeated(value: list[Any], schema: Schema, work: Work, path: str) -> list[Cause]:
    """Yield the items that stand twice in a set, or in a map by its keys."""
    sort, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    if sort not in ("set", "map") and not schema.get("uniqueItems"):
        return []
    found: list[Cause] = []
    seen: set[str] = set()
    for index, each in enumerate(value):
        identity = {key: each.get(key) for key in keys} if sort == "map" and is_mapping(each) else each
        # compared as JSON texts, since mappings and lists cannot be hashed
        text = _json(identity)
        work.spend(1 + len(text) // 64)
        if text in seen:
            found.append(duplicate(f"{path}[{index}]", text if is_mapping(identity) else identity))
        seen.add(text)
    return found


def _text(value: str, schema: Schema, work: Work, path: str) -> list[Cause]:
    found: list[Cause] = []
    if (most := schema.get("maxLength")) is not None and len(value) > most:
        found.append(_wrong(path, value, f"{path} in body should be at most {most} chars long"))
    if (least := schema.get("minLength")) is not None and len(value) < least:
        found.append(_wrong(path, value, f"{path} in body should be at least {least} chars long"))
    if (pattern := schema.get("pattern")) is not None and (problem := _unmatched(value, pattern, work)):
        found.append(_wrong(path, value, f"{path} in body {problem}"))
    if schema.get("format") in ("date-time", "date") and not _is_time(value):
        found.append(_wrong(path, value, f"{path} in body must be of type {schema['format']}: {_json(value)}"))
    return found


def _unmatched(value: str, pattern: str, work: Work) -> str:
    try:
        expression = pattern_of(pattern)
        work.spend(expression.steps * len(value) // STEPS_OF_PATTERNS)
        return "" if expression.is_in(value) else f"should match '{pattern}'"
    except PatternError as error:
        return f"cannot be matched with '{pattern}': {error}"


def _number(value: float, schema: Schema, path: str) -> list[Cause]:
    found: list[Cause] = []
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and (value <= least if schema.get("exclusiveMinimum") else value < least):
        word = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        found.append(_wrong(path, value, f"{path} in body should be {word} {least}"))
    if most is not None and (value >= most if schema.get("exclusiveMaximum") else value > most):
        word = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        found.append(_wrong(path, value, f"{path} in body should be {word} {most}"))
    if (step := schema.get("multipleOf")) and value % step:
        found.append(_wrong(path, value, f"{path} in body should be a multiple of {step}"))
    low, high = _RANGES.get(schema.get("format") or "", (value, value))
    if schema.get("type") == "integer" and not low <= value <= high:
        found.append(_wrong(path, value, f"{path} in body must be of type {schema['format']}: {_json(value)}"))
    return found


def _wrong(path: str, value: object, why: str) -> Cause:
    return Cause(path, "FieldValueInvalid", f"Invalid value: {_json(value)}: {why}")


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _same(value: object, other: object) -> bool:
    # in Python True equals 1, in JSON it does not
    return type(value) is type(other) and value == other if isinstance(value, bool) else value == other


def _json(value: object) -> str:
    return _SHOWN.encode(value)


def _type_name(value: object) -> str:
    if value is None:
        return "null"
    return next((name for name, holds in _IS.items() if holds(value)), "null")


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return False
    return True
