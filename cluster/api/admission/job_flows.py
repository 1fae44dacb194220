# SPDX-License-Identifier: Apache-2.0
"""JobFlows, in the words of Volcano's webhook (`webhooks/admission/jobflows`)."""

from __future__ import annotations

from typing import Final

from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.refusals import Cause, invalid_value
from pumice.core.objects.metadata import Object, rows, section

NOT_DAG: Final = "jobflow Flow is not DAG"


def default(flow: Object, _lookup: Lookup) -> None:
    """Fill in a missing spec with an empty one."""
    flow.setdefault("spec", {})


def validate(flow: Object, _lookup: Lookup) -> list[Cause]:
    """Return the problems of a new flow: a dependency that does not exist, or a circle of dependencies."""
    return _graph_problems(rows(section(flow, "spec"), "flows"))


def validate_update(_old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed flow; the rules are those of a new one."""
    default(new, lookup)
    return validate(new, lookup)


def _graph_problems(flows: list[Object]) -> list[Cause]:
    # Of two flows of one name the later counts, as in Go's map (validateJobFlowDAG).
    before: dict[str, list[str]] = {each["name"]: section(each, "dependsOn").get("targets") or [] for each in flows}
    for name, targets in before.items():
        for target in targets:
            if target not in before:
                return [invalid_value("spec.flows", name, f"{NOT_DAG}: vertex is not defined: {target}")]
    left = dict(before)
    # Flows are taken away that wait for none of those left; what remains at the end waits for itself.
    while free := [name for name, targets in left.items() if not any(target in left for target in targets)]:
        for name in free:
            del left[name]
    return [invalid_value("spec.flows", ", ".join(left), NOT_DAG)] if left else []
