# SPDX-License-Identifier: Apache-2.0
"""Forms in which objects are written: as they are, as metadata only, or as rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import msgspec

from pumice.actors.gateway.columns.printers import printer_of
from pumice.actors.gateway.columns.table import Printer, definitions, row
from pumice.actors.gateway.problems import ApiError, bad_request
from pumice.actors.gateway.protobuf import writing
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.request.negotiation import PLAIN, Form, negotiate
from pumice.actors.gateway.request.query import Query
from pumice.actors.gateway.request.versions import shown
from pumice.cluster.api.kind_table import KindTable
from pumice.cluster.api.kinds import Kind
from pumice.core.objects.metadata import Object, section

Include = Literal["None", "Metadata", "Object"]
_INCLUDES: Final[dict[str, Include]] = {"None": "None", "Metadata": "Metadata", "Object": "Object"}

_ENCODER: Final = msgspec.json.Encoder()
encode = _ENCODER.encode
"""Plain data as JSON."""


async def answer_object(
    exchange: Exchange, code: int, obj: Object, form: Form, headers: Mapping[str, str] | None = None
) -> None:
    """Answer with an object or a whole list. Raises ApiError (406) for one that its form cannot hold."""
    body = writing.encode(obj) if form.is_protobuf else encode(obj)
    await exchange.answer(code, body, form.media, headers)


async def answer_status(
    exchange: Exchange, code: int, status: Object, headers: Mapping[str, str] | None = None
) -> None:
    """Answer with a Status: in JSON where the client accepts none of its forms."""
    try:
        form = negotiate(exchange.header("accept"), shapes=False, protobuf="every")
    except ApiError:
        form = PLAIN
    await answer_object(exchange, code, status, form, headers)


def form_of(exchange: Exchange, api_version: str, kind: str, *, shapes: bool = True) -> Form:
    """Return the form in which a client wants objects of a kind. Raises ApiError (406)."""
    protobuf = "every" if writing.knows(api_version, kind) else "metadata"
    return negotiate(exchange.header("accept"), shapes=shapes, protobuf=protobuf)


class Writer:
    """Writes objects of one kind in one form; `now` gives the time for ages (seconds since the epoch).

    `read` gives objects what their kind's definition says since they were stored.
    """

    def __init__(
        self,
        kind: Kind,
        api_version: str,
        form: Form,
        printer: Printer | None = None,
        include: Include = "Metadata",
        read: Callable[[Object], Object] | None = None,
    ) -> None:
        self.kind = kind
        self.form = form
        self._api_version = api_version
        self._other_version = api_version != kind.api_version
        self._printer = printer
        self._include: Include = include
        self._read = read

    @property
    def plain(self) -> bool:
        """Return whether objects are written as they are stored."""
        # Then watches and lists send the stored objects without making others of them.
        return not self.form.shape and not self._other_version and self._read is None

    def item(self, obj: Object, now: float) -> Any:
        """Return an item of a list: the object, its metadata, or a row."""
        # First: a column may show what only the definition's defaults have.
        if self._read is not None:
            obj = self._read(obj)
        # Before the version is turned: printers read objects as they are stored.
        if self._printer is not None:
            made = row(self._printer, obj, now, self._include)
            if self._include == "Metadata":
                made["object"]["apiVersion"] = self._meta_version
            elif self._include == "Object" and self._other_version:
                made["object"] = shown(obj, self._api_version)
            return made
        if self._other_version:
            obj = shown(obj, self._api_version)
        return self._partial(obj) if self.form.shape else obj

    def one(self, obj: Object, now: float, *, headers: bool = True) -> Any:
        """Return an answer of its own, or the object of a watch event; a Table's columns only with `headers`."""
        if self._printer is None:
            return self.item(obj, now)
        shown = {"resourceVersion": section(obj, "metadata").get("resourceVersion", "")}
        return self._table([self.item(obj, now)], shown, headers=headers)

    def bookmark(self, metadata: Object) -> Object:
        """Return the object of a BOOKMARK event."""
        if self._printer is not None:
            return self._table([], metadata, headers=False)
        if self.form.shape:
            return {"kind": "PartialObjectMetadata", "apiVersion": self._meta_version, "metadata": metadata}
        return {"kind": self.kind.kind, "apiVersion": self._api_version, "metadata": metadata}

    def head(self) -> Object:
        """Return the fields beside the items of a list, its metadata excepted."""
        if self._printer is not None:
            return self._table([], {}, headers=True)
        if self.form.shape:
            return {"kind": "PartialObjectMetadataList", "apiVersion": self._meta_version, "metadata": {}, "items": []}
        return {"kind": list_kind(self.kind), "apiVersion": self._api_version, "metadata": {}, "items": []}

    @property
    def items(self) -> str:
        """Return the name of the list's member that holds the items."""
        return "rows" if self._printer is not None else "items"

    @property
    def _meta_version(self) -> str:
        return f"meta.k8s.io/{self.form.version}"

    def _partial(self, obj: Object) -> Object:
        metadata = section(obj, "metadata")
        return {"kind": "PartialObjectMetadata", "apiVersion": self._meta_version, "metadata": metadata}

    def _table(self, rows: list[Object], metadata: Object, *, headers: bool) -> Object:
        columns = definitions(self._printer) if headers and self._printer is not None else []
        return {
            "kind": "Table",
            "apiVersion": self._meta_version,
            "metadata": metadata,
            "columnDefinitions": columns,
            "rows": rows,
        }


def list_kind(kind: Kind) -> str:
    """Return the kind of a list, like `PodList`."""
    return kind.list_kind or f"{kind.kind}List"


def writer(kinds: KindTable, kind: Kind, api_version: str, form: Form, query: Query) -> Writer:
    """Return the writer. Raises ApiError (400) for an unknown `includeObject`."""
    read = kinds.reading(kind.key)
    if form.shape != "Table":
        return Writer(kind, api_version, form, read=read)
    wanted = query.text("includeObject") or "Metadata"
    include = _INCLUDES.get(wanted)
    # A typo would else be answered with less than was asked for.
    if include is None:
        raise bad_request(f"unrecognized includeObject value: {wanted!r}")
    printer = printer_of(kind.key, printer_columns(kinds, kind, api_version))
    return Writer(kind, api_version, form, printer, include, read)


def printer_columns(kinds: KindTable, kind: Kind, api_version: str) -> list[Object] | None:
    """Return the columns that the kind's definition has for this version."""
    definition = kinds.definition(kind.key)
    if definition is None:
        return None
    # Columns belong to a version of the definition; another one may have none.
    version = api_version.rpartition("/")[2]
    listed: list[Object] = section(definition, "spec").get("versions") or []
    return next((each.get("additionalPrinterColumns") for each in listed if each.get("name") == version), None)
