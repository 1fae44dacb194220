# SPDX-License-Identifier: Apache-2.0
"""Checks shared by the kinds that make pods: numbers, selectors and templates (source: Kubernetes' validation)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.api.admission.amounts import settle_amounts
from pumice.cluster.api.admission.pod_spec import RESTARTS, default_protocols, pod_spec_problems
from pumice.cluster.api.admission.rules import MOST_PODS, run_problems
from pumice.cluster.api.refusals import Cause, invalid_value, required, unsupported
from pumice.cluster.api.selectors import matches, selector_of
from pumice.core.kube.selectors import SelectorError, label_selector
from pumice.core.objects.metadata import Object, annotations_of, containers_of, labels_of, section

NOT_NEGATIVE: Final = "must be greater than or equal to 0"


def settle_template(template: Object) -> None:
    """Write amounts in one form and ports with a protocol, as in a pod."""
    for container in containers_of(section(template, "spec")):
        default_protocols(container)
        for part in ("requests", "limits"):
            settle_amounts(section(section(container, "resources"), part))


def settle_rolled_template(template: Object) -> None:
    """Apply `settle_template`, and add empty resources where they are missing, so that a template that a client writes
    back equals the stored one.
    """
    settle_template(template)
    for container in containers_of(section(template, "spec")):
        container.setdefault("resources", {})


def number_problems(holder: Object, names: Sequence[str], path: str) -> list[Cause]:
    """Return the problems of numbers that are below zero, or above the largest number of pods."""
    found: list[Cause] = []
    for name in names:
        number = holder.get(name)
        if isinstance(number, int) and number < 0:
            found.append(invalid_value(f"{path}.{name}", number, NOT_NEGATIVE))
        elif isinstance(number, int) and name in ("replicas", "parallelism", "completions") and number > MOST_PODS:
            found.append(invalid_value(f"{path}.{name}", number, f"must not be greater than {MOST_PODS}"))
    return found


def template_problems(template: Object, path: str, restarts: Sequence[str]) -> list[Cause]:
    """Return the problems of a template whose pods may have these restart policies."""
    spec = section(template, "spec")
    found = run_problems(annotations_of(template), f"{path}.metadata")
    found += pod_spec_problems(spec, f"{path}.spec")
    policy, where = spec.get("restartPolicy"), f"{path}.spec.restartPolicy"
    if not policy and "Always" not in restarts:
        found.append(required(where, "valid values: " + ", ".join(f'"{name}"' for name in restarts)))
    elif policy in RESTARTS and policy not in restarts:
        found.append(unsupported(where, policy, restarts))
    return found


def selector_problems(spec: Object, kind: str) -> list[Cause]:
    """Return the problems of a selector, which must be valid and select its own template. Kubernetes names `kind` when
    the selector is empty.
    """
    selector, labels = spec.get("selector"), labels_of(section(spec, "template"))
    try:
        label_selector(selector)
    except SelectorError as error:
        return [invalid_value("spec.selector", selector, str(error))]
    if selector is not None and not selector_of(selector):
        return [invalid_value("spec.selector", {}, f"empty selector is invalid for {kind}")]
    found = [required("spec.selector")] if selector is None else []
    if selector is None or not matches(selector_of(selector), labels):
        why = "`selector` does not match template `labels`"
        found.append(invalid_value("spec.template.metadata.labels", labels, why))
    return found
