# SPDX-License-Identifier: Apache-2.0
"""Selectors of devices in classes and claims: an expression that cannot be evaluated is refused when it is written.

Source: validation of Kubernetes' `resource` group.
"""

from __future__ import annotations

from collections.abc import Iterator

from pumice.cluster.api.admission.match_rules import expression_problems, mappings
from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.refusals import Cause
from pumice.core.kube.cel.scopes import DEVICE
from pumice.core.kube.cel.types import BOOL, DYN
from pumice.core.objects.metadata import Object, section


def validate_class(device_class: Object, _lookup: Lookup) -> list[Cause]:
    """Return what is wrong with the selectors of a class."""
    return _problems(section(device_class, "spec"), "spec")


def validate_claim(claim: Object, _lookup: Lookup) -> list[Cause]:
    """Return what is wrong with the selectors of a claim."""
    return _claim_problems(section(claim, "spec"), "spec")


def validate_template(template: Object, _lookup: Lookup) -> list[Cause]:
    """Return what is wrong with the selectors of a template of claims."""
    return _claim_problems(section(section(template, "spec"), "spec"), "spec.spec")


def update_class(_old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed class; the rules are those of a new one."""
    return validate_class(new, lookup)


def _claim_problems(spec: Object, path: str) -> list[Cause]:
    return [cause for holder, where in _requests(spec, path) for cause in _problems(holder, where)]


def _requests(spec: Object, path: str) -> Iterator[tuple[Object, str]]:
    for place, request in enumerate(mappings(section(spec, "devices"), "requests")):
        where = f"{path}.devices.requests[{place}]"
        yield request, where
        yield section(request, "exactly"), f"{where}.exactly"
        for number, choice in enumerate(mappings(request, "firstAvailable")):
            yield choice, f"{where}.firstAvailable[{number}]"


def _problems(holder: Object, path: str) -> list[Cause]:
    found: list[Cause] = []
    for place, selector in enumerate(mappings(holder, "selectors")):
        if cel := section(selector, "cel"):
            found += expression_problems(cel, f"{path}.selectors[{place}].cel", DEVICE, "expression", BOOL, DYN)
    return found
