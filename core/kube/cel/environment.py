# SPDX-License-Identifier: Apache-2.0
"""Every function and operator of CEL in Kubernetes 1.35, by its signature.

Source: apiserver's `pkg/cel/environment/base.go`: cel-go's standard library, strings (version 2), lists (version 3),
sets, optional types and two-variable macros, and Kubernetes' own libraries.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from pumice.core.errors import QuantityError
from pumice.core.go_numbers import parse_float, parse_int
from pumice.core.kube.cel import formats, lists, network, numbers, quantities, texts, times, values
from pumice.core.kube.cel.reading import FORMATS, ExpressionError
from pumice.core.kube.cel.types import CelType, Signature, signature
from pumice.core.kube.cel.values import Authority, OptionalValue, compare
from pumice.core.objects.metadata import parse_bool

Function = Callable[..., Any]


def _valid(read: Function) -> Function:
    """Return whether a text can be read so."""

    def asked(*arguments: Any) -> bool:
        try:
            read(*arguments)
        except (ValueError, QuantityError):
            return False
        return True

    return asked


def _comparing(*found: int) -> Function:
    def holds(left: object, right: object) -> bool:
        return compare(left, right) in found

    return holds


def _counting(unit: int) -> Function:
    def counted(span: times.Duration) -> int:
        return span.counted(unit)

    return counted


def _itself(value: object) -> Any:
    return value


def _part(place: int) -> Function:
    def number(one: quantities.Version) -> int:
        return quantities.part(one, place)

    return number


def _constant(value: object) -> Function:
    def constant(*_: Any) -> Any:
        return value

    return constant


def _compared(one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)


def _text_plus(left: Any, right: Any) -> Any:
    # Before the sum is made: an expression could double a text until it fills the memory.
    texts.bounded(len(left) + len(right))
    return left + right


def _boolean(text: str) -> bool:
    read = parse_bool(text)
    if read is not None:
        return read
    raise ValueError(f"type conversion error from 'string' to 'bool': {text[:40]!r}")


def _number(read: Callable[[str], Any], kind: str) -> Function:
    def number(text: str) -> Any:
        value = read(text)
        if value is None:
            raise ValueError(f"type conversion error from 'string' to '{kind}': {text[:40]!r}")
        return value

    return number


def _unsigned(text: str) -> Any:
    """Read digits without a sign, as Go's strconv.ParseUint."""
    if not (text.isascii() and text.isdigit()) or len(text.lstrip("0")) > _MOST_DIGITS:
        return None
    number = int(text.lstrip("0") or "0")
    return numbers.unsigned(number) if number < 2**64 else None


_MOST_DIGITS: Final = 20  # of 64 bits; Python's int() gets slow with thousands


def _step(name: str, part: str) -> Function:
    """Return a step of an authorization check, which says a part of a request."""

    def taken(before: Authority, said: str) -> Authority:
        if part in ("path", "resource") and not said.strip():
            raise ValueError(f"{part} must not be empty")
        return before.then(name, {part: said})

    return taken


def _allowed(decided: Authority) -> bool:
    return decided.decision()[0]


def _reason(decided: Authority) -> str:
    return decided.decision()[1]


def _service_account(before: Authority, namespace: str, name: str) -> Authority:
    for kind, text in (("dns1123Subdomain", name), ("dns1123Label", namespace)):
        if formats.NAMED_FORMATS[kind].problems(text):
            raise ValueError(f"Invalid service account {'name' if text is name else 'namespace'}")
    return before.then("Authorizer", {"account": f"system:serviceaccount:{namespace}:{name}"})


def _same_kind(names: str, template: str, function: Function) -> dict[str, Function]:
    return {template.replace("$", name): function for name in names.split()}


_NUMBERS: Final = "int uint double"
_COMPARABLE: Final = "int uint double bool duration timestamp string bytes"
_AUTHZ: Final = "kubernetes.authorization"

