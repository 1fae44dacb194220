"""The macros of CEL: `all`, `exists`, `exists_one`, `map` and `filter` over values of a list or keys of a map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from core.kube.cel.costs import pay_round
from core.kube.cel.reading import ExpressionError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from core.kube.cel.reading import CelNode

    Evaluate = Callable[[CelNode, Mapping[str, Any]], Any]

_MACROS: Final = {"all": 3, "exists": 3, "exists_one": 3, "existsOne": 3, "filter": 3, "map": 4}
"""The most parts that each has: what it is about, a name, and what is asked."""


def is_macro(tree: CelNode) -> bool:
    """Whether a call is one of them."""
    most = _MACROS.get(str(tree.value), 0)
    return 3 <= len(tree.parts) <= most and tree.parts[1].kind == "name" and bool(tree.parts[1].value)


def expanded(tree: CelNode, names: Mapping[str, Any], evaluate: Evaluate) -> Any:
    """What a macro comes to. Raises ExpressionError."""
    owner, asked = evaluate(tree.parts[0], names), tree.parts[-1]
    scopes = _scopes(owner, tree, names)
    match tree.value:
        case "all" | "exists":
            return decided(((asked, scope) for scope in scopes), evaluate, decisive=tree.value == "exists")
        case "exists_one" | "existsOne":
            return sum(truth(evaluate(asked, scope)) for scope in scopes) == 1
        case "filter":
            name = str(tree.parts[1].value)
            return [scope[name] for scope in scopes if truth(evaluate(asked, scope))]
        case _:
            kept = scopes if len(tree.parts) == 3 else (s for s in scopes if truth(evaluate(tree.parts[2], s)))
            return [evaluate(asked, scope) for scope in kept]


def _scopes(owner: Any, tree: CelNode, names: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if not isinstance(owner, list | dict):
        raise ExpressionError(f"no such overload: {tree.value}")
    name, size = str(tree.parts[1].value), sum(part.size for part in tree.parts[2:])
    for each in cast("Iterable[Any]", owner):
        pay_round(size, names)
        yield {**names, name: each}


def decided(asked: Iterable[tuple[CelNode, Mapping[str, Any]]], evaluate: Evaluate, *, decisive: bool) -> bool:
    """&&, ||, `all` and `exists`, of expressions and the names in each: one decisive value decides, whatever is wrong
    with the others.
    """
    errors: list[ExpressionError] = []
    for tree, names in asked:
        try:
            if truth(evaluate(tree, names)) is decisive:
                return decisive
        except ExpressionError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return not decisive


def truth(value: object) -> bool:
    """A value as the answer to a question. Raises ExpressionError."""
    if not isinstance(value, bool):
        raise ExpressionError(f"{shown(value)} is neither true nor false")
    return value
