# SPDX-License-Identifier: Apache-2.0
"""batch/v1 Jobs: defaults and rules of Kubernetes' API (`apis/batch/v1/defaults`, `apis/batch/validation`)."""

from __future__ import annotations

from typing import Any, Final

from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.admission.templates import (
    number_problems,
    selector_problems,
    settle_template,
    template_problems,
)
from pumice.cluster.api.names import label_problem
from pumice.cluster.api.refusals import Cause, invalid_value, required, unsupported
from pumice.cluster.api.schema.table import enum_of
from pumice.cluster.api.selectors import matches, selector_of
from pumice.core.kube.selectors import SelectorError, label_selector
from pumice.core.objects.metadata import Object, labels_of, rows, section

UID_LABEL: Final = "batch.kubernetes.io/controller-uid"
# Each label under two names: old clients read the one without a prefix.
_LABELS: Final = (UID_LABEL, "controller-uid")
_NAMES: Final = ("batch.kubernetes.io/job-name", "job-name")
# the schema has Always too, which a Job may not
_RESTARTS: Final = ("OnFailure", "Never")
_MODES: Final = enum_of("batch.v1.JobSpec", "completionMode", declared=True)
_REPLACEMENTS: Final = enum_of("batch.v1.JobSpec", "podReplacementPolicy")
_ACTIONS: Final = enum_of("batch.v1.PodFailurePolicyRule", "action")
_CODE_OPERATORS: Final = enum_of("batch.v1.PodFailurePolicyOnExitCodesRequirement", "operator")
_NUMBERS: Final = (
    "parallelism",
    "completions",
    "backoffLimit",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
    "ttlSecondsAfterFinished",
    "activeDeadlineSeconds",
)
_FIXED: Final = ("selector", "template", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "successPolicy")
_DIRECTIVES: Final = ("nodeSelector", "affinity", "tolerations", "schedulingGates")
# MaxInt32, which Kubernetes' `SetDefaults_Job` writes beside a limit for each index.
_NO_LIMIT: Final = 2**31 - 1


def default_spec(spec: Object) -> None:
    """Fill in the defaults of a spec: one pod, done once, that may fail six times."""
    # with a parallelism alone the completions stay open: that is a work queue (Kubernetes' `SetDefaults_Job`)
    if spec.get("parallelism") is None and spec.get("completions") is None:
        spec["completions"] = 1
    if spec.get("parallelism") is None:
        spec["parallelism"] = 1
    spec.setdefault("backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else _NO_LIMIT)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed")
    for rule in rows(section(spec, "podFailurePolicy"), "rules"):
        for condition in rows(rule, "onPodConditions"):
            condition.setdefault("status", "True")
    settle_template(section(spec, "template"))


def default(job: Object, _lookup: Lookup) -> None:
    """Fill in the defaults of `default_spec`; a Job without labels gets those of its template."""
    spec: Object = job.setdefault("spec", {})
    default_spec(spec)
    if not labels_of(job) and (labels := labels_of(section(spec, "template"))):
        job["metadata"]["labels"] = dict(labels)


def settle(job: Object, _lookup: Lookup, _at: str) -> None:
    """Add the Job's uid and name to its pods, by which it selects them, unless its author manages the selector."""
    meta, spec = job["metadata"], job["spec"]
    if spec.get("manualSelector"):
        return
    template: Object = {**section(spec, "template")}
    labels = {**labels_of(template), **dict.fromkeys(_LABELS, meta["uid"]), **dict.fromkeys(_NAMES, meta["name"])}
    spec["template"] = {**template, "metadata": {**section(template, "metadata"), "labels": labels}}
    spec["selector"] = {"matchLabels": {UID_LABEL: meta["uid"]}}


def validate(job: Object, _lookup: Lookup) -> list[Cause]:
    """Return the problems of a new Job, and of the names that its pods would have."""
    found = spec_problems(section(job, "spec"), "spec")
    if section(job, "spec").get("completionMode") == "Indexed":
        most = max((job["spec"].get("completions") or 1) - 1, 0)
        # pods of an indexed Job are called by their index, and the last one has the longest name
        if problem := label_problem(f"{job['metadata']['name']}-{most}"):
            found.append(
                invalid_value("metadata.name", job["metadata"]["name"], f"will not able to create pod: {problem}")
            )
    return found


