# SPDX-License-Identifier: Apache-2.0
"""Checking of an expression before its values exist: names, functions, arguments and types.

As cel-go's checker, with a difference on the safe side: where types are not known well enough, nothing is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pumice.core.kube.cel.environment import call, is_function, signatures
from pumice.core.kube.cel.reading import CelNode, ExpressionError, dotted, make_node, read_expression, variables_of
from pumice.core.kube.cel.texts import VERBS, TextError, clauses
from pumice.core.kube.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    TYPE,
    UNSURE,
    CelType,
    is_open,
    joined,
    list_of,
    map_of,
    needs_reading,
    optional_of,
)
from pumice.core.kube.cel.values import TYPE_NAMES, kind_of
from pumice.core.kube.patterns import PatternError, pattern_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pumice.core.kube.cel.environment import Called

_SIGNS: Final = {"index": "_[_]", "[?": "_[?_]", "not": "!_", "minus": "-_", "in": "@in"}
_LITERALS: Final = {"int": INT, "double": DOUBLE, "string": STRING, "bool": BOOL, "bytes": BYTES, "null_type": NULL}


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that an expression may use. `bind`, `messages`: it may contain `cel.bind(…)`, or `Object{…}`."""

    names: Mapping[str, CelType]
    bind: bool = False
    messages: bool = False


@dataclass(slots=True)
class Checked:
    """A node with its type, and with conversions put in where values of JSON are not of that type."""

    node: CelNode
    kind: CelType


def compile_problem(text: str, scope: Scope, *results: CelType) -> str:
    """Return why an expression cannot be evaluated to one of these types, whatever the names stand for; "" where it
    perhaps can.
    """
    try:
        checked = check(text, scope)
    except ExpressionError as error:
        return f"compilation failed: {error}"
    # Kubernetes refuses a dyn that the caller did not allow; what this checker could not work out passes.
    if results and checked.kind not in results and checked.kind.name != "?":
        return f"must evaluate to {' or '.join(map(str, results))}"
    return ""


def check(text: str, scope: Scope) -> Checked:
    """Return an expression with its type. Raises ExpressionError."""
    return _Checker(scope).checked(read_expression(text), scope.names)