OPERATORS: Final[dict[str, Function]] = {
    "==(A, A) -> bool": values.equal,
    "!=(A, A) -> bool": values.unequal,
    **{
        f"{sign}({left}, {right}) -> bool": _comparing(*found)
        for sign, found in (("<", (-1,)), ("<=", (-1, 0)), (">", (1,)), (">=", (0, 1)))
        for left, right in [
            # Numbers compare across their types; arithmetic (below) takes two of one type only, as in cel-go.
            *((one, other) for one in _NUMBERS.split() for other in _NUMBERS.split()),
            *((each, each) for each in ("bool", "string", "bytes", "timestamp", "duration")),
        ]
    },
    **_same_kind(_NUMBERS, "+($, $) -> $", numbers.plus),
    **_same_kind("string bytes", "+($, $) -> $", _text_plus),
    "+(list<A>, list<A>) -> list<A>": lists.concatenated,
    "+(duration, duration) -> duration": times.Duration.plus,
    "+(timestamp, duration) -> timestamp": times.Timestamp.plus,
    "+(duration, timestamp) -> timestamp": times.Duration.after,
    **_same_kind(_NUMBERS, "-($, $) -> $", numbers.minus),
    "-(duration, duration) -> duration": times.Duration.minus,
    "-(timestamp, duration) -> timestamp": times.Timestamp.minus,
    "-(timestamp, timestamp) -> duration": times.Timestamp.since,
    **_same_kind(_NUMBERS, "*($, $) -> $", numbers.times),
    **_same_kind(_NUMBERS, "/($, $) -> $", numbers.divided),
    **_same_kind("int uint", "%($, $) -> $", numbers.rest),
    "in(A, list<A>) -> bool": lists.is_in,
    "in(A, map<A, B>) -> bool": lists.is_in,
    **_same_kind("int double", "minus($) -> $", numbers.negated),
    "not(bool) -> bool": operator.not_,
}
STANDARD: Final[dict[str, Function]] = {
    **_same_kind("bytes list<A> map<A,B> string", "size($) -> int", len),
    **_same_kind("bytes list<A> map<A,B> string", "($).size() -> int", len),
    "dyn(A) -> dyn": _itself,
    "type(A) -> type": values.type_of,
    "bool(bool) -> bool": bool,
    "bool(string) -> bool": _boolean,
    "bytes(bytes) -> bytes": bytes,
    "bytes(string) -> bytes": texts.encoded,
    **_same_kind("double int uint", "double($) -> double", float),
    "double(string) -> double": _number(parse_float, "double"),
    "int(int) -> int": int,
    "int(uint) -> int": numbers.as_whole,
    "int(double) -> int": numbers.whole_of_double,
    "int(string) -> int": _number(parse_int, "int"),
    "int(duration) -> int": operator.attrgetter("nanoseconds"),
    "int(timestamp) -> int": operator.attrgetter("seconds"),
    "uint(uint) -> uint": _itself,
    "uint(int) -> uint": numbers.unsigned,
    "uint(double) -> uint": numbers.unsigned_of_double,
    "uint(string) -> uint": _number(_unsigned, "uint"),
    **_same_kind("string bool bytes double duration int timestamp uint", "string($) -> string", texts.text_of),
    "duration(duration) -> duration": _itself,
    "duration(int) -> duration": times.Duration,
    "duration(string) -> duration": times.duration_of,
    "timestamp(timestamp) -> timestamp": _itself,
    "timestamp(int) -> timestamp": times.moment,
    "timestamp(string) -> timestamp": times.timestamp_of,
    "(string).contains(string) -> bool": texts.contains,
    "(string).startsWith(string) -> bool": str.startswith,
    "(string).endsWith(string) -> bool": str.endswith,
    "(string).matches(string) -> bool": texts.matches,
    "matches(string, string) -> bool": texts.matches,
    **{f"(timestamp).{name}() -> int": read for name, read in times.GETTERS.items()},
    **{f"(timestamp).{name}(string) -> int": read for name, read in times.GETTERS.items()},
    **{f"(duration).{name}() -> int": _counting(unit) for name, unit in times.SPANS.items()},
}
STRINGS: Final[dict[str, Function]] = {
    "(string).charAt(int) -> string": texts.char_at,
    "(string).indexOf(string) -> int": texts.index_of,
    "(string).indexOf(string, int) -> int": texts.index_of,
    "(string).lastIndexOf(string) -> int": texts.last_index_of,
    "(string).lastIndexOf(string, int) -> int": texts.last_index_of,
    "(string).lowerAscii() -> string": texts.lower,
    "(string).upperAscii() -> string": texts.upper,
    "(string).replace(string, string) -> string": texts.replaced,
    "(string).replace(string, string, int) -> string": texts.replaced,
    "(string).split(string) -> list<string>": texts.split,
    "(string).split(string, int) -> list<string>": texts.split,
    "(string).substring(int) -> string": texts.substring,
    "(string).substring(int, int) -> string": texts.substring,
    "(string).trim() -> string": texts.trimmed,
    "(string).format(list<dyn>) -> string": texts.formatted,
    "(list<string>).join() -> string": texts.joined,
    "(list<string>).join(string) -> string": texts.joined,
    "strings.quote(string) -> string": texts.quoted,
    "(string).find(string) -> string": texts.found,
    "(string).findAll(string) -> list<string>": texts.all_found,
    "(string).findAll(string, int) -> list<string>": texts.all_found,
    "jsonpatch.escapeKey(string) -> string": texts.escaped_key,
}
LISTS: Final[dict[str, Function]] = {
    **_same_kind(_COMPARABLE, "(list<$>).isSorted() -> bool", lists.is_sorted),
    **_same_kind(_COMPARABLE, "(list<$>).min() -> $", lists.least),
    **_same_kind(_COMPARABLE, "(list<$>).max() -> $", lists.greatest),
    **_same_kind("int uint double duration", "(list<$>).sum() -> $", lists.total),
    **_same_kind(_COMPARABLE, "(list<$>).sort() -> list<$>", lists.ordered),
    "(list<A>).indexOf(A) -> int": lists.index_of,
    "(list<A>).lastIndexOf(A) -> int": lists.last_index_of,
    "(list<A>).slice(int, int) -> list<A>": lists.sliced,
    "(list<list<A>>).flatten() -> list<A>": lists.flattened,
    "(list<dyn>).flatten(int) -> list<dyn>": lists.flattened,
    "(list<A>).distinct() -> list<A>": lists.distinct,
    "(list<A>).reverse() -> list<A>": lists.backwards,
    "lists.range(int) -> list<int>": lists.counted,
    "sets.contains(list<A>, list<A>) -> bool": lists.holds_all,
    "sets.equivalent(list<A>, list<A>) -> bool": lists.equivalent,
    "sets.intersects(list<A>, list<A>) -> bool": lists.intersect,
}
OPTIONALS: Final[dict[str, Function]] = {
    "optional.of(A) -> optional_type<A>": OptionalValue,
    "optional.ofNonZeroValue(A) -> optional_type<A>": lists.of_non_zero,
    "optional.none() -> optional_type<A>": _constant(values.NONE),
    "(optional_type<A>).value() -> A": lists.value_of,
    "(optional_type<A>).hasValue() -> bool": lists.is_there,
    "(optional_type<A>).or(optional_type<A>) -> optional_type<A>": lists.either,
    "(optional_type<A>).orValue(A) -> A": lists.either_value,
    "(list<A>).first() -> optional_type<A>": lists.first,
    "(list<A>).last() -> optional_type<A>": lists.last,
    "optional.unwrap(list<optional_type<A>>) -> list<A>": lists.unwrapped,
    "(list<optional_type<A>>).unwrapOpt() -> list<A>": lists.unwrapped,
}
_QUANTITY, _SEMVER = "kubernetes.Quantity", "kubernetes.Semver"
KUBERNETES: Final[dict[str, Function]] = {
    f"quantity(string) -> {_QUANTITY}": quantities.amount,
    "isQuantity(string) -> bool": _valid(quantities.amount),
    f"sign({_QUANTITY}) -> int": quantities.sign,
    **{
        f"({kind}).{name}({kind}) -> {result}": function
        for kind in (_QUANTITY, _SEMVER)
        for name, result, function in (
            ("isGreaterThan", "bool", operator.gt),
            ("isLessThan", "bool", operator.lt),
            ("compareTo", "int", _compared),
        )
    },
    f"({_QUANTITY}).asApproximateFloat() -> double": quantities.as_double,
    f"({_QUANTITY}).asInteger() -> int": quantities.as_whole,
    f"({_QUANTITY}).isInteger() -> bool": quantities.is_whole,
    **_same_kind(f"int {_QUANTITY}", f"({_QUANTITY}).add($) -> {_QUANTITY}", quantities.added),
    **_same_kind(f"int {_QUANTITY}", f"({_QUANTITY}).sub($) -> {_QUANTITY}", quantities.subtracted),
    f"semver(string) -> {_SEMVER}": quantities.version,
    f"semver(string, bool) -> {_SEMVER}": quantities.version,
    "isSemver(string) -> bool": _valid(quantities.version),
    "isSemver(string, bool) -> bool": _valid(quantities.version),
    f"({_SEMVER}).major() -> int": _part(0),
    f"({_SEMVER}).minor() -> int": _part(1),
    f"({_SEMVER}).patch() -> int": _part(2),
    "url(string) -> kubernetes.URL": network.url,
    # Not `url`, which also reads the fragment: Kubernetes asks ParseRequestURI alone here (`pkg/cel/library/urls.go`).
    "isURL(string) -> bool": _valid(network.request_url),
    "(kubernetes.URL).getScheme() -> string": operator.attrgetter("scheme"),
    "(kubernetes.URL).getHost() -> string": operator.attrgetter("host"),
    "(kubernetes.URL).getHostname() -> string": operator.attrgetter("hostname"),
    "(kubernetes.URL).getPort() -> string": operator.attrgetter("port"),
    "(kubernetes.URL).getEscapedPath() -> string": operator.attrgetter("escaped_path"),
    "(kubernetes.URL).getQuery() -> map<string, list<string>>": network.Url.values,
    "ip(string) -> net.IP": network.ip,
    "isIP(string) -> bool": _valid(network.ip),
    "ip.isCanonical(string) -> bool": network.is_canonical,
    "string(net.IP) -> string": str,
    "(net.IP).family() -> int": operator.attrgetter("address.version"),
    "(net.IP).isUnspecified() -> bool": operator.attrgetter("address.is_unspecified"),
    "(net.IP).isLoopback() -> bool": operator.attrgetter("address.is_loopback"),
    "(net.IP).isLinkLocalMulticast() -> bool": operator.attrgetter("is_local_multicast"),
    "(net.IP).isLinkLocalUnicast() -> bool": operator.attrgetter("address.is_link_local"),
    "(net.IP).isGlobalUnicast() -> bool": operator.attrgetter("is_global"),
    "cidr(string) -> net.CIDR": network.cidr,
    "isCIDR(string) -> bool": _valid(network.cidr),
    "string(net.CIDR) -> string": str,
    "(net.CIDR).containsIP(net.IP) -> bool": network.IpNetwork.holds,
    "(net.CIDR).containsIP(string) -> bool": network.IpNetwork.holds_address,
    "(net.CIDR).containsCIDR(net.CIDR) -> bool": network.IpNetwork.holds,
    "(net.CIDR).containsCIDR(string) -> bool": network.IpNetwork.holds_network,
    "(net.CIDR).ip() -> net.IP": network.IpNetwork.first,
    "(net.CIDR).masked() -> net.CIDR": network.IpNetwork.masked,
    "(net.CIDR).prefixLength() -> int": operator.attrgetter("bits"),
    "format.named(string) -> optional_type<kubernetes.NamedFormat>": formats.named,
    **{f"format.{name}() -> kubernetes.NamedFormat": _constant(formats.NAMED_FORMATS[name]) for name in FORMATS},
    "(kubernetes.NamedFormat).validate(string) -> optional_type<list<string>>": formats.validate,
}
AUTHORIZER: Final[dict[str, Function]] = {
    f"({_AUTHZ}.Authorizer).path(string) -> {_AUTHZ}.PathCheck": _step("PathCheck", "path"),
    f"({_AUTHZ}.Authorizer).group(string) -> {_AUTHZ}.GroupCheck": _step("GroupCheck", "group"),
    f"({_AUTHZ}.Authorizer).serviceAccount(string, string) -> {_AUTHZ}.Authorizer": _service_account,
    f"({_AUTHZ}.GroupCheck).resource(string) -> {_AUTHZ}.ResourceCheck": _step("ResourceCheck", "resource"),
    **{
        f"({_AUTHZ}.ResourceCheck).{name}(string) -> {_AUTHZ}.ResourceCheck": _step("ResourceCheck", name)
        for name in ("subresource", "namespace", "name", "fieldSelector", "labelSelector")
    },
    f"({_AUTHZ}.PathCheck).check(string) -> {_AUTHZ}.Decision": _step("Decision", "verb"),
    f"({_AUTHZ}.ResourceCheck).check(string) -> {_AUTHZ}.Decision": _step("Decision", "verb"),
    f"({_AUTHZ}.Decision).allowed() -> bool": _allowed,
    f"({_AUTHZ}.Decision).reason() -> string": _reason,
    # The rules that answer here never fail, so a check is always decided.
    f"({_AUTHZ}.Decision).errored() -> bool": _constant(False),
    f"({_AUTHZ}.Decision).error() -> string": _constant(""),
}
LIBRARIES: Final = {
    "operators": OPERATORS,
    "standard": STANDARD,
    "strings and regular expressions": STRINGS,
    "lists and sets": LISTS,
    "optional values": OPTIONALS,
    "Kubernetes' types": KUBERNETES,
    "authorizer": AUTHORIZER,
}

