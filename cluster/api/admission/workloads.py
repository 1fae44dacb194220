# SPDX-License-Identifier: Apache-2.0
"""Deployments and ReplicaSets: replicas, a selector that selects the template, and the template itself."""

from __future__ import annotations

from copy import deepcopy

from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.admission.templates import (
    number_problems,
    selector_problems,
    settle_rolled_template,
    template_problems,
)
from pumice.cluster.api.refusals import Cause, forbidden_field
from pumice.core.objects.metadata import Object, section


def default(workload: Object, _lookup: Lookup) -> None:
    """Set one replica by default."""
    spec: Object = workload.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    settle_rolled_template(section(spec, "template"))


def default_deployment(deployment: Object, lookup: Lookup) -> None:
    """Fill in the roll-out fields that the object leaves out (source: `SetDefaults_Deployment`)."""
    default(deployment, lookup)
    _default_rollout(deployment)


def _default_rollout(deployment: Object) -> None:
    spec = deployment["spec"]
    spec.setdefault("progressDeadlineSeconds", 600)
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = spec["strategy"] = dict(section(spec, "strategy"))
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {"maxSurge": "25%", "maxUnavailable": "25%", **section(strategy, "rollingUpdate")}


def validate(workload: Object, _lookup: Lookup) -> list[Cause]:
    """Return the problems of a new Deployment or ReplicaSet: replicas, selector and template."""
    spec = section(workload, "spec")
    found = number_problems(spec, ("replicas",), "spec") + selector_problems(spec, "deployment")
    return found + template_problems(section(spec, "template"), "spec.template", ("Always",))


def update_deployment(old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed Deployment; fields that a client leaves out are defaulted as in a new one."""
    _own_spec(old, new)
    _default_rollout(new)
    return validate_update(old, new, lookup)


def _own_spec(old: Object, new: Object) -> None:
    """Copy the parts of a changed object that it may share with the stored one, before anything is written into it."""
    spec = new["spec"] = dict(section(new, "spec"))
    if spec.get("template") != section(old, "spec").get("template"):
        spec["template"] = deepcopy(section(spec, "template"))
        settle_rolled_template(spec["template"])


def validate_update(old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed Deployment or ReplicaSet; the selector is fixed."""
    _own_spec(old, new)
    spec: Object = new["spec"]
    spec.setdefault("replicas", 1)
    if spec.get("selector") != section(old, "spec").get("selector"):
        return [forbidden_field("spec.selector", "field is immutable")]
    return validate(new, lookup)
