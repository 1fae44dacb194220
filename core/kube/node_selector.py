# SPDX-License-Identifier: Apache-2.0
"""Node labels as columns, and the rows that a pod's nodeSelector and node affinity select.

Source: component-helpers `scheduling/corev1/nodeaffinity`: terms are ORed, an empty term selects nothing, and a term
that cannot be parsed does not match.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pumice.core.kube.selectors import Requirement, SelectorError, requirement
from pumice.core.objects.metadata import Object, section
from pumice.core.state.derived import derived
from pumice.core.state.sources import NODES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.kube.rows import BoolArray, CodeArray, NodeRows
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.state.sources import NodeSpecs

# --- Labels as columns
# One int32 code per node and label key, so that a selector is one lookup per distinct value.

ABSENT = -1


@dataclass(frozen=True, slots=True)
class LabelColumn:
    """One key over node rows.

    `codes` int32 [N] with ABSENT (-1) where the node lacks it, `values[code]` the text, `index` its reverse.
    """

    codes: CodeArray
    values: tuple[str, ...]
    index: dict[str, int]


@derived(NODES)
def label_column(nodes: NodeSpecs, key: str) -> LabelColumn:
    """Return the column of a key. Codes number the values in row order."""
    index: dict[str, int] = {}
    codes = np.fromiter(
        (
            ABSENT if (value := spec.labels.get(key)) is None else index.setdefault(value, len(index))
            for spec in nodes.specs
        ),
        dtype=np.int32,
        count=nodes.count,
    )
    # All sessions share the column, so none may write to it.
    codes.flags.writeable = False
    return LabelColumn(codes, tuple(index), index)


NODE_NAME = "metadata.name"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def rows_accepting(nodes: NodeRows, wanted: Requirement) -> BoolArray:
    """Return mask [N] of the nodes whose label satisfies the requirement."""
    column = label_column(nodes, wanted.key)
    accepted = np.zeros(len(column.values) + 1, dtype=np.bool_)  # the last is for nodes without the label: code -1
    if wanted.operator in ("In", "NotIn"):
        for value in wanted.values:
            if value in column.index:
                accepted[column.index[value]] = True
        if wanted.operator == "NotIn":
            np.logical_not(accepted, out=accepted)
    else:
        accepted[:-1] = [wanted.accepts(value) for value in column.values]
        accepted[-1] = wanted.accepts(None)
    return accepted[column.codes]


def _field(expression: Object) -> tuple[str, str, bool]:
    """Return (field, value, True for equal). Raises SelectorError."""
    key, operator = str(expression.get("key") or ""), expression.get("operator")
    values: Sequence[str] = expression.get("values") or []
    if operator not in ("In", "NotIn") or len(values) != 1:
        raise SelectorError(f"field {key!r}: expected In or NotIn with exactly one value")
    return key, values[0], operator == "In"


def _rows_with_field(nodes: NodeRows, key: str, value: str, *, equal: bool) -> BoolArray:
    if key == NODE_NAME:
        mask = np.zeros(nodes.count, dtype=np.bool_)
        if value in nodes.row:
            mask[nodes.row[value]] = True
    else:
        mask = np.full(nodes.count, value == "", dtype=np.bool_)  # a node has no other field: it reads as ""
    return mask if equal else ~mask


def rows_in_term(nodes: NodeRows, term: Object) -> BoolArray:
    """Return mask [N] of the nodes that one node selector term selects.

    Raises SelectorError for a term that is not valid.
    """
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return np.zeros(nodes.count, dtype=np.bool_)
    requirements = [requirement(e) for e in expressions]
    pinned = [_field(f) for f in fields]
    mask = np.ones(nodes.count, dtype=np.bool_)
    for wanted in requirements:
        mask &= rows_accepting(nodes, wanted)
    for key, value, equal in pinned:
        mask &= _rows_with_field(nodes, key, value, equal=equal)
    return mask


def required_terms(template: PodTemplate) -> Sequence[Object] | None:
    """Return the terms of the required node affinity; None when there is none (an empty list selects nothing)."""
    required: Object | None = section(template.affinity, "nodeAffinity").get(REQUIRED)
    return None if required is None else required.get("nodeSelectorTerms") or []


def rows_required(nodes: NodeRows, template: PodTemplate) -> BoolArray | None:
    """Return mask [N] of the nodes that nodeSelector and required affinity allow; None for a pod without
    restrictions.
    """
    terms = required_terms(template)
    if terms is None and not template.node_selector:
        return None
    mask = np.ones(nodes.count, dtype=np.bool_)
    for key, value in template.node_selector.items():
        mask &= rows_accepting(nodes, Requirement(key, "In", (value,)))  # never validated: any text may be asked for
    if terms is not None:
        selected = np.zeros(nodes.count, dtype=np.bool_)
        for term in terms:
            try:
                selected |= rows_in_term(nodes, term)
            except SelectorError:
                continue
        mask &= selected
    return mask