def selection_problems(job: Object, uid: str) -> list[Cause]:
    """Return the conflicts of a new Job with its selector. A generated selector must select the Job's own pods alone; a
    manual one (`manualSelector`) must select its template.
    """
    spec = section(job, "spec")
    if spec.get("manualSelector"):
        return selector_problems(spec, "job")
    name: str = job["metadata"]["name"]
    wanted: dict[str, str] = {**dict.fromkeys(_LABELS, uid), **dict.fromkeys(_NAMES, name)}
    given = labels_of(section(spec, "template"))
    found = [
        invalid_value(f"spec.template.metadata.labels[{key}]", given, f"must be '{value}'")
        for key, value in wanted.items()
        if given.get(key, value) != value
    ]
    selector = spec.get("selector")
    try:
        label_selector(selector)
    except SelectorError as error:
        return [*found, invalid_value("spec.selector", selector, str(error))]
    return (
        found
        if matches(selector_of(selector), wanted)
        else [*found, invalid_value("spec.selector", selector, "`selector` not auto-generated")]
    )


def spec_problems(spec: Object, path: str) -> list[Cause]:
    """Return the problems of a Job's spec, wherever the spec stands."""
    found = number_problems(spec, _NUMBERS, path)
    mode = spec.get("completionMode") or "NonIndexed"
    if mode not in _MODES:
        found.append(unsupported(f"{path}.completionMode", mode, _MODES))
    if mode == "Indexed" and spec.get("completions") is None:
        found.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if mode != "Indexed":
        for name in ("backoffLimitPerIndex", "successPolicy"):
            if spec.get(name) is not None:
                why = "requires indexed completion mode"
                found.append(invalid_value(f"{path}.{name}", spec[name], why))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        found.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    replacement = spec.get("podReplacementPolicy")
    if replacement not in (None, *_REPLACEMENTS):
        found.append(unsupported(f"{path}.podReplacementPolicy", replacement, _REPLACEMENTS))
    return (
        found
        + _policy_problems(spec, path)
        + template_problems(section(spec, "template"), f"{path}.template", _RESTARTS)
    )


def _policy_problems(spec: Object, path: str) -> list[Cause]:
    """Return the problems of podFailurePolicy: unknown actions and operators."""
    policy, where = section(spec, "podFailurePolicy"), f"{path}.podFailurePolicy"
    if not policy:
        return []
    found: list[Cause] = []
    if section(section(spec, "template"), "spec").get("restartPolicy") == "OnFailure":
        why = 'only "Never" is supported when podFailurePolicy is specified'
        found.append(invalid_value(f"{path}.template.spec.restartPolicy", "OnFailure", why))
    for index, rule in enumerate(rows(policy, "rules")):
        if rule.get("action") not in _ACTIONS:
            found.append(unsupported(f"{where}.rules[{index}].action", rule.get("action"), _ACTIONS))
        codes = section(rule, "onExitCodes")
        if codes and codes.get("operator") not in _CODE_OPERATORS:
            place = f"{where}.rules[{index}].onExitCodes.operator"
            found.append(unsupported(place, codes.get("operator"), _CODE_OPERATORS))
        if bool(codes) == bool(rule.get("onPodConditions")):
            why = "specifying one of OnExitCodes and OnPodConditions is required"
            found.append(invalid_value(f"{where}.rules[{index}]", rule.get("action"), why))
    return found


def validate_update(old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed Job. The pod template is fixed, except for scheduling fields before the Job
    begins.
    """
    spec: Object = new.setdefault("spec", {})
    before = section(old, "spec")
    # a manifest without what was filled in at creation must equal the stored Job
    settle(new, lookup, "")
    default_spec(spec)
    found: list[Cause] = []
    for name in _FIXED:
        after, had = spec.get(name), before.get(name)
        if name == "template" and before.get("suspend") and not section(old, "status").get("startTime"):
            after, had = _plain(after), _plain(had)
        if after != had:
            found.append(invalid_value(f"spec.{name}", spec.get(name), "field is immutable"))
    # elastic indexed Jobs (KEP-3715) change both numbers together
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    if spec.get("completions") != before.get("completions") and not elastic:
        found.append(invalid_value("spec.completions", spec.get("completions"), "field is immutable"))
    return found or validate(new, lookup)


def _plain(template: Any) -> Object:
    """Return a template without the parts that may still change."""
    spec = {name: value for name, value in section(template, "spec").items() if name not in _DIRECTIVES}
    return {**template, "metadata": {}, "spec": spec}
