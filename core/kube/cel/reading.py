"""The part of CEL that device selectors and rules of definitions are written in: reading an expression into a tree.

Known: literals, lists, maps, member and index access, method and function calls with the macros, ``!``, ``-``, ``+``,
``*``, ``/``, ``%``, comparisons, ``in``, ``&&``, ``||`` and ``? :``, ``.?`` and ``[?…]``. Not known: bytes, unsigned
numbers, optional elements of lists and maps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from config.errors import RequestError

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)|(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"|(?P<raw>[rR](?:\"[^\"]*\"|'[^']*'))"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)|(?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%!<>()\[\]{}.,?:]))"
)
LONGEST: Final = 10 * 1024
"""Letters of an expression, as Kubernetes has it."""
DEEPEST: Final = 100
"""Operations inside one another: working out goes down to each."""
NESTED: Final = 32
"""Brackets and signs inside one another: reading takes ten calls for each."""
_LONGEST_NUMBER: Final = 20
_RELATIONS: Final = ("==", "!=", "<", "<=", ">", ">=", "in")
_SUMS: Final = ("+", "-")
_PRODUCTS: Final = ("*", "/", "%")
_QUOTED: Final = ("text", "raw")
_WORDS: Final = {"true": True, "false": False, "null": None}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}


class ExpressionError(RequestError):
    """An expression that cannot be read, or has no value for a device."""

    code = 422
    reason = "Invalid"


@dataclass(frozen=True, slots=True)
class CelNode:
    """One operation. `kind`: literal, list, map, name, member, index, call, not, minus, &&, ||, choice, or a sign of
    two sides; `.?` and `[?` are members and indices that may be absent. `depth`, `size`: operations inside one another,
    and in all.
    """

    kind: str
    parts: tuple[CelNode, ...] = ()
    value: object = None
    depth: int = 1
    size: int = 1


def _node(kind: str, parts: tuple[CelNode, ...], value: object = None) -> CelNode:
    """Raises ExpressionError for one that goes too deep."""
    depth = 1 + max((part.depth for part in parts), default=0)
    if depth > DEEPEST:
        raise ExpressionError(f"the expression is nested deeper than {DEEPEST} levels")
    return CelNode(kind, parts, value, depth, 1 + sum(part.size for part in parts))


def shown(value: object) -> str:
    """A value in a sentence about it, however much is in it."""
    if isinstance(value, str):
        return repr(value[:80])
    return repr(value) if value is None or isinstance(value, bool | int | float) else f"a {type(value).__name__}"


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionError(f"expression {text[:80]!r}: cannot read {text[at : at + 10]!r}")
        found.append((str(match.lastgroup), match.group(str(match.lastgroup))))
        at = match.end()
    found.append(("end", ""))
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise ExpressionError(f"the expression is longer than {LONGEST} letters")
        self._text, self._tokens, self._at, self._depth = text, _tokens(text), 0, 0

    def _peek(self) -> str:
        kind, token = self._tokens[self._at]
        return token if kind not in _QUOTED else ""

    def _take(self, *wanted: str) -> bool:
        found = self._tokens[self._at][0] not in _QUOTED and self._peek() in wanted
        self._at += found
        return found

    def _need(self, wanted: str) -> None:
        if not self._take(wanted):
            raise ExpressionError(f"expression {self._text[:80]!r}: expected {wanted!r}, found {self._peek()!r}")

    def whole(self) -> CelNode:
        tree = self._choice()
        if self._tokens[self._at][0] != "end":
            raise ExpressionError(f"expression {self._text[:80]!r}: {self._peek()!r} was not expected")
        return tree

    def _inside(self) -> CelNode:
        """An expression in brackets, or behind a colon."""
        self._deeper(1)
        tree = self._choice()
        self._deeper(-1)
        return tree

    def _deeper(self, levels: int) -> None:
        self._depth += levels
        if self._depth > NESTED:
            raise ExpressionError(f"the expression is nested deeper than {NESTED} levels")

    def _choice(self) -> CelNode:
        condition = self._either()
        if not self._take("?"):
            return condition
        first = self._either()
        self._need(":")
        return _node("choice", (condition, first, self._inside()))

    def _either(self) -> CelNode:
        parts = [self._both()]
        while self._take("||"):
            parts.append(self._both())
        return _node("||", tuple(parts)) if len(parts) > 1 else parts[0]

    def _both(self) -> CelNode:
        parts = [self._relation()]
        while self._take("&&"):
            parts.append(self._relation())
        return _node("&&", tuple(parts)) if len(parts) > 1 else parts[0]

    def _relation(self) -> CelNode:
        tree = self._sum()
        while (sign := self._peek()) in _RELATIONS and self._take(sign):
            tree = _node(sign, (tree, self._sum()))
        return tree

    def _sum(self) -> CelNode:
        tree = self._product()
        while (sign := self._peek()) in _SUMS and self._take(sign):
            tree = _node(sign, (tree, self._product()))
        return tree

    def _product(self) -> CelNode:
        tree = self._unary()
        while (sign := self._peek()) in _PRODUCTS and self._take(sign):
            tree = _node(sign, (tree, self._unary()))
        return tree

    def _unary(self) -> CelNode:
        for sign, kind in (("!", "not"), ("-", "minus")):
            if self._take(sign):
                self._deeper(1)
                tree = _node(kind, (self._unary(),))
                self._deeper(-1)
                return tree
        return self._member()

    def _member(self) -> CelNode:
        tree = self._primary()
        while True:
            if self._take("."):
                kind = ".?" if self._take("?") else "member"
                name = self._name()
                if kind == "member" and self._take("("):
                    tree = _node("call", (tree, *self._listed(")")), name)
                else:
                    tree = _node(kind, (tree,), name)
            elif self._take("["):
                tree = _node("[?" if self._take("?") else "index", (tree, self._inside()))
                self._need("]")
            else:
                return tree

    def _name(self) -> str:
        kind, token = self._tokens[self._at]
        if kind != "name":
            raise ExpressionError(f"expression {self._text[:80]!r}: expected a name, found {token!r}")
        self._at += 1
        return token

    def _listed(self, end: str) -> tuple[CelNode, ...]:
        found: list[CelNode] = []
        while not self._take(end):
            if found:
                self._need(",")
            found.append(self._inside())
        return tuple(found)

    def _pairs(self) -> tuple[CelNode, ...]:
        """Keys and values in turn."""
        found: list[CelNode] = []
        while not self._take("}"):
            if found:
                self._need(",")
            found.append(self._inside())
            self._need(":")
            found.append(self._inside())
        return tuple(found)

    def _primary(self) -> CelNode:
        kind, token = self._tokens[self._at]
        if self._take("("):
            tree = self._inside()
            self._need(")")
            return tree
        if self._take("["):
            return _node("list", self._listed("]"))
        if self._take("{"):
            return _node("map", self._pairs())
        self._at += 1
        if kind == "number":
            return CelNode("literal", value=_number(token))
        if kind == "text":
            return CelNode("literal", value=re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), token[1:-1]))
        if kind == "raw":
            return CelNode("literal", value=token[2:-1])
        if kind != "name":
            raise ExpressionError(f"expression {self._text[:80]!r}: {token!r} was not expected")
        if token in _WORDS:
            return CelNode("literal", value=_WORDS[token])
        if self._take("("):
            return _node("call", (CelNode("name", value=""), *self._listed(")")), token)
        return CelNode("name", value=token)


def _number(token: str) -> float:
    if not token.isdigit():
        return float(token)
    number = int(token) if len(token) < _LONGEST_NUMBER else 2**63
    if number >= 2**63:
        raise ExpressionError(f"the number {token[:40]} does not fit 64 bits")
    return number


@lru_cache(maxsize=4096)
def read_expression(text: str) -> CelNode:
    """The tree of an expression. Raises ExpressionError."""
    return _Reader(text).whole()
