# SPDX-License-Identifier: Apache-2.0
"""Rules in CEL of a definition's schema (`x-kubernetes-validations`), in the words of Kubernetes' validation.

A rule sees the value as `self`. One that speaks of `oldSelf` is asked only of a value that was there before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from pumice.cluster.api.definitions.work import TooDearError, Work
from pumice.cluster.api.refusals import Cause, invalid_value, required, unsupported
from pumice.cluster.api.schema.table import enum_of
from pumice.core.kube.cel.checking import Scope, check, compile_problem
from pumice.core.kube.cel.costs import SPEND
from pumice.core.kube.cel.evaluating import evaluate
from pumice.core.kube.cel.reading import RESERVED, CelNode, ExpressionError, make_node, read_expression
from pumice.core.kube.cel.scopes import object_of
from pumice.core.kube.cel.types import BOOL, BYTES, DYN, INT, STRING, CelType, list_of, map_of, optional_of
from pumice.core.kube.cel.values import NONE, OptionalValue
from pumice.core.objects.metadata import Object, is_list, is_mapping, rows

# --- Types of expressions
# Source: apiserver's `pkg/cel/common/schemas.go`. Fields whose schema says no type are not known to expressions;
# unknown fields that are kept are not either.

_DOUBLE: Final = CelType("double", reading="double")
_TIME: Final = "timestamp"
_FORMATS: Final = {
    "byte": CelType(BYTES.name, reading="byte"),
    "duration": CelType("duration", reading="duration"),
    "date": CelType(_TIME, reading="date"),
    "date-time": CelType(_TIME, reading="date-time"),
}
_SIMPLE: Final = {"boolean": BOOL, "integer": INT, "number": _DOUBLE}
_RESERVED: Final = RESERVED | {"true", "false", "null"}
_NAME: Final = re.compile(r"[A-Za-z_.\-/][A-Za-z0-9_.\-/]*")
_MARKED: Final = re.compile(r"__|[./-]")
_MARKS: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


def escaped(name: str) -> str:
    """Return a field's name as expressions have it, "" for one that they cannot name."""
    if name in _RESERVED:
        return f"__{name}__"
    return _MARKED.sub(lambda match: _MARKS[match[0]], name) if _NAME.fullmatch(name) else ""


def schema_type(schema: Schema, *, root: bool = False) -> CelType | None:
    """Return the type of values of a schema, None where expressions do not know them. `root`: a whole object."""
    if schema.get("x-kubernetes-int-or-string"):
        return DYN
    match schema.get("type"):
        case "array":
            return _array_type(schema)
        case "object":
            return _object_type(schema, root=root or bool(schema.get("x-kubernetes-embedded-resource")))
        case "string":
            return _FORMATS.get(schema.get("format") or "", STRING)
        case simple:
            return _SIMPLE.get(simple or "")


def _array_type(schema: Schema) -> CelType | None:
    items: Any = schema.get("items")
    element = schema_type(items) if is_mapping(items) else None
    if element is None:
        return None
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return CelType("list", (element,), reading="set")
        case "map":
            keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
            return CelType("list", (element,), reading="keyed", keys=keys)
        case _:
            return list_of(element)


def _object_type(schema: Schema, *, root: bool) -> CelType | None:
    more: Any = schema.get("additionalProperties")
    if is_mapping(more) and not root:
        value = schema_type(more)
        return None if value is None else map_of(STRING, value)
    properties: dict[str, Schema] = schema.get("properties") or {}
    fields: dict[str, CelType] = {}
    for name, below in properties.items():
        kind, known = schema_type(below) if is_mapping(below) else None, escaped(name)
        if kind is not None and known:
            fields[known] = kind
    if root:
        fields |= {"apiVersion": STRING, "kind": STRING, "metadata": _METADATA}
    return object_of(fields)


# A rule may read these two of the metadata alone (apiserver's `WithTypeAndObjectMeta`).
_METADATA: Final = object_of({"name": STRING, "generateName": STRING})


Schema = Object

RULES: Final = "x-kubernetes-validations"
EACH: Final = 8
"""Steps of one rule, beside those of what it looks at."""
REASONS: Final = enum_of("apiextensions.v1.ValidationRule", "reason")
_OLD: Final = re.compile(r"\boldSelf\b")
_LINES: Final = re.compile(r"[\r\n]")
_MOST_KNOWN: Final = 4_096
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Rule:
    """One compiled rule of a schema. `message`: its `messageExpression`; `of_change`: it reads the old value;
    `optional`: and new values too.
    """

    given: Schema
    tree: CelNode
    message: CelNode | None
    of_change: bool
    optional: bool


