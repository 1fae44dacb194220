# SPDX-License-Identifier: Apache-2.0
"""Choice of the webhooks and policies for a request.

Source: Kubernetes' `admission/plugin/webhook/predicates`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pumice.actors.gateway.identity.users import ADMIN
from pumice.cluster.api.kinds import Kind
from pumice.cluster.rbac.rules import AUTHENTICATED, AccessRequest, User, account_groups, account_of
from pumice.core.kube.cel.costs import SPEND, StepsLeft
from pumice.core.kube.cel.evaluating import evaluate
from pumice.core.kube.cel.reading import ExpressionError, read_expression
from pumice.core.kube.cel.values import Authority
from pumice.core.kube.selectors import SelectorError, label_selector
from pumice.core.objects.metadata import Object, labels_of, rows, section, text_map

MUTATING: Final = "MutatingWebhookConfiguration"
VALIDATING: Final = "ValidatingWebhookConfiguration"
POLICY: Final = "ValidatingAdmissionPolicy"
BINDING: Final = "ValidatingAdmissionPolicyBinding"
CONFIGURATIONS: Final = (MUTATING, VALIDATING, POLICY, BINDING)
_GROUP: Final = "admissionregistration.k8s.io"
_PARTS: Final = ("verb", "group", "resource", "subresource", "namespace", "name", "path")

Authorizer = Callable[[User, AccessRequest], tuple[bool, str]]
"""Return whether a user may do what is asked, and why."""


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """Request under admission. `operation`: CREATE, UPDATE or DELETE; `spaces`: labels of its namespace, None without
    one; `user`: its sender; `authorizer`: decides what users may do.
    """

    operation: str
    row: Kind
    version: str
    subresource: str
    namespace: str
    name: str
    new: Object | None
    old: Object | None
    spaces: dict[str, str] | None
    dry_run: bool
    user: User = ADMIN
    authorizer: Authorizer | None = None


class HookTable:
    """The existing webhooks and policies, in the order of calls: by name."""

    def __init__(self) -> None:
        self._held: dict[str, dict[str, Object]] = {kind: {} for kind in CONFIGURATIONS}

    def heard(self, change: str, kind: str, configuration: Object) -> None:
        """Note a configuration that has come, changed or gone."""
        name = configuration["metadata"]["name"]
        if change == "DELETED":
            self._held[kind].pop(name, None)
        else:
            self._held[kind][name] = configuration

    def __bool__(self) -> bool:
        return any(self._held.values())

    def of(self, kind: str) -> list[Object]:
        """Return all webhooks of configurations of a kind."""
        held = self._held[kind]
        return [hook for name in sorted(held) for hook in rows(held[name], "webhooks")]

    def policies(self) -> list[Object]:
        """Return all policies."""
        held = self._held[POLICY]
        return [held[name] for name in sorted(held)]

    def bindings(self, policy: str) -> list[Object]:
        """Return the bindings of a policy."""
        held = self._held[BINDING]
        return [held[name] for name in sorted(held) if section(held[name], "spec").get("policyName") == policy]

    def about(self, operation: str, row: Kind, version: str, subresource: str) -> bool:
        """Return whether a webhook or policy may match such a request."""
        if row.group == _GROUP:  # no webhook may lock all users out of changing this
            return False
        every = [rows(hook, "rules") for kind in (MUTATING, VALIDATING) for hook in self.of(kind)]
        # A policy without a binding applies to nothing.
        if self._held[BINDING]:
            constraints = (section(section(policy, "spec"), "matchConstraints") for policy in self.policies())
            every += [rows(each, "resourceRules") for each in constraints]
        # Rules alone: names and selectors need the object, for which the api is asked once more.
        return any(_ruled(rules, operation, row, version, subresource) for rules in every)


def wanted(hook: Object, request: AdmissionRequest) -> bool:
    """Return whether a webhook must be asked. Raises ExpressionError for a condition that cannot be evaluated."""
    if not _is_ruled(rows(hook, "rules"), request) or not _is_selected(hook, request):
        return False
    return all_hold(rows(hook, "matchConditions"), {**names_of(request), SPEND: StepsLeft()})


def names_of(request: AdmissionRequest) -> Object:
    """Return what an expression may speak of. `authorizer` judges by the sender's rights."""
    return {
        "object": request.new,
        "oldObject": request.old,
        "request": told(request),
        "namespaceObject": None,
        "authorizer": authority_of(request),
    }


