"""JSON patch (RFC 6902): a list of operations, all of which apply or none."""

from __future__ import annotations

from itertools import groupby
from typing import Any, Final, cast

import msgspec
from jsonpatch import JsonPatch, JsonPatchException, JsonPatchTestFailed, JsonPointer, JsonPointerException

from actors.api import refusals
from core.messages.replies import Refused
from core.objects.metadata import Object
from storage.codec import repack, unpack
from storage.errors import CodecError

_MOST: Final = 10_000
MOST_COPIED: Final = 64 * 1024
"""Bytes of JSON that the copies of one patch may come to: each could double what is there (kube-apiserver: 3 MiB)."""
_CALLER: Final = "the server rejected our request due to an error in our request"


def decoded_operations(blob: bytes) -> list[Any] | Refused:
    """The operations of a request's bytes."""
    try:
        operations: Any = unpack(blob)
    except CodecError as error:
        return refusals.bad_request(f"the patch is not MessagePack: {error}")
    if not isinstance(operations, list):
        return refusals.bad_request(f"a JSON patch is a list of operations, not {type(operations).__name__}")
    if len(operations) > _MOST:  # pyright: ignore[reportUnknownArgumentType]
        why = f"The allowed maximum operations in a JSON patch is {_MOST}, got {len(operations)}"  # pyright: ignore[reportUnknownArgumentType]
        return Refused(413, "RequestEntityTooLarge", why)
    return operations  # pyright: ignore[reportUnknownVariableType]


def apply_operations(obj: Object, operations: list[Any]) -> Object | Refused:
    """The object after the operations; `obj` stays as it is."""
    try:
        result = _applied(unpack(repack(obj)), operations)
    except _FAULTS as error:
        return Refused(422, "Invalid", f"{_CALLER}: {_told(error)}")
    if not isinstance(result, dict) or not isinstance(cast("Object", result).get("metadata"), dict):
        return Refused(422, "Invalid", f"{_CALLER}: nothing is left of the object")
    return cast("Object", result)


_FAULTS: Final = (
    JsonPatchException, JsonPointerException, TypeError, ValueError, KeyError, IndexError, RecursionError,
)  # fmt: skip


def _applied(result: Any, operations: list[Any]) -> Any:
    """What the operations make of `result`, in place. Raises one of `_FAULTS`."""
    copied = 0
    for copies, run in groupby(operations, _is_copy):
        for part in ([each] for each in run) if copies else (list(run),):
            if copies:
                source: Any = JsonPointer(part[0].get("from", "")).resolve(result, None)
                copied += len(msgspec.json.encode(source))
                if copied > MOST_COPIED:
                    raise ValueError(f"the copies come to more than {MOST_COPIED} bytes")
            result = JsonPatch(part).apply(result, in_place=True)
    return result


def _is_copy(operation: Any) -> bool:
    return isinstance(operation, dict) and cast("Object", operation).get("op") == "copy"


def _told(error: Exception) -> str:
    """What went wrong, without the objects that the library shows and the names that Python has for them."""
    text = str(error)
    if isinstance(error, JsonPatchTestFailed):
        return "testing a value failed: it is another one"
    if isinstance(error, KeyError) or (text.startswith("'") and text.endswith("'")):
        return f"there is no {text}"
    if text.startswith(("Document ", "Cannot apply token ")):
        return "a path leads through a value that is neither a map nor a list"
    return text.partition(" in {")[0].partition(" in [")[0]
