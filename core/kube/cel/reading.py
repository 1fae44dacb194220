# SPDX-License-Identifier: Apache-2.0
"""Read a CEL expression into a tree: cel-go's grammar (`parser/gen/CEL.g4`) with optional syntax and all macros.

Escaped field names (between back-ticks) are not known, as in Kubernetes.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeGuard

from pumice.config.errors import RequestError
from pumice.core.kube.cel.numbers import Uint

_STRING: Final = (
    r"[rR](?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|\"[^\"\n\r]*\"|'[^'\n\r]*')"
    r"|\"\"\"(?:\\[\s\S]|[^\\])*?\"\"\"|'''(?:\\[\s\S]|[^\\])*?'''"
    r"|\"(?:\\.|[^\"\\\n\r])*\"|'(?:\\.|[^'\\\n\r])*'"
)
_TOKEN: Final = re.compile(
    rf"(?P<text>{_STRING})|[bB](?P<bytes>{_STRING})"
    r"|(?P<double>\d+\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\.\d+(?:[eE][-+]?\d+)?)"
    r"|(?P<uint>(?:0x[0-9a-fA-F]+|\d+)[uU])|(?P<int>0x[0-9a-fA-F]+|\d+)"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)|(?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%!<>()\[\]{}.,?:])"
)
_BLANK: Final = re.compile(r"(?:[ \t\r\n\f]|//[^\n]*)*")
LONGEST: Final = 10 * 1024
"""Letters of an expression, as Kubernetes has it."""
DEEPEST: Final = 100
"""Operations inside one another: evaluation goes down to each."""
NESTED: Final = 32
"""Brackets and signs inside one another: reading takes ten calls for each."""
# No number of 64 bits has as many digits. Python's int() raises its own error for thousands of them.
_LONGEST_NUMBER: Final = 24
_RELATIONS: Final = ("==", "!=", "<", "<=", ">", ">=", "in")
_SUMS: Final = ("+", "-")
_PRODUCTS: Final = ("*", "/", "%")
_WORDS: Final = {"true": True, "false": False, "null": None}
RESERVED: Final = frozenset({
    "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
    "namespace", "return", "var", "void", "while", "in",
})  # fmt: skip
"""Words that no variable may have as its name."""
_ESCAPES: Final = dict(zip("abfnrtv\"'\\?`", "\a\b\f\n\r\t\v\"'\\?`", strict=True))
_ESCAPE: Final = re.compile(
    r"\\(?:(?P<one>[abfnrtv\"'\\?`])|[xX](?P<hex>[0-9a-fA-F]{2})|(?P<octal>[0-3][0-7]{2})"
    r"|u(?P<four>[0-9a-fA-F]{4})|U(?P<eight>[0-9a-fA-F]{8})|(?P<wrong>[\s\S]?))"
)

FORMATS: Final = (
    "dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "dns1123LabelPrefix", "dns1123SubdomainPrefix",
    "dns1035LabelPrefix", "labelValue", "uri", "uuid", "byte", "date", "datetime",
)  # fmt: skip
"""Names of Kubernetes' string formats."""
QUALIFIED: Final = frozenset(
    {
        *("sets.contains", "sets.equivalent", "sets.intersects", "lists.range", "strings.quote", "ip.isCanonical"),
        *("optional.of", "optional.ofNonZeroValue", "optional.none", "optional.unwrap", "jsonpatch.escapeKey"),
        *("format.named", *(f"format.{name}" for name in FORMATS)),
    }
)
"""Functions with a dot in their name, which reads like a method of a variable."""
TYPE_PATHS: Final = frozenset(
    {
        *("google.protobuf.Timestamp", "google.protobuf.Duration", "net.IP", "net.CIDR", "kubernetes.URL"),
        *("kubernetes.Quantity", "kubernetes.Semver", "kubernetes.NamedFormat"),
    }
)
"""Types with a dot in their name."""
MACROS: Final[dict[tuple[str, int], int]] = {
    **{(name, 2): 1 for name in ("all", "exists", "exists_one", "filter", "map", "sortBy")},
    **{(name, 2): 1 for name in ("optMap", "optFlatMap")},
    ("map", 3): 1,
    **{(name, 3): 2 for name in ("all", "exists", "exists_one", "existsOne")},
    **{(name, count): 2 for name in ("transformList", "transformMap", "transformMapEntry") for count in (3, 4)},
}
"""Macros by name and number of arguments: how many of these are names of variables."""


