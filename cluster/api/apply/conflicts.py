"""Conflicts between owners of fields, worded as kube-apiserver words them."""

from __future__ import annotations

from collections.abc import Mapping

from pumice.cluster.api.apply.field_sets import FieldSet
from pumice.cluster.api.apply.owners import Manager
from pumice.cluster.api.apply.paths import shown
from pumice.core.messages.replies import Refused


def conflict(clashes: Mapping[Manager, FieldSet]) -> Refused:
    """409 with a cause for every field; `clashes` are the contested fields by who owns them."""
    listed = [(who, [shown(path) for path in sorted(clashes[who])]) for who in sorted(clashes)]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {who.shown()}", "field": name}
        for who, names in listed
        for name in names
    ]
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines = [
            line for who, names in listed for line in (f"conflicts with {who.shown()}:", *(f"- {n}" for n in names))
        ]
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return Refused(409, "Conflict", message, {"causes": causes})