def unreadable(schema: Schema, path: str, *, root: bool) -> list[Cause]:
    """Return the problems of the rules of one node of a schema. `root`: of a whole object."""
    found: list[Cause] = []
    listed: Any = schema.get(RULES)
    for place, rule in enumerate(listed if is_list(listed) else ()):
        where, given = f"{path}.{RULES}[{place}]", rule if is_mapping(rule) else {}
        text = given.get("rule")
        if not isinstance(text, str) or not text.strip():
            found.append(required(f"{where}.rule", "rule is not specified"))
        else:
            scope = _scope(schema, given, root=root)
            if problem := compile_problem(text, scope, BOOL):
                found.append(invalid_value(f"{where}.rule", text, problem))
            found += _message_problems(given, text, scope, where)
        if given.get("reason") not in (None, *REASONS):
            found.append(unsupported(f"{where}.reason", given["reason"], REASONS))
    return found


def _message_problems(given: Schema, text: str, scope: Scope, where: str) -> list[Cause]:
    message, expression = given.get("message"), given.get("messageExpression")
    if message and not (isinstance(message, str) and message.strip()):
        return [invalid_value(f"{where}.message", message, "message must be non-empty if specified")]
    if message and _LINES.search(message.strip()):
        return [invalid_value(f"{where}.message", message, "message must not contain line breaks")]
    if not message and _LINES.search(text.strip()):
        return [required(f"{where}.message", "message must be specified if rule contains line breaks")]
    if expression is None:
        return []
    if not isinstance(expression, str) or not expression.strip():
        return [required(f"{where}.messageExpression", "messageExpression must be non-empty if specified")]
    problem = compile_problem(expression, scope, STRING)
    return [invalid_value(f"{where}.messageExpression", expression, problem)] if problem else []


def _scope(schema: Schema, rule: Schema, *, root: bool) -> Scope:
    """Return what a rule may speak of."""
    kind = schema_type(schema, root=root) or DYN
    return Scope({"self": kind, "oldSelf": optional_of(kind) if rule.get("optionalOldSelf") else kind})


_KNOWN: Final[dict[tuple[int, bool], tuple[Schema, list[Rule]]]] = {}


def _rules(schema: Schema, *, root: bool) -> list[Rule]:
    """Return the rules of a node, compiled once. Schemas are shared and not changed, so the identity is the key, which
    is valid as long as the schema is held here.
    """
    known = _KNOWN.get((id(schema), root))
    if known is None:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        compiled = [_compiled(rule, _scope(schema, rule, root=root)) for rule in rows(schema, RULES)]
        known = _KNOWN[id(schema), root] = (schema, compiled)
    return known[1]


def _compiled(rule: Schema, scope: Scope) -> Rule:
    text, message = str(rule["rule"]), rule.get("messageExpression")
    of_change = bool(_OLD.search(text))
    optional = of_change and bool(rule.get("optionalOldSelf"))
    return Rule(rule, _tree(text, scope), _tree(str(message), scope) if message else None, of_change, optional)


def _tree(text: str, scope: Scope) -> CelNode:
    """Return a checked expression; the unchecked one where types do not agree, since its definition was stored
    nevertheless.
    """
    try:
        return check(text, scope).node
    except ExpressionError:
        try:
            return read_expression(text)
        except ExpressionError as error:
            return make_node("function", (CelNode("literal", value=str(error)),), "unreadable")


_LOOKING_BACK: Final[dict[int, tuple[Schema, bool]]] = {}


def _looks_back(schema: Schema) -> bool:
    """Return whether any rule of a schema, or below it, reads the old value. Cached like the rules."""
    known = _LOOKING_BACK.get(id(schema))
    if known is None:
        if len(_LOOKING_BACK) >= _MOST_KNOWN:
            _LOOKING_BACK.clear()
        properties: Object = schema.get("properties") or {}
        below = [*properties.values(), schema.get("items"), schema.get("additionalProperties")]
        own = any(_OLD.search(str(rule.get("rule"))) for rule in rows(schema, RULES))
        found = own or any(_looks_back(each) for each in below if is_mapping(each))
        known = _LOOKING_BACK[id(schema)] = (schema, found)
    return known[1]