class ExpressionError(RequestError):
    """An expression that cannot be read, or has no value."""

    code = 422
    reason = "Invalid"


@dataclass(frozen=True, slots=True)
class CelNode:
    """One operation of an expression.

    `kind`: literal, list, map, message, name, member, index, has, call (a method), function, macro, bind, not, minus,
    &&, ||, choice, or a sign of two sides; `.?` and `[?` are members and indices that may be absent, `?` an element of
    a list or map that may be. `name`: of a variable, field, function, macro or type; `value`: of a literal.
    `depth`, `size`: operations inside one another, and in all.
    """

    kind: str
    parts: tuple[CelNode, ...] = ()
    name: str = ""
    value: Any = None
    depth: int = 1
    size: int = 1


def make_node(kind: str, parts: tuple[CelNode, ...], name: str = "", value: object = None) -> CelNode:
    """Return a node over its parts. Raises ExpressionError for one that goes too deep."""
    depth = 1 + max((part.depth for part in parts), default=0)
    if depth > DEEPEST:
        raise ExpressionError(f"the expression is nested deeper than {DEEPEST} levels")
    return CelNode(kind, parts, name, value, depth, 1 + sum(part.size for part in parts))


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Return whether a value is a list."""
    return isinstance(value, list)


def is_map(value: object) -> TypeGuard[dict[Any, Any]]:
    """Return whether a value is a map."""
    return isinstance(value, dict)


def is_collection(value: object) -> TypeGuard[list[Any] | dict[Any, Any]]:
    """Return whether a value is a list or a map."""
    return isinstance(value, list | dict)


def shown(value: object) -> str:
    """Return a value as a message shows it, cut to a fixed length."""
    if isinstance(value, str):
        return repr(value[:80])
    return repr(value) if value is None or isinstance(value, bool | int | float) else f"a {type(value).__name__}"


def variables_of(macro: CelNode) -> int:
    """Return how many arguments of a macro are names of variables."""
    return MACROS[macro.name, len(macro.parts) - 1]


def dotted(tree: CelNode) -> str:
    """Return the names of a chain such as `a.b.c`; "" for anything else."""
    names: list[str] = []
    while tree.kind == "member":
        names.append(tree.name)
        tree = tree.parts[0]
    return ".".join([tree.name, *reversed(names)]) if tree.kind == "name" else ""


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = _end_of_blanks(text, 0)
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionError(f"expression {text[:80]!r}: cannot read {text[at : at + 10]!r}")
        found.append((str(match.lastgroup), match.group(str(match.lastgroup))))
        at = _end_of_blanks(text, match.end())
    found.append(("end", ""))
    return found


def _end_of_blanks(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


class _Reader:
    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise ExpressionError(f"the expression is longer than {LONGEST} letters")
        self._text, self._tokens, self._at, self._depth = text, _tokens(text), 0, 0

    def _peek(self, ahead: int = 0) -> str:
        """Return the next token if it is a sign or a name."""
        kind, token = self._tokens[min(self._at + ahead, len(self._tokens) - 1)]
        return token if kind in ("sign", "name") else ""

    def _take(self, *wanted: str) -> bool:
        found = self._peek() in wanted
        self._at += found
        return found

    def _wrong(self, why: str) -> ExpressionError:
        return ExpressionError(f"expression {self._text[:80]!r}: {why}")

    def _need(self, wanted: str) -> None:
        if not self._take(wanted):
            raise self._wrong(f"expected {wanted!r}, found {self._tokens[self._at][1][:20]!r}")

    def whole(self) -> CelNode:
        tree = self._choice()
        if self._tokens[self._at][0] != "end":
            raise self._wrong(f"{self._tokens[self._at][1][:20]!r} was not expected")
        return tree

    def _inside(self) -> CelNode:
        """Read an expression in brackets, or behind a colon."""
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
        # In cel-go's grammar (CEL.g4) a choice behind the colon needs no brackets, one before it does.
        first = self._either()
        self._need(":")
        return make_node("choice", (condition, first, self._inside()))

    def _either(self) -> CelNode:
        parts = [self._both()]
        while self._take("||"):
            parts.append(self._both())
        # One node for the whole chain: one for each sign would make a long chain too deep (DEEPEST).
        return make_node("||", tuple(parts)) if len(parts) > 1 else parts[0]

    def _both(self) -> CelNode:
        parts = [self._relation()]
        while self._take("&&"):
            parts.append(self._relation())
        return make_node("&&", tuple(parts)) if len(parts) > 1 else parts[0]

    def _relation(self) -> CelNode:
        tree = self._sum()
        while (sign := self._peek()) in _RELATIONS and self._take(sign):
            tree = make_node(sign, (tree, self._sum()))
        return tree

    def _sum(self) -> CelNode:
        tree = self._product()
        while (sign := self._peek()) in _SUMS and self._take(sign):
            tree = make_node(sign, (tree, self._product()))
        return tree

    def _product(self) -> CelNode:
        tree = self._unary()
        while (sign := self._peek()) in _PRODUCTS and self._take(sign):
            tree = make_node(sign, (tree, self._unary()))
        return tree

    def _unary(self) -> CelNode:
        if self._peek() == "-" and self._tokens[self._at + 1][0] in ("int", "double"):
            return self._member()  # the sign is a part of the number: the least int has no positive counterpart
        for sign, kind in (("!", "not"), ("-", "minus")):
            if self._take(sign):
                self._deeper(1)
                tree = make_node(kind, (self._unary(),))
                self._deeper(-1)
                return tree
        return self._member()

    def _member(self) -> CelNode:
        tree = self._primary()
        while True:
            if self._take("."):
                tree = self._selected(tree)
            elif self._take("["):
                tree = make_node("[?" if self._take("?") else "index", (tree, self._inside()))
                self._need("]")
            elif self._peek() == "{" and (path := dotted(tree)):
                self._take("{")
                tree = make_node("message", self._pairs(fields=True), path)
            else:
                return tree

    def _selected(self, owner: CelNode) -> CelNode:
        """Read what stands behind a dot."""
        kind = ".?" if self._take("?") else "member"
        name = self._name()
        if kind == "member" and self._take("("):
            return self._called(owner, name, self._listed(")"))
        tree = make_node(kind, (owner,), name)
        # Such a path is one name. As members, its first part would be looked up as a variable.
        if kind == "member" and (path := dotted(tree)) in TYPE_PATHS:
            return CelNode("name", name=path)
        return tree

    def _called(self, owner: CelNode, name: str, arguments: tuple[CelNode, ...]) -> CelNode:
        # A variable may have such a name, too: `sets.contains(…)` never reads one, as in cel-go.
        path = f"{owner.name}.{name}" if owner.kind == "name" else ""
        if path in QUALIFIED:
            return make_node("function", arguments, path)
        if path == "cel.bind" and len(arguments) == 3:
            self._variables(name, arguments[:1])
            return make_node("bind", (arguments[0], arguments[2], arguments[1]))
        variables = MACROS.get((name, len(arguments)))
        if variables is None:
            return make_node("call", (owner, *arguments), name)
        self._variables(name, arguments[:variables])
        return make_node("macro", (owner, *arguments), name)

    def _variables(self, macro: str, parts: tuple[CelNode, ...]) -> None:
        """Check the arguments of a macro that must be names of variables."""
        if any(part.kind != "name" or "." in part.name for part in parts):
            raise self._wrong(f"{macro}(): a variable must be a simple name")
        if len({part.name for part in parts}) < len(parts):
            raise self._wrong(f"{macro}(): the variable {parts[0].name} is named twice")

    def _name(self) -> str:
        kind, token = self._tokens[self._at]
        # Reserved words may name fields, as in CEL's grammar; these may not, being tokens of their own.
        if kind != "name" or token in _WORDS or token == "in":
            raise self._wrong(f"expected a name, found {token[:20]!r}")
        self._at += 1
        return token

    def _listed(self, end: str, *, literal: bool = False) -> tuple[CelNode, ...]:
        """Read expressions up to a bracket. `literal`: elements of a list, with a comma after the last perhaps."""
        found: list[CelNode] = []
        # CEL.g4 takes a comma without an element before it: `[,]` is an empty list.
        if literal and self._take(","):
            self._need(end)
            return ()
        while not self._take(end):
            if found:
                self._need(",")
                if literal and self._take(end):
                    break
            optional = literal and self._take("?")
            each = self._inside()
            found.append(make_node("?", (each,)) if optional else each)
        return tuple(found)

    def _pairs(self, *, fields: bool = False) -> tuple[CelNode, ...]:
        """Read keys and values in turn, up to a brace. `fields`: the keys are names."""
        found: list[CelNode] = []
        # As in lists, `{,}` is an empty map.
        if self._take(","):
            self._need("}")
            return ()
        while not self._take("}"):
            if found:
                self._need(",")
                if self._take("}"):
                    break
            optional = self._take("?")
            found.append(CelNode("literal", value=self._name()) if fields else self._inside())
            self._need(":")
            each = self._inside()
            found.append(make_node("?", (each,)) if optional else each)
        return tuple(found)

    def _primary(self) -> CelNode:
        if self._take("("):
            tree = self._inside()
            self._need(")")
            return tree
        if self._take("["):
            return make_node("list", self._listed("]", literal=True))
        if self._take("{"):
            return make_node("map", self._pairs())
        negative = self._peek() == "-" and self._take("-")
        self._take(".")  # a name of the outermost scope
        kind, token = self._tokens[self._at]
        self._at += 1
        match kind:
            case "int" | "uint":
                return CelNode("literal", value=_whole(token, negative=negative))
            case "double":
                return CelNode("literal", value=_double(token, negative=negative))
            case "text" | "bytes":
                return CelNode("literal", value=_literal(token) if kind == "text" else _literal_bytes(token))
            case "name":
                return self._named(token)
            case _:
                raise self._wrong(f"{token[:20]!r} was not expected")

    def _named(self, token: str) -> CelNode:
        if token in _WORDS:
            return CelNode("literal", value=_WORDS[token])
        if token in RESERVED:
            raise self._wrong(f"{token} is a reserved word")
        if not self._take("("):
            return CelNode("name", name=token)
        arguments = self._listed(")")
        if token != "has":
            return make_node("function", arguments, token)
        if len(arguments) != 1 or arguments[0].kind != "member":
            raise self._wrong("has() takes one field, such as has(self.name)")
        return make_node("has", arguments[0].parts, arguments[0].name)


def _whole(token: str, *, negative: bool) -> int:
    digits = token.rstrip("uU")
    number = int(digits, 0 if digits.startswith("0x") else 10) if len(digits) < _LONGEST_NUMBER else 2**64
    number = -number if negative else number
    if digits != token:
        if number < 2**64:
            return Uint(number)
    elif -(2**63) <= number < 2**63:
        return number
    raise ExpressionError(f"the number {token[:40]} does not fit 64 bits")


def _double(token: str, *, negative: bool) -> float:
    number = -float(token) if negative else float(token)
    if math.isinf(number):
        raise ExpressionError(f"the number {token[:40]} does not fit a double")
    return number


def _body(token: str) -> tuple[str, bool]:
    """Return the text between the quotes, and whether escapes in it count."""
    # cel-go does so with raw texts, too (`parser/unescape.go`, newlineNormalizer).
    token = token.replace("\r\n", "\n").replace("\r", "\n")
    raw = token[0] in "rR"
    token = token.removeprefix("r").removeprefix("R")
    marks = 3 if len(token) >= 6 and token[:3] in ('"""', "'''") else 1
    return token[marks:-marks], not raw