@dataclass(slots=True)
class _Checker:
    scope: Scope
    exempt: int = 0
    """Depth of calls of `format`: within one, lists and maps may hold values of different types."""

    def checked(self, tree: CelNode, names: Mapping[str, CelType]) -> Checked:
        """Return the checked node. Raises ExpressionError."""
        work = _WORK.get(tree.kind)
        return work(self, tree, names) if work else self._operation(tree, names)

    def _parts(self, tree: CelNode, names: Mapping[str, CelType]) -> list[Checked]:
        return [self.checked(part, names) for part in tree.parts]

    def literal(self, tree: CelNode, names: Mapping[str, CelType]) -> Checked:
        kind = kind_of(tree.value)
        return Checked(tree, _LITERALS.get(kind) or CelType(kind))

    def name(self, tree: CelNode, names: Mapping[str, CelType]) -> Checked:
        name = tree.name
        # Names first, so that a variable of a macro may have the name of a type.
        if name in names:
            return Checked(_reading(tree, names[name]), names[name])
        if name in TYPE_NAMES:
            return Checked(tree, TYPE)
        raise ExpressionError(f"undeclared reference to '{name[:80]}'")

    def listed(self, tree: CelNode, names: Mapping[str, CelType]) -> Checked:
        parts = self._parts(tree, names)
        element = self._common(parts)
        if element is None:
            raise ExpressionError(f"elements of a list are of different types: {_kinds(parts)}")
        return Checked(_with(tree, parts), list_of(element))

    def _common(self, parts: Sequence[Checked]) -> CelType | None:
        """Return the type of all elements of a list, None where they are of several: dyn among others is one more."""
        known = [each.kind for each in parts if each.kind.name != "?"]
        mixed = len({is_open(kind) for kind in known}) > 1
        if self.exempt:
            return joined(known) or DYN
        return None if mixed else joined(known)

    def mapped(self, tree: CelNode, names: Mapping[str, CelType]) -> Checked:
        parts = self._parts(tree, names)
        key, value = (self._common(half) for half in (parts[::2], parts[1::2]))
        if key is None or value is None:
            raise ExpressionError(f"keys or values of a map are of different types: {_kinds(parts)}")
        return Checked(_with(tree, parts), map_of(key, value))

    def optional(self, tree: CelNode, names: Mapping[str, CelType]) -> Checked:
        """Return an element that may be absent."""
        part = self.checked(tree.parts[0], names)
        if part.kind.name != "optional_type" and not is_open(part.kind):
            raise ExpressionError(f"expected type 'optional_type' but found '{part.kind}'")
        return Checked(_with(tree, [part]), part.kind.params[0] if part.kind.params else UNSURE)

    def message(self, tree: CelNode, names: Mapping[str, CelType]) -> Checked:
        if not self.scope.messages:
            raise ExpressionError(f"undeclared reference to '{tree.name[:80]}'")
        return Checked(_with(tree, self._parts(tree, names)), CelType("object"))

    def member(self, tree: CelNode, names: Mapping[str, CelType]) -> Checked:
        # `authorizer.requestResource` is declared as one name with a dot in it.
        if (path := dotted(tree)) in names:
            return Checked(tree, names[path])
        owner = self.checked(tree.parts[0], names)
        kind, inside = owner.kind, owner.kind
        if kind.name == "optional_type":
            inside = kind.params[0]
        found = _field(inside, tree.name)
        node = _with(tree, [owner])
        # Only what a schema describes is converted: an object without known fields is used as JSON has it.
        if inside.fields is not None:
            node = _reading(node, found)
        optional = tree.kind == ".?" or inside is not kind
        return Checked(node, optional_of(found) if optional else found)

    def has(self, tree: CelNode, names: Mapping[str, CelType]) -> Checked:
        owner = self.checked(tree.parts[0], names)
        inside = owner.kind.params[0] if owner.kind.name == "optional_type" else owner.kind
        # For its error alone: `has` reads no value, so nothing is converted.
        _field(inside, tree.name)
        return Checked(_with(tree, [owner]), BOOL)

    def index(self, tree: CelNode, names: Mapping[str, CelType]) -> Checked:
        parts = self._parts(tree, names)
        owner, key = parts[0].kind, parts[1].kind
        inside = owner.params[0] if owner.name == "optional_type" else owner
        optional = tree.kind == "[?" or inside is not owner
        if is_open(inside):
            found = DYN
        elif inside.name == "list" and key.name in ("int", "dyn", "?"):
            found = inside.params[0]
        elif inside.name == "map" and joined((inside.params[0], key)) is not None:
            found = inside.params[1]
        else:
            raise _no_overload(tree.kind, parts)
        return Checked(_with(tree, parts), optional_of(found) if optional else found)

    def called(self, tree: CelNode, names: Mapping[str, CelType]) -> Checked:
        name, method = tree.name, tree.kind == "call"
        # Kubernetes adds this library for mutating policies alone (`admission/plugin/cel/compile.go`, hasPatchTypes).
        if name.startswith("jsonpatch.") and not self.scope.messages:
            raise ExpressionError(f"undeclared reference to '{name}'")
        if method and name == "format" and len(tree.parts) == 2 and tree.parts[1].kind == "list":
            return self._formatted(tree, names)
        parts = self._parts(tree, names)
        kind = _result((name, method, len(parts)), parts)
        _check_literals(name, tree.parts)
        return Checked(_with(tree, parts), kind)

    def _formatted(self, tree: CelNode, names: Mapping[str, CelType]) -> Checked:
        """Return a call of `format` with its arguments, which may be of different types."""
        text = self.checked(tree.parts[0], names)
        self.exempt += 1
        arguments = self._parts(tree.parts[1], names)
        self.exempt -= 1
        if not is_open(text.kind) and text.kind.name != "string":
            raise _no_overload("format", [text, Checked(tree.parts[1], list_of(DYN))])
        # A template that is made by the expression itself is compared only when it is followed.
        if tree.parts[0].kind == "literal":
            _check_format(str(tree.parts[0].value), arguments)
        return Checked(make_node("call", (text.node, _with(tree.parts[1], arguments)), "format"), STRING)

    def _operation(self, tree: CelNode, names: Mapping[str, CelType]) -> Checked:
        parts = self._parts(tree, names)
        return Checked(_with(tree, parts), _result((tree.kind, False, len(parts)), parts))

    def junction(self, tree: CelNode, names: Mapping[str, CelType]) -> Checked:
        parts = self._parts(tree, names)
        if not all(is_open(each.kind) or each.kind == BOOL for each in parts):
            raise _no_overload(tree.kind, parts)
        return Checked(_with(tree, parts), BOOL)

    def choice(self, tree: CelNode, names: Mapping[str, CelType]) -> Checked:
        parts = self._parts(tree, names)
        kind = joined(each.kind for each in parts[1:])
        if kind is None or not (is_open(parts[0].kind) or parts[0].kind == BOOL):
            raise _no_overload("?_:", parts)
        return Checked(_with(tree, parts), kind)

    def bound(self, tree: CelNode, names: Mapping[str, CelType]) -> Checked:
        if not self.scope.bind:
            raise ExpressionError("undeclared reference to 'cel'")
        variable, body, value = tree.parts
        given = self.checked(value, names)
        inner = self.checked(body, {**names, variable.name: given.kind})
        return Checked(make_node("bind", (variable, inner.node, given.node)), inner.kind)

    def macro(self, tree: CelNode, names: Mapping[str, CelType]) -> Checked:
        name, variables = tree.name, variables_of(tree)
        owner = self.checked(tree.parts[0], names)
        kinds = _variables(name, owner.kind, variables)
        told = {part.name: kind for part, kind in zip(tree.parts[1 : 1 + variables], kinds, strict=True)}
        bodies = [self.checked(part, {**names, **told}) for part in tree.parts[1 + variables :]]
        # The last part of a transforming macro makes a value; all others are conditions.
        asked = bodies if name in _QUESTIONS else bodies[:-1]
        for each in asked:
            if not is_open(each.kind) and each.kind != BOOL:
                raise ExpressionError(f"{name}(): expected type 'bool' but found '{each.kind}'")
        node = make_node("macro", (owner.node, *tree.parts[1 : 1 + variables], *(each.node for each in bodies)), name)
        return Checked(node, _macro_result(name, owner.kind, kinds, bodies[-1].kind))


