# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' named formats of strings and the problems of a text, in the words of apimachinery's `content`."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Final

from pumice.core.kube.cel.network import NetworkError, request_url
from pumice.core.kube.cel.reading import FORMATS
from pumice.core.kube.cel.times import TimeError, day_of
from pumice.core.kube.cel.values import NONE, NamedFormat, OptionalValue

if TYPE_CHECKING:
    from collections.abc import Callable

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_OLD_LABEL: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LONGEST: Final = 2_048
_UUID: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE)
# The bare dot takes any letter, as in kube-openapi's own pattern (`strfmt/time.go`, DateTimePattern).
_CLOCK: Final = re.compile(r"(\d\d):(\d\d):(\d\d)(.\d+)?(z|[+-]\d\d:\d\d)", re.ASCII)
_ENDS: Final = "and must start and end with an alphanumeric character"
_KEY_RULE: Final = f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"


def _unlike(why: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{why} (e.g. {shown}regex used for validation is '{pattern}')"


def _matched(text: str, most: int, pattern: str, why: str, unit: str = "characters") -> list[str]:
    """Return the problems of a text's length and letters."""
    # Bytes, not letters: Go's len counts them.
    found = [f"must be no more than {most} {unit}"] if len(text.encode("utf-8", "replace")) > most else []
    # A longer text is not valid anyway, and backtracking takes time that grows with the square of the length.
    valid = len(text) <= _LONGEST and re.fullmatch(pattern, text, re.ASCII)
    return found if valid else [*found, why]


def _label(text: str) -> list[str]:
    rule = f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}"
    dots = "." in text and re.fullmatch(_SUBDOMAIN, text)
    why = "must not contain dots" if dots else _unlike(rule, _LABEL, "my-name", "123-abc")
    return _matched(text, 63, _LABEL, why)


def _subdomain(text: str, unit: str = "characters") -> list[str]:
    rule = f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS}"
    return _matched(text, 253, _SUBDOMAIN, _unlike(rule, _SUBDOMAIN, "example.com"), unit)


def _old_label(text: str) -> list[str]:
    rule = (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character"
    )
    return _matched(text, 63, _OLD_LABEL, _unlike(rule, _OLD_LABEL, "my-name", "abc-123"))


def _qualified(text: str) -> list[str]:
    *prefix, name = text.split("/")
    unlike = _unlike(_KEY_RULE, _KEY, "MyName", "my.name", "123-abc")
    if len(prefix) > 1:
        return [f"a valid label key {unlike} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    found = ["prefix part must be non-empty"] if prefix == [""] else []
    found += [f"prefix part {why}" for each in prefix if each for why in _subdomain(each, "bytes")]
    found += ["name part must be non-empty"] if not name else []
    return found + [f"name part {why}" for why in _matched(name, 63, _KEY, unlike, "bytes")]


def _label_value(text: str) -> list[str]:
    why = f"a valid label must be an empty string or consist of {_KEY_RULE.removeprefix('must consist of ')}"
    return _matched(text, 63, f"({_KEY})?", _unlike(why, f"({_KEY})?", "MyValue", "my_value", "12345"), "bytes")


def _before_suffix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Check a name that something will be added to: it may end in a dash."""

    def checked(text: str) -> list[str]:
        # apimachinery's maskTrailingDash (`pkg/api/validation/generic.go`) replaces two letters, not one.
        return check(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)

    return checked


def _uri(text: str) -> list[str]:
    try:
        request_url(text)
    except NetworkError as error:
        return [f"parse {text[:80]!r}: {error}"]
    return []


def _uuid(text: str) -> list[str]:
    return [] if _UUID.fullmatch(text) else ["does not match the UUID format"]


def _byte(text: str) -> list[str]:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ["invalid base64"]
    return [] if text else ["invalid base64"]


def _is_day(text: str) -> bool:
    try:
        day_of(text)
    except TimeError:
        return False
    return True


def _date(text: str) -> list[str]:
    return [] if _is_day(text) else ["invalid date"]


def _datetime(text: str) -> list[str]:
    day, _, clock = text.lower().partition("t")
    match = _CLOCK.fullmatch(clock)
    # Two digits compare as texts as they do as numbers.
    valid = match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"
    return [] if valid and _is_day(day) else ["invalid datetime"]


_CHECKS: Final = (
    _label, _subdomain, _old_label, _qualified, _before_suffix(_label), _before_suffix(_subdomain),
    _before_suffix(_old_label), _label_value, _uri, _uuid, _byte, _date, _datetime,
)  # fmt: skip
NAMED_FORMATS: Final = {name: NamedFormat(name, check) for name, check in zip(FORMATS, _CHECKS, strict=True)}


def named(name: str) -> OptionalValue:
    """Return the format of a name, if it exists."""
    return OptionalValue(NAMED_FORMATS[name]) if name in NAMED_FORMATS else NONE


def validate(form: NamedFormat, text: str) -> OptionalValue:
    """Return the problems of a text."""
    problems = form.problems(text)
    return OptionalValue(problems) if problems else NONE
