# SPDX-License-Identifier: Apache-2.0
"""URLs, IP addresses and networks in expressions, read as Go reads them (`net/url`, `net/netip`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import quote, unquote_plus

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_ESCAPED: Final = re.compile(r"%([0-9a-fA-F]{2})")
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_PORT: Final = re.compile(r"(:\d*)?", re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_PATH_SAFE: Final = "$&+,/:;=@-_.~"
_VALID_PATH: Final = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@\[\]/%]*")
_HOST_BYTES: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~!$&'()*+,;=:[]<>\"")
_LONGEST_PREFIX: Final = 3


class NetworkError(ValueError):
    """A text that is not a URL, address or network."""


class NotAbsoluteError(NetworkError):
    """A URL that is neither absolute nor an absolute path."""


@dataclass(frozen=True, slots=True)
class Url:
    """A URL in its parts; `path` as it is written, with escapes; `user`: True if it names one."""

    scheme: str
    host: str
    path: str
    query: str
    fragment: str
    user: bool = False

    @property
    def hostname(self) -> str:
        """Return the host without port and brackets."""
        return self._split()[0]

    @property
    def port(self) -> str:
        """Return the port, "" without one."""
        return self._split()[1]

    def _split(self) -> tuple[str, str]:
        host, port, colon = self.host, "", self.host.rfind(":")
        if colon >= 0 and _PORT.fullmatch(host[colon:]):
            host, port = host[:colon], host[colon + 1 :]
        return (host[1:-1] if host.startswith("[") and host.endswith("]") else host), port

    @property
    def escaped_path(self) -> str:
        """Return the path with everything escaped that must be."""
        if self.path == "*":
            return "*"
        return self.path if _VALID_PATH.fullmatch(self.path) else quote(_unescaped(self.path), safe=_PATH_SAFE)

    def values(self) -> dict[str, list[str]]:
        """Return the parameters of its query; Go leaves out those that it cannot read."""
        found: dict[str, list[str]] = {}
        for pair in self.query.split("&"):
            key, _, value = pair.partition("=")
            if pair and ";" not in pair and not _BAD_ESCAPE.search(pair):
                found.setdefault(unquote_plus(key), []).append(unquote_plus(value))
        return found


def _unescaped(text: str) -> bytes:
    parts = _ESCAPED.split(text)
    return b"".join(bytes([int(each, 16)]) if place % 2 else each.encode() for place, each in enumerate(parts))


def url(text: str) -> Url:
    """Read an absolute URL or an absolute path. Raises NetworkError."""
    # Both, as in Kubernetes (`library/urls.go`): the first refuses relative ones, the second knows fragments.
    request_url(text)
    return _parsed(text, fragment=True)


def request_url(text: str) -> Url:
    """Read an absolute URL or path as Go's `ParseRequestURI` does. Raises NetworkError."""
    return _parsed(text, fragment=False)


def any_url(text: str) -> Url:
    """Read a URL as Go's `Parse` does, a relative one too. Raises NetworkError."""
    try:
        return _parsed(text, fragment=True)
    except NotAbsoluteError:
        return Url("", "", text, "", "")


def _parsed(text: str, *, fragment: bool) -> Url:
    """Parse a URL as Go's `Parse`; without `fragment` as its `ParseRequestURI`, which takes a # for a letter of the
    path.
    """
    after = ""
    if fragment:
        text, _, after = text.partition("#")
    if _CONTROL.search(text):
        raise NetworkError(f"{text[:80]!r}: invalid control character in URL")
    if not text:
        raise NotAbsoluteError("empty url")
    if text == "*":
        return Url("", "", "*", "", "")
    scheme, rest = _split_scheme(text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme, "", "", query, after)  # an opaque one, such as mailto:somebody
        raise NotAbsoluteError(f"{text[:80]!r}: invalid URI for request")
    host, user = "", False
    # As Go's `net/url`: without a scheme, `///x` is a path and names no host.
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        host, user = _authority(authority)
    if _BAD_ESCAPE.search(rest):
        raise NetworkError(f"{text[:80]!r}: invalid URL escape")
    return Url(scheme, host, rest, query, after, user)


def _split_scheme(text: str) -> tuple[str, str]:
    if text.startswith(":"):
        raise NetworkError("missing protocol scheme")
    match = _SCHEME.fullmatch(text)
    if match is None:
        before, colon, _ = text.partition(":")
        if colon and text[0].isascii() and text[0].isdigit() and "/" not in before:
            raise NetworkError("first path segment in URL cannot contain colon")
        return "", text
    # Go lowers the scheme and leaves the host as it is.
    return match[1].lower(), match[2]


