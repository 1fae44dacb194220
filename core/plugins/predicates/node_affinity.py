"""NodeAffinity: nodeSelector and required node affinity. Source: kube-scheduler `nodeaffinity`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from pumice.core.kube.node_selector import NODE_NAME, required_terms, rows_required
from pumice.core.session.reasons import Code, FitFailure, Reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.core.kube.rows import BoolArray, NodeRows
    from pumice.core.objects.pod_template import PodTemplate

NAME = "NodeAffinity"
CONFLICT = Reason(NAME, Code.ERROR, f"plugin {NAME} pre-predicates failed pod affinity terms conflict")


def _pinned_names(term: Mapping[str, Any]) -> set[str] | None:
    """The node names a term's matchFields leave; None when it names none."""
    names: set[str] | None = None
    for field in term.get("matchFields") or ():
        if field.get("key") == NODE_NAME and field.get("operator") == "In":
            values: set[str] = set(field.get("values") or [])
            names = values if names is None else names & values
    return names


def terms_conflict(terms: Sequence[Mapping[str, Any]]) -> bool:
    """Whether every term asks for node names that exclude each other, so that no node can match (PreFilter)."""
    pinned = [_pinned_names(term) for term in terms]
    return bool(pinned) and all(names is not None and not names for names in pinned)


class RequiredAffinity:
    """Asks for the labels and names a pod demands."""

    reason: ClassVar[Reason] = Reason(NAME, Code.UNRESOLVABLE, "node(s) didn't match Pod's node affinity/selector")

    def content(self, template: PodTemplate) -> bytes | None:
        """nodeSelector and the required terms."""
        terms = required_terms(template)
        if terms is None and not template.node_selector:
            return None
        return msgspec.json.encode((template.node_selector, terms), order="deterministic")

    def refused(self, nodes: NodeRows, template: PodTemplate) -> BoolArray | None:
        """Mask [N] of the nodes that do not match.

        Raises FitFailure when the terms contradict each other by node name.
        """
        if terms_conflict(required_terms(template) or ()):
            raise FitFailure(CONFLICT)
        matching = rows_required(nodes, template)
        return None if matching is None else ~matching
