"""Rules in CEL of a definition's schema (`x-kubernetes-validations`), in the words of Kubernetes' validation.

A rule sees the value as `self`. One that speaks of `oldSelf` is asked only of a value that was there before.
"""

from __future__ import annotations

import re
from typing import Any, Final

from actors.api.definitions.work import TooDearError, Work
from actors.api.fields import is_list, is_mapping, rows
from actors.api.refusals import Cause, invalid_value, required
from core.kube.cel.costs import SPEND
from core.kube.cel.reading import ExpressionError, read_expression
from core.kube.cel.values import evaluate

Schema = dict[str, Any]

RULES: Final = "x-kubernetes-validations"
EACH: Final = 8
"""Steps of one rule, beside those of what it looks at."""
_OLD: Final = re.compile(r"\boldSelf\b")


def unreadable(schema: Schema, path: str) -> list[Cause]:
    """Rules of one node of a schema that nobody can read."""
    found: list[Cause] = []
    listed: Any = schema.get(RULES)
    for place, rule in enumerate(listed if is_list(listed) else ()):
        where, text = f"{path}.{RULES}[{place}].rule", rule.get("rule") if is_mapping(rule) else None
        if not isinstance(text, str) or not text.strip():
            found.append(required(where, "rule is not specified"))
            continue
        try:
            read_expression(text)
        except ExpressionError as error:
            found.append(invalid_value(where, text, f"compilation failed: {error}"))
    return found


def rule_problems(value: Any, schema: Schema, work: Work, path: str) -> list[Cause]:
    """What the rules of a node say against a value. Raises TooDearError."""
    listed = rows(schema, RULES)
    found = (_problem(rule, {"self": value}, schema, work, path) for rule in listed if not _OLD.search(rule["rule"]))
    return [cause for cause in found if cause is not None]


def change_problems(value: Any, before: Any, schema: Schema, work: Work, path: str = "") -> list[Cause]:
    """What the rules about changes say, at every level where there was a value. Raises TooDearError."""
    names = {"self": value, "oldSelf": before}
    told = (_problem(rule, names, schema, work, path) for rule in rows(schema, RULES) if _OLD.search(rule["rule"]))
    found = [cause for cause in told if cause is not None]
    for new, old, below, where in _pairs(value, before, schema, path):
        found += change_problems(new, old, below, work, where)
    return found


def _pairs(value: Any, before: Any, schema: Schema, path: str) -> list[tuple[Any, Any, Schema, str]]:
    """Values below that were there before, with their schema. Those of a list are known by its keys."""
    if is_mapping(value) and is_mapping(before):
        properties: dict[str, Schema] = schema.get("properties") or {}
        others: Any = schema.get("additionalProperties")
        each = others if is_mapping(others) else {}
        return [
            (new, before[name], properties.get(name, each), f"{path}.{name}".lstrip("."))
            for name, new in value.items()
            if name in before
        ]
    keys: list[str] = schema.get("x-kubernetes-list-map-keys") or []
    items: Any = schema.get("items")
    if keys and is_list(value) and is_list(before) and is_mapping(items):
        known = {_key(one, keys): one for one in before}
        return [
            (new, known[_key(new, keys)], items, f"{path}[{place}]")
            for place, new in enumerate(value)
            if _key(new, keys) in known
        ]
    return []


def _key(row: Any, keys: list[str]) -> tuple[str, ...]:
    return tuple(repr(row.get(key)) for key in keys) if is_mapping(row) else (repr(row),)


def _problem(rule: Schema, names: dict[str, Any], schema: Schema, work: Work, path: str) -> Cause | None:
    text = rule["rule"]
    work.spend(EACH + len(text) // 8)
    try:
        holds = evaluate(read_expression(text), {**names, SPEND: work.spend})
        if holds is True:
            return None
        why = rule.get("message") or _said(rule, {**names, SPEND: work.spend}) or f"failed rule: {text.strip()}"
        reason = rule.get("reason") or "FieldValueInvalid"
    except TooDearError:
        raise
    except ExpressionError as error:
        why = f"rule evaluation error: {error} evaluating rule: {rule.get('message') or text}"
        reason = "FieldValueInvalid"
    where = f"{path}{rule['fieldPath']}".lstrip(".") if rule.get("fieldPath") else path
    return Cause(where, reason, _words(reason, schema.get("type") or "object", why.strip()))


def _said(rule: Schema, names: dict[str, Any]) -> str:
    """What `messageExpression` comes to; "" where it comes to nothing that can be said."""
    text = rule.get("messageExpression")
    if not text:
        return ""
    try:
        said = evaluate(read_expression(text), names)
    except ExpressionError:
        return ""
    return said if isinstance(said, str) and "\n" not in said else ""


def _words(reason: str, type_: str, why: str) -> str:
    match reason:
        case "FieldValueForbidden":
            return f"Forbidden: {why}"
        case "FieldValueRequired":
            return f"Required value: {why}"
        case "FieldValueDuplicate":
            return f'Duplicate value: "{type_}"'
        case _:
            return f'Invalid value: "{type_}": {why}'
