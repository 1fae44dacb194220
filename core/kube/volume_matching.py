"""Which volumes a claim that waits for its consumer can get, and on which nodes. Source: component-helpers
`storage/volume` FindMatchingVolume.

Everything but the place of a volume is judged once per claim; the place is a mask over the nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from pumice.core.kube.labels import label_column
from pumice.core.kube.node_selector import rows_in_term
from pumice.core.kube.selectors import SelectorError, label_selector
from pumice.core.kube.storage import claim_key, class_name
from pumice.core.objects.metadata import section, text_map
from pumice.core.quantity import Quantity, quantity_of
from pumice.core.state.derived import Like, derived
from pumice.core.state.sources import NODES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.kube.rows import BoolArray, NodeRows
    from pumice.core.objects.metadata import Object
    from pumice.core.state.sources import NodeSpecs


def requested_storage(claim: Object) -> Quantity:
    """The size a claim asks for."""
    return quantity_of(section(section(section(claim, "spec"), "resources"), "requests").get("storage"))


def storage_capacity(volume: Object) -> Quantity:
    """The size of a volume."""
    return quantity_of(section(section(volume, "spec"), "capacity").get("storage"))


def rows_reaching(nodes: NodeRows, volume: Object) -> BoolArray:
    """Mask [N] of the nodes from which a volume can be used: its node affinity, of which only labels count."""
    required: dict[str, Any] | None = section(section(volume, "spec"), "nodeAffinity").get("required")
    if required is None:
        return np.ones(nodes.count, dtype=np.bool_)
    terms: list[dict[str, Any]] = required.get("nodeSelectorTerms") or []
    return _rows_in_terms(nodes, Like(msgspec.json.encode(terms, order="deterministic"), terms))


@derived(NODES)
def _rows_in_terms(nodes: NodeSpecs, terms: Like[list[dict[str, Any]]]) -> BoolArray:
    mask = np.zeros(nodes.count, dtype=np.bool_)
    for term in terms.subject:
        mask |= _rows_in_labels(nodes, term)
    return mask


def _rows_in_labels(nodes: NodeRows, term: dict[str, Any]) -> BoolArray:
    if term.get("matchFields") and not term.get("matchExpressions"):
        return np.ones(nodes.count, dtype=np.bool_)
    try:
        return rows_in_term(nodes, {"matchExpressions": term.get("matchExpressions")})
    except SelectorError:
        return np.zeros(nodes.count, dtype=np.bool_)


def rows_in_topologies(nodes: NodeRows, terms: Sequence[dict[str, Any]]) -> BoolArray:
    """Mask [N] of the nodes that a storage class's allowedTopologies allow; all of them when it lists none."""
    if not terms:
        return np.ones(nodes.count, dtype=np.bool_)
    allowed = np.zeros(nodes.count, dtype=np.bool_)
    for term in terms:
        expressions: list[dict[str, Any]] = term.get("matchLabelExpressions") or []
        mask = np.full(nodes.count, bool(expressions), dtype=np.bool_)
        for expression in expressions:
            column = label_column(nodes, str(expression.get("key") or ""))
            wanted: list[str] = expression.get("values") or []
            accepted = np.array([value in wanted for value in column.values] + [False], dtype=np.bool_)
            mask &= accepted[column.codes]
        allowed |= mask
    return allowed


def is_for(volume: Object, claim: Object, claimed_by: str | None) -> bool:
    """Whether a volume is bound to this claim, in the API or by a placement of this session (`claimed_by`.

    A claim's key).
    """
    if claimed_by is not None:
        return claimed_by == claim_key(claim)
    reference, meta = section(section(volume, "spec"), "claimRef"), section(claim, "metadata")
    if (reference.get("name"), reference.get("namespace")) != (meta.get("name"), meta.get("namespace")):
        return False
    return not reference.get("uid") or reference.get("uid") == meta.get("uid")


def is_taken(volume: Object, claimed_by: str | None) -> bool:
    """Whether a volume is bound to any claim."""
    return claimed_by is not None or section(volume, "spec").get("claimRef") is not None


def is_large_enough(volume: Object, claim: Object) -> bool:
    """Size, volume mode, attributes class, and not about to go."""
    asked, offered = section(claim, "spec"), section(volume, "spec")
    return (
        storage_capacity(volume).compare(requested_storage(claim)) >= 0
        and (asked.get("volumeMode") or "Filesystem") == (offered.get("volumeMode") or "Filesystem")
        and (asked.get("volumeAttributesClassName") or "") == (offered.get("volumeAttributesClassName") or "")
        and not section(volume, "metadata").get("deletionTimestamp")
    )


def is_available(volume: Object, claim: Object) -> bool:
    """Phase, labels, class and access modes of a volume that nobody has yet. Raises SelectorError."""
    spec = section(claim, "spec")
    chosen: dict[str, Any] | None = spec.get("selector")
    labels = text_map(section(volume, "metadata").get("labels"))
    modes: list[str] = section(volume, "spec").get("accessModes") or []
    wanted: list[str] = spec.get("accessModes") or []
    return (
        section(volume, "status").get("phase") == "Available"
        and (chosen is None or label_selector(chosen).matches(labels))
        and class_name(volume) == class_name(claim)
        and set(wanted) <= set(modes)
    )
