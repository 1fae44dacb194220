# SPDX-License-Identifier: Apache-2.0
"""The query of a request: list, watch and write options, read as Kubernetes reads them."""

from __future__ import annotations

from typing import Final, Literal
from urllib.parse import parse_qsl

from msgspec import Struct

from pumice.actors.gateway.problems import bad_request, invalid
from pumice.config.printable import printable

Form = Literal["", "Ignore", "Warn", "Strict"]
_FORMS: Final[dict[str, Form]] = {"": "", "Ignore": "Ignore", "Warn": "Warn", "Strict": "Strict"}

_MATCHES: Final = ("", "Exact", "NotOlderThan")
_MOST_INT: Final = 2**63 - 1
_MOST_VALUES: Final = 200
MOST_OF_A_MANAGER: Final = 128
"""Bytes of the name of a field manager."""


class Query:
    """The values by name; the first of several counts, as with Go's `url.Values.Get`."""

    __slots__ = ("_values",)

    def __init__(self, raw: bytes) -> None:
        try:
            # Bounded: a query of a million fields would be read on the event loop.
            pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_VALUES) if raw else []
        except ValueError as error:
            raise bad_request(f"cannot read the query: {error}") from error
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str) -> str:
        """Return the value, "" when it is absent."""
        values = self._values.get(name)
        return values[0] if values else ""

    def all(self, name: str) -> list[str]:
        """Return every value given."""
        return self._values.get(name, [])

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Return names and values, the first of each."""
        return tuple([(name, values[0]) for name, values in self._values.items()])

    def flag(self, name: str) -> bool | None:
        """Return a boolean; None when it is absent. As Kubernetes reads it (apimachinery's runtime/conversion.go),
        only `0` and `false` in any case are false: `?watch=` and `?watch=yes` are true.
        """
        if name not in self._values:
            return None
        return self.text(name).lower() not in ("0", "false")

    def number(self, name: str) -> int | None:
        """Return an integer of 64 bits; None when it is absent or empty."""
        value = self.text(name)
        if not value:
            return None
        digits = value[1:] if value[0] in "+-" else value
        # Cut before it is read: Python refuses more than 4,300 digits, and 25 are out of range in any case.
        if not (digits.isascii() and digits.isdigit()) or abs(number := int(value[:25])) > _MOST_INT:
            raise bad_request(f'strconv.ParseInt: parsing "{value[:64]}": invalid syntax ({name})')
        return number


class ListOptions(Struct, frozen=True, gc=False):
    """Options of a list or a watch. `revision`: None when no resourceVersion was given.

    `initial`: sendInitialEvents, None when it was not said; `timeout_s`: None when it is left to the server.
    """

    watch: bool
    revision: int | None
    match: str
    labels: str
    fields: str
    limit: int
    token: str
    bookmarks: bool
    initial: bool | None
    timeout_s: int | None

    @property
    def exact(self) -> int:
        """Return the revision whose state a list must show, 0 for the present one: a page of a list at a revision is
        exact even where it does not say so.
        """
        return (self.revision or 0) if self.match == "Exact" or (self.limit and not self.match) else 0


def list_options(query: Query, *, watch: bool = False) -> ListOptions:
    """Read and check the options. Raises ApiError (400, 422). `watch`: it is one, whether or not the query says so."""
    options = ListOptions(
        watch=watch or bool(query.flag("watch")),
        revision=_revision(query.text("resourceVersion")),
        match=query.text("resourceVersionMatch"),
        labels=query.text("labelSelector"),
        fields=query.text("fieldSelector"),
        limit=max(query.number("limit") or 0, 0),
        token=query.text("continue"),
        bookmarks=bool(query.flag("allowWatchBookmarks")),
        initial=query.flag("sendInitialEvents"),
        timeout_s=query.number("timeoutSeconds"),
    )
    causes = _watch_causes(options) if options.watch else _list_causes(options)
    if causes:
        raise invalid("ListOptions", "", causes, "meta.k8s.io")
    return options


def _revision(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(_MOST_INT)):
        why = f'Invalid value: "{text[:64]}": strconv.ParseUint: parsing "{text[:64]}": invalid syntax'
        raise invalid("ListOptions", "", [("FieldValueInvalid", "resourceVersion", why)], "meta.k8s.io")
    return int(text)


def _list_causes(options: ListOptions) -> list[tuple[str, str, str]]:
    where = "resourceVersionMatch"
    if options.initial is not None:
        why = "Forbidden: sendInitialEvents is forbidden for list"
        return [("FieldValueForbidden", "sendInitialEvents", why)]
    if options.match not in _MATCHES:
        known = '"Exact", "NotOlderThan"'
        return [("FieldValueNotSupported", where, f'Unsupported value: "{options.match}": supported values: {known}')]
    if options.match and options.revision is None:
        return [("FieldValueForbidden", where, f"Forbidden: {where} is forbidden unless resourceVersion is provided")]
    if options.match == "Exact" and options.revision == 0:
        why = 'Forbidden: resourceVersionMatch "Exact" is forbidden for resourceVersion "0"'
        return [("FieldValueForbidden", where, why)]
    if options.token and options.match:
        why = "Forbidden: resourceVersionMatch is forbidden when continue is provided"
        return [("FieldValueForbidden", where, why)]
    return []


def _watch_causes(options: ListOptions) -> list[tuple[str, str, str]]:
    where = "resourceVersionMatch"
    if options.initial is None:
        if not options.match:
            return []
        why = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        return [("FieldValueForbidden", where, why)]
    if options.match != "NotOlderThan":
        why = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        return [("FieldValueForbidden", where, why)]
    return []


class WriteOptions(Struct, frozen=True, gc=False):
    """Options of a create, update or patch. `manager`: the fieldManager, "" when none was given."""

    dry_run: bool
    manager: str
    validation: Form
    force: bool | None


def write_options(query: Query, kind: str = "CreateOptions") -> WriteOptions:
    """Read and check the options. Raises ApiError (400, 422). `kind` is Kubernetes' name for them."""
    asked = query.text("fieldValidation")
    validation = _FORMS.get(asked)
    if validation is None:
        known = '"Ignore", "Strict", "Warn"'
        why = f'Unsupported value: "{asked}": supported values: {known}'
        raise invalid(kind, "", [("FieldValueNotSupported", "fieldValidation", why)], "meta.k8s.io")
    manager = query.text("fieldManager")
    if problem := _manager_problem(manager):
        raise invalid(kind, "", [problem], "meta.k8s.io")
    return WriteOptions(dry_run(query.all("dryRun"), kind), manager, validation, query.flag("force"))


def _manager_problem(manager: str) -> tuple[str, str, str] | None:
    """Return the problem of a manager's name: it must be short and printable."""
    if len(manager.encode()) > MOST_OF_A_MANAGER:
        return "FieldValueTooLong", "fieldManager", f"Too long: may not be more than {MOST_OF_A_MANAGER} bytes"
    for at, letter in enumerate(manager):
        if not letter.isprintable() or letter == "\ufffd":  # that stands for bytes that are not text
            where = f"U+{ord(letter):04X} (at position {len(manager[:at].encode())})"
            return (
                "FieldValueInvalid",
                "fieldManager",
                f'Invalid value: "{printable(manager)}": invalid character {where}',
            )
    return None


def dry_run(values: list[str], kind: str = "CreateOptions") -> bool:
    """Return whether `dryRun=All` was given. Raises ApiError for any other value."""
    for value in values:
        if value != "All":
            why = f'Unsupported value: "{value[:64]}": supported values: "All"'
            raise invalid(kind, "", [("FieldValueNotSupported", "dryRun", why)], "meta.k8s.io")
    return bool(values)
