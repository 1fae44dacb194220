# SPDX-License-Identifier: Apache-2.0
"""Requests in hand: time, sender, and the bytes as plain data."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from pumice.cluster.api import refusals
from pumice.cluster.api.schema.shapes import ANYTHING, Shape, field_shape
from pumice.cluster.kube.statuses import written_second
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import COMPOUND, Object, is_list, is_mapping, mapping
from pumice.storage.codec import unpack
from pumice.storage.errors import CodecError


class RequestMoment(Struct, frozen=True, gc=False):
    """The time and sender of a request. `now` in seconds since the epoch; `user` goes into the journal beside the
    change.

    `manager`: the owner of the changed fields, where owners are kept; the user when none is named. `uid`: of what is
    created; "": a new one.
    """

    now: float
    user: str = ""
    manager: str = ""
    uid: str = ""

    @property
    def text(self) -> str:
        """Return `now` as API timestamps are written."""
        return written_second(int(self.now))


SUBMIT: Final = "submit"
"""User that creates the manifests with which a run starts."""
_NIL: Final = 0xC0  # as a number it is looked for at a third of what it costs as bytes


def decoded(blob: bytes) -> Object | Refused:
    """Return a mapping from bytes; a patch's nulls mean removal and are kept."""
    try:
        obj = unpack(blob)
    except CodecError as error:
        return refusals.bad_request(f"the object is not MessagePack: {error}")
    if not is_mapping(obj):
        return refusals.bad_request(f"the object is not a mapping but {type(obj).__name__}")
    return obj


def may_hold_null(blob: bytes) -> bool:
    """Return whether the encoded bytes could hold a null: the search in the decoded object is costly."""
    # the byte may also be part of a text or number: such an object is only searched in vain
    return _NIL in blob


def name_of(obj: Object) -> str:
    """Return metadata.name of an unchecked object; empty without one."""
    name = mapping(obj.get("metadata")).get("name")
    return name if isinstance(name, str) else ""


def without_nulls(value: object) -> Any:
    """Return a copy of plain data without nulls in mappings, as after `drop_nulls`."""
    if is_mapping(value):
        return {
            name: item if item.__class__ not in COMPOUND else without_nulls(item)
            for name, item in value.items()
            if item is not None
        }
    if is_list(value):
        return [item if item.__class__ not in COMPOUND else without_nulls(item) for item in value]
    return value


def drop_nulls(value: object, shape: Shape = ANYTHING) -> None:
    """Make absent fields of the nulls in an object of a shape, and empty texts of those in maps of texts, as Kubernetes
    does.
    """
    if is_mapping(value):
        for name in [name for name, item in value.items() if item is None]:
            if shape.named(name) is None and (meant := shape.item().null) is not None:
                value[name] = meant
            else:
                del value[name]
        for name, item in value.items():
            if item.__class__ in COMPOUND:
                drop_nulls(item, field_shape(shape, name))
    # a null in a list stays: it holds a place
    elif is_list(value):
        for item in value:
            if item.__class__ in COMPOUND:
                drop_nulls(item, shape.item())