_QUESTIONS: Final = frozenset({"all", "exists", "exists_one", "existsOne", "filter"})
_WORK: Final[dict[str, Callable[[_Checker, CelNode, Mapping[str, CelType]], Checked]]] = {
    "literal": _Checker.literal,
    "name": _Checker.name,
    "list": _Checker.listed,
    "map": _Checker.mapped,
    "?": _Checker.optional,
    "message": _Checker.message,
    "member": _Checker.member,
    ".?": _Checker.member,
    "has": _Checker.has,
    "index": _Checker.index,
    "[?": _Checker.index,
    "call": _Checker.called,
    "function": _Checker.called,
    "macro": _Checker.macro,
    "bind": _Checker.bound,
    "choice": _Checker.choice,
    "&&": _Checker.junction,
    "||": _Checker.junction,
}


def _with(tree: CelNode, parts: Sequence[Checked]) -> CelNode:
    nodes = tuple(each.node for each in parts)
    # Most nodes need no conversion. They stay the nodes that `read_expression` keeps, not copies.
    same = all(new is old for new, old in zip(nodes, tree.parts, strict=True))
    return tree if same else make_node(tree.kind, nodes, tree.name, tree.value)


def _reading(node: CelNode, kind: CelType) -> CelNode:
    """Return a node that converts what another yields, where that must be."""
    return make_node("read", (node,), value=kind) if needs_reading(kind) else node


def _field(owner: CelType, name: str) -> CelType:
    """Return the type of a field. Raises ExpressionError."""
    if owner.fields is not None:
        if name not in owner.fields:
            raise ExpressionError(f"undefined field '{name[:80]}'")
        return owner.fields[name]
    if is_open(owner) or owner.name == "object":
        return DYN
    if owner.name == "map" and joined((owner.params[0], STRING)) is not None:
        return owner.params[1]
    raise ExpressionError(f"type '{owner}' does not support field selection")