def authority_of(request: AdmissionRequest) -> Authority:
    """Return `authorizer`: what the sender of the request may do."""

    def judge(asked: Mapping[str, str]) -> tuple[bool, str]:
        assert request.authorizer is not None, "without one nothing is judged"
        user, account = request.user, account_of(asked.get("account", ""))
        if account is not None:
            groups = (*account_groups(account[0]), AUTHENTICATED)
            user = User(asked["account"], groups)
        known = {part: asked[part] for part in _PARTS if part in asked}
        return request.authorizer(user, AccessRequest(**{"verb": "", **known}))

    row = request.row
    about = {
        "group": row.group,
        "resource": row.plural,
        "subresource": request.subresource,
        "namespace": request.namespace,
        "name": request.name,
    }
    return Authority("Authorizer", request=about, judge=judge if request.authorizer is not None else None)


def is_matched(matched: Any, request: AdmissionRequest, *, anything: bool = False) -> bool:
    """Return whether the resources of a policy or a binding include the request. `anything`: without rules they include
    all.
    """
    if not matched or _is_ruled(rows(matched, "excludeResourceRules"), request):
        return False
    rules = rows(matched, "resourceRules")
    return (_is_ruled(rules, request) or (anything and not rules)) and _is_selected(matched, request)


def _is_selected(selecting: Object, request: AdmissionRequest) -> bool:
    # A Namespace is selected by its own labels (`webhook/predicates/namespace/matcher.go`).
    spaces = text_map(section(_object(request), "metadata").get("labels")) if _is_namespace(request) else request.spaces
    # For other objects without a namespace the API says that a namespaceSelector never leaves them out.
    if spaces is not None and not _selects(selecting.get("namespaceSelector"), spaces):
        return False
    objects = [each for each in (request.new, request.old) if each is not None]
    labels = [labels_of(each) for each in objects]
    # Old or new: otherwise a client could avoid a webhook by removing the label.
    return any(_selects(selecting.get("objectSelector"), each) for each in labels)


def _is_namespace(request: AdmissionRequest) -> bool:
    return request.row.key == "Namespace"


def _object(request: AdmissionRequest) -> Object:
    return request.new if request.new is not None else request.old or {}


def _is_ruled(rules: list[Object], request: AdmissionRequest) -> bool:
    return any(
        _ruled([rule], request.operation, request.row, request.version, request.subresource)
        and (not rule.get("resourceNames") or request.name in rule["resourceNames"])
        for rule in rules
    )


def _ruled(rules: list[Object], operation: str, row: Kind, version: str, subresource: str) -> bool:
    resource = f"{row.plural}/{subresource}" if subresource else row.plural
    return any(_rule_holds(rule, operation, row, version, resource) for rule in rules)


def _rule_holds(rule: Object, operation: str, row: Kind, version: str, resource: str) -> bool:
    scope = rule.get("scope") or "*"
    return (
        _among(operation, rule.get("operations"))
        and _among(row.group, rule.get("apiGroups"))
        # As under matchPolicy Equivalent, the default: a rule for another served version matches too.
        and any(_among(each, rule.get("apiVersions")) for each in {version, *row.served_versions})
        and scope in ("*", "Namespaced" if row.namespaced else "Cluster")
        and any(_is_resource(resource, each) for each in rule.get("resources") or ())
    )


def _among(value: str, listed: Iterable[str] | None) -> bool:
    found = [*(listed or ())]
    return "*" in found or value in found


def _is_resource(resource: str, pattern: str) -> bool:
    plural, _, sub = resource.partition("/")
    wanted_plural, _, wanted_sub = pattern.partition("/")
    if pattern == "*/*":
        return True
    # `*` alone does not include subresources (`webhook/predicates/rules/rules.go`).
    return wanted_plural in ("*", plural) and (wanted_sub == sub or (wanted_sub == "*" and bool(sub)))


def _selects(selector: Any, labels: dict[str, str]) -> bool:
    if not selector:
        return True
    try:
        return label_selector(selector).matches(labels)
    except SelectorError:
        return False


def all_hold(conditions: list[Object], names: Object) -> bool:
    """Return whether all conditions hold; a false one outweighs one that cannot be evaluated. Raises
    ExpressionError."""
    errors: list[ExpressionError] = []
    for each in conditions:
        try:
            if evaluate(read_expression(str(each.get("expression") or "")), names) is not True:
                return False
        except ExpressionError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return True


def told(request: AdmissionRequest) -> Object:
    """Return the request as webhooks and conditions see it, without the objects."""
    row = request.row
    kind = {"group": row.group, "version": row.version, "kind": row.kind}
    resource = {"group": row.group, "version": row.version, "resource": row.plural}
    made: Object = {
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": request.name,
        "operation": request.operation,
        "userInfo": request.user.told(),
        "dryRun": request.dry_run,
        "options": None,
    }
    if request.namespace:
        made["namespace"] = request.namespace
    if request.subresource:
        made |= {"subResource": request.subresource, "requestSubResource": request.subresource}
    return made
