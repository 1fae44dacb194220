# SPDX-License-Identifier: Apache-2.0
"""Evaluation of the tree of an expression: a selector for one device, a rule for one value, a condition of a policy."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any, Final

from pumice.core.errors import QuantityError
from pumice.core.kube.cel import lists
from pumice.core.kube.cel.costs import SPEND, StepsLeft, pay, pay_result, pay_round
from pumice.core.kube.cel.environment import call
from pumice.core.kube.cel.reading import (
    ExpressionError,
    is_collection,
    is_list,
    is_map,
    read_expression,
    shown,
    variables_of,
)
from pumice.core.kube.cel.times import day_of, duration_of, timestamp_of
from pumice.core.kube.cel.types import CelType, needs_reading
from pumice.core.kube.cel.values import (
    NONE,
    TYPE_NAMES,
    Authority,
    ListMap,
    ListSet,
    OptionalValue,
    has_key,
    kind_of,
    named_type,
    truth,
)
from pumice.core.kube.patterns import PatternError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pumice.core.kube.cel.reading import CelNode

_MARK: Final = re.compile(r"__(underscores|dot|dash|slash|[a-z]+)__")
_MARKS: Final = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}


def is_true(expression: str, device: Mapping[str, Any]) -> bool:
    """Return whether a selector takes a device ({"driver", "attributes", "capacity"}). Raises ExpressionError."""
    return truth(evaluate(read_expression(expression), {"device": device, SPEND: StepsLeft()}))


def evaluate(tree: CelNode, names: Mapping[str, Any]) -> Any:
    """Return the value of a tree, with these names known. Raises ExpressionError."""
    return _KINDS.get(tree.kind, _operate)(tree, names)


def _literal(tree: CelNode, _: Mapping[str, Any]) -> Any:
    return tree.value


def _name(tree: CelNode, names: Mapping[str, Any]) -> Any:
    name = tree.name
    try:
        return names[name]
    except KeyError:
        if name in TYPE_NAMES:
            return named_type(name)
    raise ExpressionError(f"no such key: {name[:80]}")


def _list(tree: CelNode, names: Mapping[str, Any]) -> list[Any]:
    return [value for part in tree.parts for value in _present(part, names)]


def _present(part: CelNode, names: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the value of an element, unless it is an optional one and absent."""
    if part.kind != "?":
        yield evaluate(part, names)
        return
    value = evaluate(part.parts[0], names)
    if not isinstance(value, OptionalValue):
        raise ExpressionError(f"cannot initialize optional list element from non-optional value {shown(value)}")
    if value.there:
        yield value.value