def _literal(token: str) -> str:
    body, escaped = _body(token)
    return _ESCAPE.sub(_unescaped, body) if escaped else body


def _literal_bytes(token: str) -> bytes:
    body, escaped = _body(token)
    if not escaped:
        return body.encode("utf-8", "surrogatepass")
    found, at = bytearray(), 0
    for match in _ESCAPE.finditer(body):
        found += body[at : match.start()].encode("utf-8", "surrogatepass")
        # A byte holds no code point; `\x` and octal escapes name the byte itself.
        if match.lastgroup in ("four", "eight"):
            raise ExpressionError(f"{match[0]} is not known in bytes")
        found.append(ord(_unescaped(match)))
        at = match.end()
    return bytes(found + body[at:].encode("utf-8", "surrogatepass"))


def _unescaped(match: re.Match[str]) -> str:
    group = str(match.lastgroup)
    if group == "one":
        return _ESCAPES[match[group]]
    code = -1 if group == "wrong" else int(match[group], 8 if group == "octal" else 16)
    if not 0 <= code < 0x110000 or 0xD800 <= code < 0xE000:
        raise ExpressionError(f"{match[0]!r} is not a valid escape in a string")
    return chr(code)


# A selector is asked about every device, a rule about every object: each text is read once.
@lru_cache(maxsize=4096)
def read_expression(text: str) -> CelNode:
    """Return the tree of an expression. Raises ExpressionError."""
    return _Reader(text).whole()