def rule_problems(value: object, schema: Schema, work: Work, path: str) -> list[Cause]:
    """Return what the rules of a node say against a value. Raises TooDearError."""
    asked = [rule for rule in _rules(schema, root=not path) if not rule.of_change]
    return _broken(asked, {"self": value}, schema, work, path)


def change_problems(value: object, before: object, schema: Schema, work: Work, path: str = "") -> list[Cause]:
    """Return the problems that rules about changes find, at every level with an old value; rules with `optionalOldSelf`
    at every level. Raises TooDearError.
    """
    # most schemas have no such rule: then neither object is walked through
    if not _looks_back(schema):
        return []
    changed = before is not _ABSENT
    asked = [rule for rule in _rules(schema, root=not path) if rule.optional or (rule.of_change and changed)]
    old = OptionalValue(before) if changed else NONE
    found: list[Cause] = []
    for rule in asked:
        found += _broken([rule], {"self": value, "oldSelf": old if rule.optional else before}, schema, work, path)
    for new, known, below, where in _pairs(value, before, schema, path):
        found += change_problems(new, known, below, work, where)
    return found


def creation_problems(value: object, schema: Schema, work: Work) -> list[Cause]:
    """Return what the rules with `optionalOldSelf` say about a new object. Raises TooDearError."""
    return change_problems(value, _ABSENT, schema, work)


def _pairs(value: object, before: object, schema: Schema, path: str) -> list[tuple[Any, Any, Schema, str]]:
    """Yield the values below with their old values and their schema. Elements of a list are matched by its keys."""
    if is_mapping(value):
        known = before if is_mapping(before) else {}
        properties: dict[str, Schema] = schema.get("properties") or {}
        others: Any = schema.get("additionalProperties")
        each = others if is_mapping(others) else {}
        return [
            (new, known.get(name, _ABSENT), below, f"{path}.{name}".lstrip("."))
            for name, new in value.items()
            if (below := properties.get(name, each))
        ]
    items: Any = schema.get("items")
    if not is_list(value) or not is_mapping(items):
        return []
    # elements of other lists have no identity, so that no old value belongs to a new one
    keys: list[str] = schema.get("x-kubernetes-list-map-keys") or []
    there: dict[tuple[str, ...], Any] = {_key(one, keys): one for one in before} if keys and is_list(before) else {}
    return [(new, there.get(_key(new, keys), _ABSENT), items, f"{path}[{place}]") for place, new in enumerate(value)]


def _key(row: object, keys: list[str]) -> tuple[str, ...]:
    # `repr` tells the key 1 from the key "1", and can be hashed
    return tuple(repr(row.get(key)) for key in keys) if is_mapping(row) else (repr(row),)


def _broken(rules: list[Rule], names: Object, schema: Schema, work: Work, path: str) -> list[Cause]:
    found = (_problem(rule, {**names, SPEND: work.spend}, schema, work, path) for rule in rules)
    return [cause for cause in found if cause is not None]


def _problem(rule: Rule, names: Object, schema: Schema, work: Work, path: str) -> Cause | None:
    given, text = rule.given, rule.given["rule"]
    work.spend(EACH + len(text) // 8)
    reason = given.get("reason") or "FieldValueInvalid"
    try:
        if evaluate(rule.tree, names) is True:
            return None
        why = _said(rule, names) or given.get("message") or f"failed rule: {text.strip()}"
    except TooDearError:
        raise
    except ExpressionError as error:
        why = f"rule evaluation error: {error} evaluating rule: {given.get('message') or text}"
        reason = "FieldValueInvalid"
    where = f"{path}{given['fieldPath']}".lstrip(".") if given.get("fieldPath") else path
    return Cause(where, reason, _words(reason, schema.get("type") or "object", why.strip()))


def _said(rule: Rule, names: Object) -> str:
    """Return the text of `messageExpression`; "" where it gives no text that can be shown."""
    if rule.message is None:
        return ""
    try:
        said = evaluate(rule.message, names)
    except TooDearError:
        raise
    except ExpressionError:
        return ""
    return said if isinstance(said, str) and said.strip() and "\n" not in said else ""


def _words(reason: str, type_: str, why: str) -> str:
    match reason:
        case "FieldValueForbidden":
            return f"Forbidden: {why}"
        case "FieldValueRequired":
            return f"Required value: {why}"
        case "FieldValueDuplicate":
            # `field.Duplicate` takes no sentence, so that the rule's message is lost in Kubernetes, too
            return f'Duplicate value: "{type_}"'
        case _:
            return f'Invalid value: "{type_}": {why}'