def _authority(text: str) -> tuple[str, bool]:
    """Return the host and port, and whether a user stands before them."""
    user, at, host = text.rpartition("@")
    if at and (not _USER.fullmatch(user) or _BAD_ESCAPE.search(user)):
        raise NetworkError("invalid userinfo")
    if host.startswith("["):
        # The last bracket, as Go's `net/url` looks for it.
        end = host.rfind("]")
        if end < 0:
            raise NetworkError("missing ']' in host")
        port = host[end + 1 :]
    else:
        colon = host.rfind(":")
        port = host[colon:] if colon >= 0 else ""
    if not _PORT.fullmatch(port):
        raise NetworkError(f"invalid port {port[:40]!r} after host")
    plain = _ESCAPED.sub("", host)
    if "%" in plain or any(letter.isascii() and letter not in _HOST_BYTES for letter in plain):
        raise NetworkError("invalid character in host name")
    # Go allows escapes in a host only for bytes that are not ASCII (RFC 3986, page 21).
    if not host.startswith("[") and any(int(code, 16) < 0x80 for code in _ESCAPED.findall(host)):
        raise NetworkError("invalid URL escape in host")
    return _unescaped(host).decode("utf-8", "replace"), bool(at)


@dataclass(frozen=True, slots=True)
class IpAddress:
    """An IP address."""

    address: IPv4Address | IPv6Address

    def __str__(self) -> str:
        return str(self.address)

    @property
    def is_global(self) -> bool:
        """Return whether the address is global unicast to Go, which counts private ones too."""
        address = self.address
        special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
        # The broadcast address is not a unicast one to Go; Python's `ipaddress` has no word for it.
        return not special and str(address) != "255.255.255.255"

    @property
    def is_local_multicast(self) -> bool:
        """Return whether the address is link-local multicast."""
        if isinstance(self.address, IPv4Address):
            return self.address.packed[:3] == b"\xe0\x00\x00"
        return self.address.packed[0] == 0xFF and self.address.packed[1] & 0x0F == 2


def ip(text: str) -> IpAddress:
    """Read an address. Raises NetworkError, for one with a zone and an IPv4 one mapped to IPv6 too."""
    try:
        address = ip_address(text)
    except ValueError as error:
        raise NetworkError(f"IP Address {text[:80]!r} parse error during conversion from string") from error
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            raise NetworkError(f"IP address {text[:80]!r} with zone value is not allowed")
        if address.ipv4_mapped is not None:
            raise NetworkError(f"IPv4-mapped IPv6 address {text[:80]!r} is not allowed")
    return IpAddress(address)


def is_canonical(text: str) -> bool:
    """Return whether an address is written as Go writes it. Raises NetworkError."""
    return str(ip(text)) == text


@dataclass(frozen=True, slots=True)
class IpNetwork:
    """An address and the length of its prefix."""

    address: IPv4Address | IPv6Address
    bits: int

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    def network(self) -> IPv4Network | IPv6Network:
        """Return the addresses of the network."""
        return ip_network(f"{self.address}/{self.bits}", strict=False)

    def holds(self, other: IpAddress | IpNetwork) -> bool:
        """Return whether the network contains an address, or all of another network."""
        bits = other.bits if isinstance(other, IpNetwork) else self.bits
        return bits >= self.bits and other.address in self.network()

    def holds_address(self, text: str) -> bool:
        """Return whether the network contains an address, read from a text. Raises NetworkError."""
        return self.holds(ip(text))

    def holds_network(self, text: str) -> bool:
        """Return whether the network contains all of another, read from a text. Raises NetworkError."""
        return self.holds(cidr(text))

    def first(self) -> IpAddress:
        """Return the address before the slash."""
        return IpAddress(self.address)

    def masked(self) -> IpNetwork:
        """Return the network with zeros behind the prefix."""
        return IpNetwork(self.network().network_address, self.bits)


def cidr(text: str) -> IpNetwork:
    """Read a network such as 10.0.0.0/8. Raises NetworkError."""
    address, _, bits = text.rpartition("/")
    # Go's netip.ParsePrefix takes neither a sign nor zeros in front.
    digits = bits.isascii() and bits.isdigit() and len(bits) <= _LONGEST_PREFIX and (bits == "0" or bits[0] != "0")
    if not digits:
        raise NetworkError(f"network address parse error during conversion from string: {text[:80]!r}")
    found = ip(address).address
    if int(bits) > found.max_prefixlen:
        raise NetworkError(f"network address parse error: prefix length out of range in {text[:80]!r}")
    return IpNetwork(found, int(bits))
