# SPDX-License-Identifier: Apache-2.0
"""Selection of the objects of a list or a watch: label selectors and field selectors.

An object is judged by its traits, which are its labels and the few fields that can be selected by, before a change too,
so that a watch can tell when an object stops matching.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from pumice.actors.gateway.problems import ApiError, bad_request
from pumice.cluster.api.kinds import Kind
from pumice.cluster.api.selectors import Requirement, SelectorTextError, matches, parse_selector
from pumice.core.objects.metadata import Object, section
from pumice.storage import codec

_EMPTY: Final[Mapping[str, str]] = {}
_NAMES: Final = ("metadata.name", "metadata.namespace")
_POD: Final = (
    "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
    "status.phase", "status.podIP", "status.nominatedNodeName",
)  # fmt: skip
_ABOUT: Final = "involvedObject"
_EVENT: Final = (
    *(f"{_ABOUT}.{part}" for part in ("kind", "namespace", "name", "uid")),
    *(f"{_ABOUT}.{part}" for part in ("apiVersion", "resourceVersion", "fieldPath")),
    "reason", "reportingComponent", "source", "type",
)  # fmt: skip

FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "Pod": _POD,
    "CertificateSigningRequest": ("spec.signerName",),
    "Event": _EVENT,
    "Node": ("spec.unschedulable",),
    "Secret": ("type",),
    "Namespace": ("status.phase",),
    "ReplicaSet": ("status.replicas",),
    "ResourceSlice": ("spec.driver", "spec.nodeName"),
    "ReplicationController": ("status.replicas",),
    "Job.batch": ("status.successful",),
}
"""Fields for selectors beside name and namespace, by the key of the kind (source: Kubernetes' conversions)."""

# Go fills in what is absent: `false` and `0` must be found, where the stored object has no field.
_SPECIAL: Final[dict[tuple[str, str], Callable[[Object], Any]]] = {
    ("Event", "source"): lambda obj: section(obj, "source").get("component") or obj.get("reportingComponent"),
    ("Event", "reportingComponent"): lambda obj: obj.get("reportingComponent"),
    ("Node", "spec.unschedulable"): lambda obj: bool(section(obj, "spec").get("unschedulable")),
    ("Pod", "spec.hostNetwork"): lambda obj: bool(section(obj, "spec").get("hostNetwork")),
    ("Job.batch", "status.successful"): lambda obj: section(obj, "status").get("succeeded") or 0,
    ("ReplicaSet", "status.replicas"): lambda obj: section(obj, "status").get("replicas") or 0,
    ("ReplicationController", "status.replicas"): lambda obj: section(obj, "status").get("replicas") or 0,
}


class Traits(Struct, frozen=True, gc=False):
    """Parts of one object that selectors see: `fields` are the values of `paths`, which all objects of its kind
    share.
    """

    namespace: str
    name: str
    labels: Mapping[str, str]
    fields: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def field(self, path: str) -> str:
        """Return the value of a selectable field; "" when it was not selectable when the traits were taken."""
        if path == "metadata.name":
            return self.name
        if path == "metadata.namespace":
            return self.namespace
        return self.fields[self.paths.index(path)] if path in self.paths else ""


class Condition(Struct, frozen=True, gc=False):
    """One term of a field selector."""

    path: str
    equal: bool
    value: str


class Selection(Struct, frozen=True, gc=False):
    """Selects objects of a kind; `namespace` "" for all. `selectable`: see `Kind`."""

    kind: str
    namespace: str = ""
    labels: tuple[Requirement, ...] = ()
    fields: tuple[Condition, ...] = ()
    selectable: tuple[str, ...] = ()

    @property
    def everything(self) -> bool:
        """Return whether the selection has no selector (it may have a namespace)."""
        return not self.labels and not self.fields

    def has(self, traits: Traits) -> bool:
        """Return whether an object with these traits is selected."""
        if self.namespace and traits.namespace != self.namespace:
            return False
        if self.labels and not matches(self.labels, traits.labels):
            return False
        return all((traits.field(term.path) == term.value) is term.equal for term in self.fields)

    def takes(self, obj: Object) -> bool:
        """Return whether the object is selected."""
        return self.everything or self.has(traits_of(self.kind, obj, self.selectable))

    def needles(self) -> list[bytes]:
        """Return texts that stand in the bytes of every selected object: a quick way to skip most others."""
        # Of single values only: by one of several, objects with another of them would be skipped.
        needles = [next(iter(values)) for _, operator, values in self.labels if operator == "In" and len(values) == 1]
        needles += [term.value for term in self.fields if term.equal and term.path in _LITERAL]
        return [needle.encode() for needle in needles if needle]

    def name(self) -> str:
        """Return the only selected name, or ""."""
        return next((term.value for term in self.fields if term.equal and term.path == "metadata.name"), "")


# Fields whose value stands as text in the stored bytes. Numbers, booleans and computed values do not: as
# needles they would skip objects that are selected.
_LITERAL: Final = frozenset(
    (*_NAMES, "spec.nodeName", "spec.schedulerName", "status.phase", f"{_ABOUT}.name", f"{_ABOUT}.uid", "reason")
)


def traits_of(kind: str, obj: Object, selectable: tuple[str, ...] = ()) -> Traits:
    """Return the traits of an object; `selectable`: see `Kind`."""
    meta = section(obj, "metadata")
    labels = meta.get("labels")
    paths = FIELDS.get(kind, selectable)
    fields = tuple(_text(_value(kind, obj, path)) for path in paths)
    return Traits(meta.get("namespace") or "", meta.get("name") or "", labels or _EMPTY, fields, paths)


LARGE: Final = 32 << 10
"""Bytes from which on an object's traits are not remembered: with all of it they would hold the object itself."""


def traits_in(kind: str, selectable: tuple[str, ...], blob: bytes) -> Traits:
    """Return the traits of an object by its bytes: what comes after one change is before the next, for all watches."""
    return (_read if len(blob) >= LARGE else remembered_traits)(kind, selectable, blob)


def _read(kind: str, selectable: tuple[str, ...], blob: bytes) -> Traits:
    return traits_of(kind, codec.unpack(blob), selectable)


remembered_traits: Final = lru_cache(maxsize=1024)(_read)


def selection(row: Kind, namespace: str, labels: str, fields: str) -> Selection:
    """Read both selectors. Raises ApiError (400)."""
    try:
        requirements = parse_selector(labels)
    except SelectorTextError as error:
        raise bad_request(f"unable to parse labelSelector: {error}") from error
    terms = tuple(_terms(row, fields))
    return Selection(row.key, namespace if row.namespaced else "", requirements, terms, row.selectable)


def named_object(fields: str) -> str:
    """Return the name that a field selector demands, "" for none: who may read that object may list it so."""
    try:
        terms = [_term(part) for part in _split(fields)]
    except ApiError:  # who may not list at all is told so first
        return ""
    return next((term.value for term in terms if term and term.equal and term.path == "metadata.name"), "")


def _terms(row: Kind, text: str) -> list[Condition]:
    known = (*_NAMES, *FIELDS.get(row.key, row.selectable))
    terms: list[Condition] = []
    for part in _split(text):
        term = _term(part)
        if term is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        if term.path not in known:
            raise _unsupported(row, term.path)
        terms.append(term)
    return terms


def _unsupported(row: Kind, path: str) -> ApiError:
    """Return the refusal in a kube-apiserver's words (kubectl puts the selectors before them)."""
    if row.key in FIELDS or row.is_custom:
        return bad_request(f"field label not supported: {path}")
    return bad_request(f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"')


_TERM: Final = re.compile(r"(?:\\.|[^,\\]|\\\Z)+", re.DOTALL)
_SIGN: Final = re.compile("!=|==?")
_ESCAPE: Final = re.compile(r"\\(.?)|[,=]", re.DOTALL)


def _term(part: str) -> Condition | None:
    """Return the condition, None for a text without a sign. Raises ApiError (400) for a value that is not escaped."""
    # The first sign counts: a path has no escapes, a value may have signs behind a backslash (Kubernetes' splitTerm).
    sign = _SIGN.search(part)
    if sign is None:
        return None
    value = _ESCAPE.sub(_unescaped, part[sign.end() :])
    return Condition(part[: sign.start()], sign[0] != "!=", value)


def _split(text: str) -> list[str]:
    """Split at commas that have no backslash before them."""
    return _TERM.findall(text)


def _unescaped(found: re.Match[str]) -> str:
    """Return the letter behind a backslash, as Kubernetes' UnescapeValue, and its refusals."""
    letter: str | None = found[1]
    if letter is None:
        raise bad_request(f"invalid field selector: unescaped character in value: {ord(found[0])}")
    if letter not in (",", "=", "\\"):
        raise bad_request(f"invalid field selector: invalid escape sequence: {found[0]}")
    return letter


def _value(kind: str, obj: Object, path: str) -> Any:
    special = _SPECIAL.get((kind, path))
    if special is not None:
        return special(obj)
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return value  # pyright: ignore[reportUnknownVariableType]


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)