Called = tuple[str, bool, int]
"""A function by its name, True for a method, and the number of its arguments, the owner too."""

# At import, for some 300 signatures: a call then looks only among those of its name and number of arguments.
_CALLS: Final[dict[Called, list[tuple[Signature, Function]]]] = {}
for _library in LIBRARIES.values():
    for _text, _function in _library.items():
        _one = signature(_text)
        _CALLS.setdefault((_one.name, _one.method, len(_one.params)), []).append((_one, _function))
_NAMES: Final = frozenset(name for name, _, _ in _CALLS)
# Cannot grow without end: functions and classes of values are few.
_RESOLVED: Final[dict[tuple[Any, ...], Function]] = {}


def is_function(name: str) -> bool:
    """Return whether there is a function or method of that name."""
    return name in _NAMES


def signatures(called: Called) -> list[Signature]:
    """Return the ways in which a function of that name may be called with so many arguments."""
    return [one for one, _ in _CALLS.get(called, ())]


def call(name: str, method: bool, arguments: list[Any]) -> Any:
    """Return what a function makes of values. Raises ExpressionError, and what the function raises."""
    # By the classes of the values: a second call of the same kind takes 1 µs; finding the overload again takes 6.
    key = (name, method, *map(type, arguments))
    function = _RESOLVED.get(key) or _resolved(key, name, method, arguments)
    if function is None:
        raise ExpressionError(_no_overload(name, arguments))
    return function(*arguments)


def _resolved(key: tuple[Any, ...], name: str, method: bool, arguments: list[Any]) -> Function | None:
    """Return the function for values of these classes, and remember it; not for `authorizer`, whose steps are of one
    class.
    """
    kinds = [values.kind_of(each) for each in arguments]
    known = _CALLS.get((name, method, len(arguments)), ())
    function = next((each for one, each in known if all(map(_takes, one.params, kinds))), None)
    if function is not None and not any(isinstance(each, Authority) for each in arguments):
        _RESOLVED[key] = function
    return function


def _takes(param: CelType, kind: str) -> bool:
    # What lists hold is not compared: the function itself raises TypeError for what it does not take.
    return param.name == kind or len(param.name) == 1 or param.name == "dyn"


def _no_overload(name: str, arguments: list[Any]) -> str:
    if name not in _NAMES:
        return f"unknown function {name!r}"
    return f"no such overload: {name}({', '.join(map(values.kind_of, arguments))})"
