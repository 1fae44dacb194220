"""What can be known to be wrong with an expression before there is anything to evaluate it over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.kube.cel.functions import FUNCTIONS, METHODS
from core.kube.cel.macros import is_macro
from core.kube.cel.reading import ExpressionError, read_expression

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from core.kube.cel.reading import CelNode


def compile_problem(text: str, names: Collection[str]) -> str:
    """Why an expression over these names cannot be worked out, whatever they stand for; "" where it perhaps can."""
    try:
        unknown = _unknown(read_expression(text), frozenset(names))
    except ExpressionError as error:
        return f"compilation failed: {error}"
    return f"compilation failed: undeclared reference to '{unknown}'" if unknown else ""


def _unknown(tree: CelNode, names: frozenset[str]) -> str:
    """The first name or function that nobody knows."""
    if tree.kind == "name":
        return "" if tree.value in names else str(tree.value)
    if tree.kind == "call":
        return _unknown_in_call(tree, names)
    return _first(tree.parts, names)


def _unknown_in_call(tree: CelNode, names: frozenset[str]) -> str:
    name, parts, known = str(tree.value), tree.parts, frozenset(METHODS)
    if parts[0].kind == "name" and parts[0].value == "":  # a function, not a method
        parts, known = parts[1:], frozenset(FUNCTIONS) | {"has"}
    elif is_macro(tree):
        inner = names | {str(parts[1].value)}
        return _unknown(parts[0], names) or _first(parts[2:], inner)
    return _first(parts[:1], names) or ("" if name in known else name) or _first(parts[1:], names)


def _first(trees: Sequence[CelNode], names: frozenset[str]) -> str:
    return next(filter(None, (_unknown(each, names) for each in trees)), "")