def _variables(name: str, owner: CelType, count: int) -> list[CelType]:
    """Return the types of a macro's variables. Raises ExpressionError for a value that has no elements."""
    if is_open(owner):
        return [DYN] * count
    if name in ("optMap", "optFlatMap"):
        if owner.name == "optional_type":
            return [owner.params[0]]
        raise ExpressionError(f"{name}(): expected an optional value but found '{owner}'")
    if owner.name == "list":
        return [INT, owner.params[0]] if count == 2 else [owner.params[0]]
    if owner.name == "map":
        return [*owner.params][:count]
    raise ExpressionError(
        f"expression of type '{owner}' cannot be range of a comprehension (must be list, map, or dynamic)"
    )


def _macro_result(name: str, owner: CelType, kinds: Sequence[CelType], body: CelType) -> CelType:
    match name:
        case "all" | "exists" | "exists_one" | "existsOne":
            return BOOL
        case "filter":
            return list_of(kinds[0])
        case "sortBy":
            return owner
        case "map" | "transformList":
            return list_of(body)
        case "transformMap":
            return map_of(kinds[0], body)
        case "optMap":
            return optional_of(body)
        case "optFlatMap" if not is_open(body) and body.name != "optional_type":
            raise ExpressionError(f"optFlatMap(): expected an optional value but found '{body}'")
        case "transformMapEntry" if not is_open(body) and body.name != "map":
            raise ExpressionError(f"transformMapEntry(): expected a map of one entry but found '{body}'")
        case _:
            return body


def _result(called: Called, parts: Sequence[Checked]) -> CelType:
    """Return what a function makes of arguments of these types. Raises ExpressionError where it takes none such."""
    name = called[0]
    given = [each.kind for each in parts]
    found = [kind for one in signatures(called) if (kind := one.result_for(given)) is not None]
    if not found:
        if not is_function(name):
            raise ExpressionError(f"undeclared reference to '{name[:80]}'")
        raise _no_overload(name, parts)
    # An argument of unknown type fits several overloads, whose results may differ.
    if all(each == found[0] for each in found):
        return found[0]
    return UNSURE if any("?" in str(kind) for kind in given) else DYN


def _no_overload(name: str, parts: Sequence[Checked]) -> ExpressionError:
    name = _SIGNS.get(name, name) if name[0].isalpha() or name in _SIGNS else f"_{name.strip('_')}_"
    return ExpressionError(f"found no matching overload for '{name}' applied to '({_kinds(parts)})'")


def _kinds(parts: Sequence[Checked]) -> str:
    return ", ".join(str(each.kind) for each in parts[:8])


_CONVERSIONS: Final = frozenset({"bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"})
_PATTERNS: Final = ("matches", "find", "findAll")


def _check_literals(name: str, parts: Sequence[CelNode]) -> None:
    """Convert values that stand in an expression, and read its regular expressions. Raises ExpressionError."""
    # For times and patterns these are the validators that `pkg/cel/environment/base.go` turns on.
    given = parts[1] if name in _PATTERNS and len(parts) > 1 else parts[0] if name in _CONVERSIONS and parts else None
    if given is None or given.kind != "literal":
        return
    try:
        if name in _CONVERSIONS:
            call(name, False, [given.value])
        elif isinstance(given.value, str):
            pattern_of(given.value)
    except (ValueError, PatternError) as error:
        raise ExpressionError(f"invalid {name} argument: {error}") from error


def _check_format(template: str, arguments: Sequence[Checked]) -> None:
    """Compare the clauses of a format with its arguments. Raises ExpressionError."""
    try:
        verbs = clauses(template)
    except TextError as error:
        raise ExpressionError(str(error)) from error
    # A wrong number is refused when a policy is created, not first when a request comes.
    if len(verbs) > len(arguments):
        raise ExpressionError(f"index {len(arguments)} out of range")
    if len(verbs) < len(arguments):
        wanted = f"expected {len(verbs)}, got {len(arguments)}"
        raise ExpressionError(f"too many arguments supplied to string.format ({wanted})")
    for verb, argument in zip(verbs, arguments, strict=True):
        kinds, why, _ = VERBS[verb]
        if not is_open(argument.kind) and argument.kind.name not in kinds:
            raise ExpressionError(f"error during formatting: {why}, was given {argument.kind}")