def _map(tree: CelNode, names: Mapping[str, Any]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    constant = all(part.kind == "literal" for part in tree.parts)  # there the last one of two keys counts, as in cel-go
    for key_part, part in zip(tree.parts[::2], tree.parts[1::2], strict=True):
        key = evaluate(key_part, names)
        for value in _present(part, names):
            if constant:
                found.pop(key, None)
            _put(found, key, value)
    return found


def _put(found: dict[Any, Any], key: object, value: object) -> None:
    if has_key(found, key):
        raise ExpressionError(f"Failed with repeated key: {shown(key)}")
    try:
        found[key] = value
    except TypeError as error:
        raise ExpressionError(f"unsupported key type: {kind_of(key)}") from error


def _message(tree: CelNode, names: Mapping[str, Any]) -> dict[Any, Any]:
    """Return the fields of a message: `JSONPatch{…}` and `Object{…}` of a policy that changes objects."""
    return {_field(str(key)): value for key, value in _map(tree, names).items()}


def _field(name: str) -> str:
    """Return a field as JSON has it: `x__dash__y` stands for `x-y`, `__namespace__` for `namespace`."""
    return _MARK.sub(lambda match: _MARKS.get(match[1], match[1]), name) if "__" in name else name


def _selected(owner: object, key: str) -> Any:
    """Return a field, or a key of a map. Raises ExpressionError."""
    if isinstance(owner, OptionalValue):
        return _optional(owner, key, _selected)
    if isinstance(owner, Authority) and key == "requestResource":
        return owner.then("ResourceCheck", owner.request)
    if is_map(owner):
        # The name as written comes first: only fields are escaped, keys of maps are not.
        if key in owner or "__" not in key:
            return _at(owner, key)
        return _at(owner, _field(key))
    raise ExpressionError(f"no such key: {key[:80]}" if owner is None else "no such overload: member of a value")


def _at(owner: object, key: object) -> Any:
    """Return what an index stands for. Raises ExpressionError."""
    if isinstance(owner, OptionalValue):
        return _optional(owner, key, _at)
    if is_map(owner):
        # `Domains` answers for keys that it lacks, so it is asked in any case.
        if has_key(owner, key) or owner.__class__ is not dict:
            try:
                return owner[key]
            except KeyError:
                pass
    elif is_list(owner):
        # cel-go takes a whole double for an index, too (`common/types/list.go`, IndexOrError).
        place = int(key) if isinstance(key, int | float) and not isinstance(key, bool) and key == int(key) else None
        if place is not None and 0 <= place < len(owner):
            return owner[place]
        if place is not None:
            raise ExpressionError(f"no such key: index out of bounds: {place}")
        raise ExpressionError(f"no such overload: list[{kind_of(key)}]")
    else:
        raise ExpressionError("no such overload: index of a value")
    raise ExpressionError(f"no such key: {key[:80] if isinstance(key, str) else shown(key)}")


def _optional(owner: object, key: object, look_up: Callable[[Any, Any], Any]) -> OptionalValue:
    """Return a key of what may be absent, also of what has no keys at all, such as null."""
    if isinstance(owner, OptionalValue):
        if not owner.there:
            return NONE
        owner = owner.value
    if not is_collection(owner):
        return NONE
    try:
        return OptionalValue(look_up(owner, key))
    except ExpressionError as error:
        # Only absence becomes none. A key of a wrong type stays an error.
        if "no such overload" in str(error):
            raise
        return NONE


def _member(tree: CelNode, names: Mapping[str, Any]) -> Any:
    if "." in tree.kind:
        return _optional(evaluate(tree.parts[0], names), tree.name, _selected)
    return _selected(evaluate(tree.parts[0], names), tree.name)


def _index(tree: CelNode, names: Mapping[str, Any]) -> Any:
    owner, key = evaluate(tree.parts[0], names), evaluate(tree.parts[1], names)
    return _optional(owner, key, _at) if tree.kind == "[?" else _at(owner, key)


def _has(tree: CelNode, names: Mapping[str, Any]) -> bool:
    owner = evaluate(tree.parts[0], names)
    inside: Any = owner.value if isinstance(owner, OptionalValue) else owner
    key = tree.name
    # An absent value has no fields; asking for one gives an absent value.
    return is_map(inside) and (key in inside or ("__" in key and _field(key) in inside))


def _called(tree: CelNode, names: Mapping[str, Any]) -> Any:
    name, method = tree.name, tree.kind == "call"
    if method and name in ("or", "orValue") and len(tree.parts) == 2:
        first = evaluate(tree.parts[0], names)
        if isinstance(first, OptionalValue):  # the other one is not evaluated when it is not needed
            if first.there:
                return first if name == "or" else first.value
            return evaluate(tree.parts[1], names)
    values = [evaluate(part, names) for part in tree.parts]
    return _done(name, values, names, method=method)


def _operate(tree: CelNode, names: Mapping[str, Any]) -> Any:
    values = [_KINDS.get(part.kind, _operate)(part, names) for part in tree.parts]  # as `evaluate`, a call less
    return _done(tree.kind, values, names)


def _done(name: str, values: list[Any], names: Mapping[str, Any], *, method: bool = False) -> Any:
    try:
        pay(name, values, names)
        result = call(name, method, values)
    # `compare` and the functions of lists raise TypeError for classes that they do not take.
    except TypeError as error:
        raise ExpressionError(f"no such overload: {name}") from error
    except (PatternError, QuantityError, ValueError, OverflowError) as error:
        raise ExpressionError(f"{name}: {error}") from error
    if result.__class__ in _SIZED:
        pay_result(result, names)
    return result


def _choice(tree: CelNode, names: Mapping[str, Any]) -> Any:
    return evaluate(tree.parts[1 if truth(evaluate(tree.parts[0], names)) else 2], names)


def _junction(tree: CelNode, names: Mapping[str, Any]) -> bool:
    return _decided(((part, names) for part in tree.parts), decisive=tree.kind == "||")


def _decided(asked: Iterable[tuple[CelNode, Mapping[str, Any]]], *, decisive: bool) -> bool:
    """Return the value of &&, ||, `all` and `exists` over expressions and the names in each: one decisive value
    decides, whatever is wrong with the others.
    """
    errors: list[ExpressionError] = []
    for tree, names in asked:
        try:
            if truth(evaluate(tree, names)) is decisive:
                return decisive
        except ExpressionError as error:
            errors.append(error)
    if errors:
        # The error at the left, like cel-go (`interpreter/interpretable.go`, evalOr).
        raise errors[0]
    return not decisive


def _bound(tree: CelNode, names: Mapping[str, Any]) -> Any:
    name = tree.parts[0].name
    return evaluate(tree.parts[1], {**names, name: evaluate(tree.parts[2], names)})


def _macro(tree: CelNode, names: Mapping[str, Any]) -> Any:
    name, variables = tree.name, variables_of(tree)
    owner = evaluate(tree.parts[0], names)
    if name in ("optMap", "optFlatMap"):
        return _mapped_optional(name, tree, owner, names)
    scopes, asked = _scopes(owner, tree, variables, names), tree.parts[-1]
    match name:
        case "all" | "exists":
            return _decided(((asked, scope) for scope in scopes), decisive=name == "exists")
        case "exists_one" | "existsOne":
            # All are evaluated, unlike for `exists`: an error in a later one is an error of the whole.
            return sum([truth(evaluate(asked, scope)) for scope in scopes]) == 1
        case "filter":
            variable = tree.parts[1].name
            return [scope[variable] for scope in scopes if truth(evaluate(asked, scope))]
        case "sortBy":
            keys = [evaluate(asked, scope) for scope in scopes]
            pay("sortBy", (owner, keys), names)
            return _attempted("sortBy", lambda: lists.ordered_by(list(owner), keys))
        case _:
            return _transformed(name, tree, scopes, len(tree.parts) - 1 - variables)


def _transformed(name: str, tree: CelNode, scopes: Iterable[Mapping[str, Any]], bodies: int) -> Any:
    """Return what `map` and the transforming macros make of each value, of those that a condition lets through."""
    asked = tree.parts[-1]
    kept = scopes if bodies == 1 else (scope for scope in scopes if truth(evaluate(tree.parts[-2], scope)))
    if name in ("map", "transformList"):
        return [evaluate(asked, scope) for scope in kept]
    found: dict[Any, Any] = {}
    for scope in kept:
        value = evaluate(asked, scope)
        if name == "transformMap":
            _put(found, scope[tree.parts[1].name], value)
            continue
        if not is_map(value):
            raise ExpressionError("no such overload: transformMapEntry makes maps of one entry")
        for key, each in value.items():
            _put(found, key, each)
            pay_round(1, scope)
    return found


def _attempted(name: str, work: Callable[[], Any]) -> Any:
    try:
        return work()
    except TypeError as error:
        raise ExpressionError(f"no such overload: {name}") from error
    except ValueError as error:
        raise ExpressionError(f"{name}: {error}") from error


def _mapped_optional(name: str, tree: CelNode, owner: object, names: Mapping[str, Any]) -> Any:
    if not isinstance(owner, OptionalValue):
        raise ExpressionError(f"no such overload: {name} of {kind_of(owner)}")
    if not owner.there:
        return NONE
    value = evaluate(tree.parts[2], {**names, tree.parts[1].name: owner.value})
    return OptionalValue(value) if name == "optMap" else value


def _scopes(owner: object, tree: CelNode, variables: int, names: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the names in each round: values of a list or keys of a map; place or key and value for two variables."""
    if not is_collection(owner):
        raise ExpressionError(f"no such overload: {tree.name}")
    # Before the loop, since it is the same in each round.
    size = sum(part.size for part in tree.parts[1 + variables :])
    first = tree.parts[1].name
    if variables == 1:
        for each in owner:
            pay_round(size, names)
            yield {**names, first: each}
        return
    second = tree.parts[2].name
    pairs = owner.items() if is_map(owner) else enumerate(owner)
    for key, each in pairs:
        pay_round(size, names)
        yield {**names, first: key, second: each}


def _read(tree: CelNode, names: Mapping[str, Any]) -> Any:
    """Return a value of JSON as one of the type that its schema says."""
    kind: CelType = tree.value
    return _attempted("conversion", lambda: _converted(evaluate(tree.parts[0], names), kind, names))


def _converted(value: object, kind: CelType, names: Mapping[str, Any]) -> Any:
    if isinstance(value, OptionalValue):
        return OptionalValue(_converted(value.value, kind, names)) if value.there else value
    # JSON may write a number as 1. As an int, `self.x / 2.0` would find no overload.
    if kind.reading == "double" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if is_list(value) and kind.name == "list":
        return _converted_list(value, kind, names)
    if is_map(value) and kind.name == "map":
        pay_round(len(value), names)
        return {key: _converted(each, kind.params[1], names) for key, each in value.items()}
    if not isinstance(value, str) or kind.reading in ("", "double"):
        return value
    pay("timestamp", (value,), names)
    return _READERS[kind.reading](value)


def _converted_list(value: list[Any], kind: CelType, names: Mapping[str, Any]) -> list[Any]:
    made = value
    if kind.params and needs_reading(kind.params[0]):
        pay_round(len(value), names)
        made = [_converted(each, kind.params[0], names) for each in value]
    if kind.reading == "set":
        return ListSet(made)
    if kind.reading == "keyed":
        keyed = ListMap(made)
        keyed.keys = kind.keys
        return keyed
    return made


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "date": day_of,
    "date-time": timestamp_of,
    "duration": duration_of,
    "byte": _bytes,
}
_SIZED: Final = frozenset({str, list})
_KINDS: Final[dict[str, Callable[[CelNode, Mapping[str, Any]], Any]]] = {
    "literal": _literal,
    "name": _name,
    "list": _list,
    "map": _map,
    "message": _message,
    "member": _member,
    ".?": _member,
    "index": _index,
    "[?": _index,
    "has": _has,
    "call": _called,
    "function": _called,
    "macro": _macro,
    "bind": _bound,
    "choice": _choice,
    "&&": _junction,
    "||": _junction,
    "read": _read,
}
