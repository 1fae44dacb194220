"""What the tree of an expression comes to: a selector for one device, a rule for one value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.errors import QuantityError
from core.kube.cel.costs import SPEND, StepsLeft, pay
from core.kube.cel.functions import FUNCTIONS, METHODS, OPERATIONS
from core.kube.cel.macros import decided, expanded, is_macro, truth
from core.kube.cel.optionals import OptionalValue, looked_up
from core.kube.cel.reading import ExpressionError, read_expression, shown
from core.kube.patterns import PatternError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.kube.cel.reading import CelNode


def _same(left: object, right: object) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def _member(owner: Any, key: Any) -> Any:
    if isinstance(owner, OptionalValue):
        return looked_up(owner, key, _member)
    try:
        if not isinstance(owner, str) and not (isinstance(key, int) and key < 0):
            return owner[key]
    except (KeyError, IndexError, TypeError):
        pass
    raise ExpressionError(f"no such key: {key[:80] if isinstance(key, str) else shown(key)}")


def _has(tree: CelNode, names: Mapping[str, Any]) -> bool:
    owner = evaluate(tree.parts[0], names)
    return not isinstance(owner, str | list) and tree.value in owner


def _call(tree: CelNode, names: Mapping[str, Any]) -> Any:
    name, function = str(tree.value), tree.parts[0].value == "" and tree.parts[0].kind == "name"
    if function and name == "has":
        return _has(tree.parts[1], names)
    if not function and is_macro(tree):
        return expanded(tree, names, evaluate)
    known = FUNCTIONS.get(name) if function else METHODS.get(name)
    if known is None:
        raise ExpressionError(f"unknown function {name!r}")
    values = [evaluate(part, names) for part in (tree.parts[1:] if function else tree.parts)]
    pay(name, values, names)
    return known(*values)


def _operate(tree: CelNode, names: Mapping[str, Any]) -> Any:
    left, right = (evaluate(part, names) for part in tree.parts)
    pay(tree.kind, (left, right), names)
    if tree.kind == "==":
        return _same(left, right)
    if tree.kind == "!=":
        return not _same(left, right)
    if tree.kind == "index":
        return _member(left, right)
    return OPERATIONS[tree.kind](left, right)


def evaluate(tree: CelNode, names: Mapping[str, Any]) -> Any:
    """The value of a tree, with these names known. Raises ExpressionError."""
    match tree.kind:
        case "literal":
            return tree.value
        case "name":
            return _member(names, tree.value)
        case "list":
            return [evaluate(part, names) for part in tree.parts]
        case "map":
            values = [evaluate(part, names) for part in tree.parts]
            return dict(zip(values[::2], values[1::2], strict=True))
        case "member":
            return _member(evaluate(tree.parts[0], names), tree.value)
        case ".?":
            return looked_up(evaluate(tree.parts[0], names), tree.value, _member)
        case "[?":
            return looked_up(evaluate(tree.parts[0], names), evaluate(tree.parts[1], names), _member)
        case "not":
            return not truth(evaluate(tree.parts[0], names))
        case "&&" | "||":
            return decided(((part, names) for part in tree.parts), evaluate, decisive=tree.kind == "||")
        case "choice":
            return evaluate(tree.parts[1 if truth(evaluate(tree.parts[0], names)) else 2], names)
        case _:
            try:
                if tree.kind == "minus":
                    return -evaluate(tree.parts[0], names)
                return _call(tree, names) if tree.kind == "call" else _operate(tree, names)
            except TypeError as error:
                raise ExpressionError(f"no such overload: {tree.value or tree.kind}") from error
            except (PatternError, QuantityError, ValueError) as error:
                raise ExpressionError(f"{tree.value or tree.kind}: {error}") from error


def is_true(expression: str, device: Mapping[str, Any]) -> bool:
    """Whether a selector takes a device ({"driver", "attributes", "capacity"}). Raises ExpressionError."""
    return truth(evaluate(read_expression(expression), {"device": device, SPEND: StepsLeft()}))
