# SPDX-License-Identifier: Apache-2.0
"""JSON patch (RFC 6902): a list of operations; either all apply or none."""

from __future__ import annotations

from itertools import groupby
from typing import Any, Final

import msgspec
from jsonpatch import JsonPatch, JsonPatchException, JsonPatchTestFailed, JsonPointer, JsonPointerException

from pumice.cluster.api import refusals
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object, is_mapping, mapping
from pumice.storage.codec import repack, unpack
from pumice.storage.errors import CodecError

_MOST: Final = 10_000
MOST_COPIED: Final = 64 * 1024
"""Limit on the bytes of JSON that the copies of one patch make: each copy could double the object (kube-apiserver: 3
MiB).
"""
_CALLER: Final = "the server rejected our request due to an error in our request"


def decoded_operations(blob: bytes) -> list[Any] | Refused:
    """Return the operations of a request's bytes."""
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
    """Return the object after the operations; `obj` stays as it is."""
    try:
        # on a copy: operations that fail half way must leave no trace
        result = _applied(unpack(repack(obj)), operations)
    except _FAULTS as error:
        return Refused(422, "Invalid", f"{_CALLER}: {_told(error)}")
    if not is_mapping(result) or not is_mapping(result.get("metadata")):
        return Refused(422, "Invalid", f"{_CALLER}: nothing is left of the object")
    return result


_FAULTS: Final = (
    JsonPatchException, JsonPointerException, TypeError, ValueError, KeyError, IndexError, RecursionError,
)  # fmt: skip


def _applied(result: object, operations: list[Any]) -> Any:
    """Apply the operations to `result`, in place, and return the result. Raises one of `_FAULTS`."""
    copied = 0
    # a run of other operations is one patch for the library; `copy` and `replace` depend on the result so far
    for alone, run in groupby(operations, _depends):
        for part in ([each] for each in run) if alone else (list(run),):
            if alone == "copy":
                source: Any = JsonPointer(part[0].get("from", "")).resolve(result, None)
                copied += len(msgspec.json.encode(source))
                if copied > MOST_COPIED:
                    raise ValueError(f"the copies take more than {MOST_COPIED} bytes")
            steps = [_replacing(part[0], result)] if alone == "replace" else part
            result = JsonPatch(steps).apply(result, in_place=True)
    return result


def _depends(operation: object) -> str:
    """Return the operation's name when its effect depends on earlier operations; otherwise ""."""
    found: Any = mapping(operation).get("op")
    return found if found in ("copy", "replace") else ""


def _replacing(operation: Object, result: object) -> Object:
    """Return the operation, with a replace of a missing key in a mapping made an add. kube-apiserver's library
    (evanphx/json-patch, version 4) does so.
    """
    path = operation.get("path")
    if not isinstance(path, str):
        return operation
    parent, name = JsonPointer(path).to_last(result)
    is_new = name is not None and isinstance(parent, dict) and name not in parent
    return {**operation, "op": "add"} if is_new else operation


def _told(error: Exception) -> str:
    """Return the error without the objects that the library shows and without Python's names for them."""
    text = str(error)
    if isinstance(error, JsonPatchTestFailed):
        return "testing a value failed: it is another one"
    if isinstance(error, KeyError) or (text.startswith("'") and text.endswith("'")):
        return f"{text} does not exist"
    if text.startswith(("Document ", "Cannot apply token ")):
        return "a path leads through a value that is neither a map nor a list"
    return text.partition(" in {")[0].partition(" in [")[0]
