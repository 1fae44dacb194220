# SPDX-License-Identifier: Apache-2.0
"""HyperNodes, in the words of Volcano's webhook (`webhooks/admission/hypernodes`) and of its definition's rules."""

from __future__ import annotations

from typing import Final

from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.refusals import Cause, invalid_value
from pumice.core.kube.patterns import PatternError, pattern_of
from pumice.core.objects.metadata import Object, rows, section

_WAYS: Final = ("exactMatch", "regexMatch", "labelMatch")


def validate(hyper_node: Object, _lookup: Lookup) -> list[Cause]:
    """Return the problems of a new HyperNode: it must have members, each chosen in one way."""
    members = rows(section(hyper_node, "spec"), "members")
    if not members:
        return [Cause("spec.members", "FieldValueInvalid", "Invalid value: null: member must have at least one member")]
    problems = [_problem(section(each, "selector"), place) for place, each in enumerate(members)]
    return [cause for cause in problems if cause is not None]


def validate_update(_old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed HyperNode; the rules are those of a new one."""
    return validate(new, lookup)


def _problem(selector: Object, place: int) -> Cause | None:
    path, ways = f"spec.members[{place}].selector", [way for way in _WAYS if selector.get(way) is not None]
    # A rule of the definition (x-kubernetes-validations), whose path has the index, and not of the webhook.
    if len(ways) != 1:
        why = (
            "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified"
            if ways
            else "Either ExactMatch or RegexMatch or LabelMatch must be specified"
        )
        return Cause(path, "FieldValueInvalid", f'Invalid value: "object": {why}')
    pattern = section(selector, "regexMatch").get("pattern")
    if not pattern:
        return None
    try:
        pattern_of(pattern)
    except PatternError as error:
        why = f"member regexMatch pattern is invalid: {error}"
        # Without the member's index, as admit_hypernode.go builds the path.
        return invalid_value("spec.members.selector.regexMatch.pattern", pattern, why)
    return None
