"""The types of all fields of an object, checked at once: one wrong one would break every typed client's list.

Of a kind that the schema table does not describe only the metadata is known.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from pumice.cluster.api import schema
from pumice.cluster.api.kinds import Kind
from pumice.cluster.api.refusals import Cause
from pumice.core.objects.metadata import Object

_JSON_NAMES: Final = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "null": "null"}


def type_problems(kind: Kind, obj: Object) -> list[Cause]:
    """The first field of the wrong type, as a cause, or nothing. Of a user's own kind only the metadata is known."""
    try:
        msgspec.convert(obj, schema.type_of_kind(kind.group, kind.version, kind.kind))
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `")
        where = place.removesuffix("`").removeprefix("key in ").removeprefix("$").removeprefix(".")
        return [Cause(where, "FieldValueTypeInvalid", f"Invalid value: {_worded(problem)}")]
    return []


def _worded(problem: str) -> str:
    """In the words of JSON."""
    words = re.sub(r"`([^`]*)`", lambda match: _names(match[1]), problem)
    return words[:1].lower() + words[1:]


def _names(types: str) -> str:
    known = [name for name in types.split(" | ") if name not in ("null", types)] or [types]
    return " or ".join(_JSON_NAMES.get(name, name) for name in known)
