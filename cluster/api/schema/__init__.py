# SPDX-License-Identifier: Apache-2.0
"""Schemas of the served kinds: their fields, types, protobuf numbers, list types and merge keys.

The facts come from the data file `kinds.json`, made from the sources of Kubernetes and Volcano by
`docs/making/write_schema.py`; it is read once.
"""

from pumice.cluster.api.schema.compiled import is_allowed, is_described, type_of_kind
from pumice.cluster.api.schema.shapes import Shape, shape_of_kind, shape_of_schema, shape_of_type
from pumice.cluster.api.schema.table import (
    Field,
    Rules,
    SchemaMessage,
    message,
    of_kind,
    of_type,
)
from pumice.cluster.api.schema.wrong_fields import (
    Mistyped,
    duplicate_fields,
    misplaced_fields,
    mistyped,
    pruned,
    unknown_fields,
)

__all__ = [
    "Field",
    "Mistyped",
    "Rules",
    "SchemaMessage",
    "Shape",
    "duplicate_fields",
    "is_allowed",
    "is_described",
    "message",
    "misplaced_fields",
    "mistyped",
    "of_kind",
    "of_type",
    "pruned",
    "shape_of_kind",
    "shape_of_schema",
    "shape_of_type",
    "type_of_kind",
    "unknown_fields",
]
