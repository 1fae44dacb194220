"""The part of CEL that device selectors are written in: reading an expression into a tree.

Known: literals, lists, member and index access, method and function calls, ``!``, ``-``, ``+``, comparisons, ``in``,
``&&``, ``||`` and ``? :``. Not known: macros other than ``has``, maps, bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from config.errors import RequestError

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)|(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)|(?P<sign>&&|\|\||==|!=|<=|>=|[-+!<>()\[\].,?:]))"
)
_RELATIONS: Final = ("==", "!=", "<", "<=", ">", ">=", "in")
_WORDS: Final = {"true": True, "false": False, "null": None}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}


class ExpressionError(RequestError):
    """An expression that cannot be read, or has no value for a device."""

    code = 422
    reason = "Invalid"


@dataclass(frozen=True, slots=True)
class Node:
    """One operation. `kind`: literal, list, name, member, index, call, not, minus, +, a relation, &&, ||, choice."""

    kind: str
    parts: tuple[Node, ...] = ()
    value: object = None


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionError(f"expression {text!r}: cannot read {text[at : at + 10]!r}")
        found.append((str(match.lastgroup), match.group(str(match.lastgroup))))
        at = match.end()
    found.append(("end", ""))
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        self._text, self._tokens, self._at = text, _tokens(text), 0

    def _peek(self) -> str:
        kind, token = self._tokens[self._at]
        return token if kind != "text" else ""

    def _take(self, *wanted: str) -> bool:
        found = self._tokens[self._at][0] != "text" and self._peek() in wanted
        self._at += found
        return found

    def _need(self, wanted: str) -> None:
        if not self._take(wanted):
            raise ExpressionError(f"expression {self._text!r}: expected {wanted!r}, found {self._peek()!r}")

    def whole(self) -> Node:
        tree = self._choice()
        if self._tokens[self._at][0] != "end":
            raise ExpressionError(f"expression {self._text!r}: {self._peek()!r} was not expected")
        return tree

    def _choice(self) -> Node:
        condition = self._either()
        if not self._take("?"):
            return condition
        first = self._either()
        self._need(":")
        return Node("choice", (condition, first, self._choice()))

    def _either(self) -> Node:
        tree = self._both()
        while self._take("||"):
            tree = Node("||", (tree, self._both()))
        return tree

    def _both(self) -> Node:
        tree = self._relation()
        while self._take("&&"):
            tree = Node("&&", (tree, self._relation()))
        return tree

    def _relation(self) -> Node:
        tree = self._sum()
        while (sign := self._peek()) in _RELATIONS and self._take(sign):
            tree = Node(sign, (tree, self._sum()))
        return tree

    def _sum(self) -> Node:
        tree = self._unary()
        while self._take("+"):
            tree = Node("+", (tree, self._unary()))
        return tree

    def _unary(self) -> Node:
        if self._take("!"):
            return Node("not", (self._unary(),))
        if self._take("-"):
            return Node("minus", (self._unary(),))
        return self._member()

    def _member(self) -> Node:
        tree = self._primary()
        while True:
            if self._take("."):
                name = self._name()
                if self._take("("):
                    tree = Node("call", (tree, *self._listed(")")), name)
                else:
                    tree = Node("member", (tree,), name)
            elif self._take("["):
                tree = Node("index", (tree, self._choice()))
                self._need("]")
            else:
                return tree

    def _name(self) -> str:
        kind, token = self._tokens[self._at]
        if kind != "name":
            raise ExpressionError(f"expression {self._text!r}: expected a name, found {token!r}")
        self._at += 1
        return token

    def _listed(self, end: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self._take(end):
            if found:
                self._need(",")
            found.append(self._choice())
        return tuple(found)

    def _primary(self) -> Node:
        kind, token = self._tokens[self._at]
        if self._take("("):
            tree = self._choice()
            self._need(")")
            return tree
        if self._take("["):
            return Node("list", self._listed("]"))
        self._at += 1
        if kind == "number":
            return Node("literal", value=int(token) if token.isdigit() else float(token))
        if kind == "text":
            return Node("literal", value=re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), token[1:-1]))
        if kind != "name":
            raise ExpressionError(f"expression {self._text!r}: {token!r} was not expected")
        if token in _WORDS:
            return Node("literal", value=_WORDS[token])
        if self._take("("):
            return Node("call", (Node("name", value=""), *self._listed(")")), token)
        return Node("name", value=token)


@lru_cache(maxsize=4096)
def read_expression(text: str) -> Node:
    """The tree of an expression. Raises ExpressionError."""
    return _Reader(text).whole()
