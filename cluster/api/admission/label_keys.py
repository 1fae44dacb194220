"""Affinity terms that name label keys: a new pod's own values of them become part of the term's selector.

Source: Kubernetes' pod strategy (`applyMatchLabelKeysAndMismatchLabelKeys`). Spread constraints keep their keys: the
scheduler reads those itself.
"""

from __future__ import annotations

from typing import Any, Final

from pumice.cluster.api.admission.pod_templates import own_copy
from pumice.cluster.api.fields import labels_of, rows, section
from pumice.core.objects.metadata import Object

_OPERATORS: Final = (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))


def settle_label_keys(pod: Object) -> None:
    """Extend the selectors; a term without one selects nothing and stays so."""
    if not pod["spec"].get("affinity"):
        return
    pod["spec"] = own_copy(pod["spec"])
    affinity, labels = section(pod["spec"], "affinity"), labels_of(pod)
    for side in ("podAffinity", "podAntiAffinity"):
        terms = section(affinity, side)
        for term in rows(terms, "requiredDuringSchedulingIgnoredDuringExecution"):
            _extend(term, labels)
        for choice in rows(terms, "preferredDuringSchedulingIgnoredDuringExecution"):
            _extend(section(choice, "podAffinityTerm"), labels)


def _extend(term: dict[str, Any], labels: dict[str, str]) -> None:
    selector: dict[str, Any] | None = term.get("labelSelector")
    if selector is None:
        return
    found = list(rows(selector, "matchExpressions"))
    for field, operator in _OPERATORS:
        for key in term.get(field) or ():
            wanted = {"key": key, "operator": operator, "values": [labels[key]]} if key in labels else None
            if wanted is not None and wanted not in found:  # it is there already in a pod that comes from a cluster
                found.append(wanted)
    if found:
        selector["matchExpressions"] = found
