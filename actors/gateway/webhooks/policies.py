"""ValidatingAdmissionPolicies: what they say of a request, by their bindings, in Kubernetes' words.

Source: Kubernetes' `admission/plugin/policy/validating`. Nothing is audited: the action Audit does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pumice.actors.gateway.problems import ApiError
from pumice.actors.gateway.site import Site
from pumice.actors.gateway.webhooks import hooks
from pumice.actors.gateway.webhooks.hooks import AdmissionRequest
from pumice.cluster.api.fields import rows, section
from pumice.core.kube.cel.costs import SPEND, StepsLeft
from pumice.core.kube.cel.evaluating import evaluate
from pumice.core.kube.cel.reading import ExpressionError, read_expression
from pumice.core.kube.cel.values import truth
from pumice.core.kube.selectors import SelectorError, label_selector
from pumice.core.messages import commands, replies
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object, text_map
from pumice.storage import codec

_CODES: Final = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
_INVALID: Final = "Invalid"
_BOUNDLESS: Final = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
_NOT_FOUND: Final = "no params found for policy binding with `Deny` parameterNotFoundAction"

Said = tuple[str, str]
"""A message and the reason of the Status."""


class PolicyError(Exception):
    """A binding that cannot be followed."""


async def obeyed(site: Site, request: AdmissionRequest) -> list[str]:
    """The warnings of all policies that are about a request. Raises ApiError for the first that denies it."""
    warnings: list[str] = []
    denied: ApiError | None = None
    for policy in site.hooks.policies():
        if not hooks.is_matched(section(policy, "spec").get("matchConstraints"), request):
            continue
        for binding in site.hooks.bindings(policy["metadata"]["name"]):
            matched = section(binding, "spec").get("matchResources")
            if matched and not hooks.is_matched(matched, request, anything=True):
                continue
            for message, reason in await _said(site, policy, binding, request):
                about = f"'{policy['metadata']['name']}' with binding '{binding['metadata']['name']}'"
                actions = section(binding, "spec").get("validationActions") or ()
                if "Warn" in actions:
                    warnings.append(f"Validation failed for ValidatingAdmissionPolicy {about}: {message}")
                if "Deny" in actions and denied is None:
                    denied = ApiError(_refused(request, about, message, reason))
    if denied is not None:
        raise denied
    return warnings


def _refused(request: AdmissionRequest, about: str, message: str, reason: str) -> Refused:
    row = request.row
    why = f"ValidatingAdmissionPolicy {about} denied request: {message}"
    details = {"name": request.name, "group": row.group, "kind": row.plural, "causes": [{"message": message}]}
    return Refused(_CODES.get(reason, 422), reason, f'{row.resource} "{request.name}" is forbidden: {why}', details)


async def _said(site: Site, policy: Object, binding: Object, request: AdmissionRequest) -> list[Said]:
    """What a policy has against a request."""
    spec = section(policy, "spec")
    names = hooks.names_of(request)
    if request.namespace:
        names["namespaceObject"] = await site.find("Namespace", "", request.namespace)
    found: list[Said] = []
    try:
        for each in await _params(site, spec, section(binding, "spec"), request):
            found += _judged(spec, {**names, "params": each})
    except PolicyError as error:
        found.append((f"failed to configure binding: {error}", _INVALID))
        return [] if spec.get("failurePolicy") == "Ignore" else found
    return found


def _judged(spec: Object, names: dict[str, Any]) -> list[Said]:
    """What its validations say over one parameter."""
    lenient = spec.get("failurePolicy") == "Ignore"
    names = {**names, SPEND: StepsLeft()}
    try:
        if not hooks.all_hold(rows(spec, "matchConditions"), names):
            return []
    except ExpressionError as error:
        return [] if lenient else [(str(error), _INVALID)]
    names["variables"] = _Variables(rows(spec, "variables"), names)
    return [said for each in rows(spec, "validations") for said in _broken(each, names, lenient=lenient)]


def _broken(validation: Object, names: dict[str, Any], *, lenient: bool) -> Iterator[Said]:
    text = str(validation.get("expression") or "")
    try:
        if truth(evaluate(read_expression(text), names)):
            return
    except ExpressionError as error:
        if not lenient:
            yield f"expression '{text}' resulted in error: {error}", _INVALID
        return
    message = _message(validation, names) or str(validation.get("message") or "").strip()
    yield message or f"failed expression: {text.strip()}", str(validation.get("reason") or _INVALID)


def _message(validation: Object, names: dict[str, Any]) -> str:
    """What `messageExpression` comes to; "" where it comes to nothing that can be said."""
    text = validation.get("messageExpression")
    if not text:
        return ""
    try:
        said = evaluate(read_expression(str(text)), names)
    except ExpressionError:
        return ""
    return said.strip() if isinstance(said, str) and "\n" not in said.strip() else ""


class _Variables(dict[str, Any]):
    """Worked out when they are asked for. Raises ExpressionError."""

    def __init__(self, variables: list[Object], names: dict[str, Any]) -> None:
        super().__init__()
        self._texts = {str(each.get("name")): str(each.get("expression") or "") for each in variables}
        self._names = names
        self._open: set[str] = set()

    def __contains__(self, name: object) -> bool:
        return name in self._texts

    def __missing__(self, name: str) -> Any:
        if name not in self._texts or name in self._open:  # one that speaks of itself finds nothing
            raise KeyError(name)
        self._open.add(name)
        value = self[name] = evaluate(read_expression(self._texts[name]), self._names)
        self._open.discard(name)
        return value


async def _params(site: Site, spec: Object, bound: Object, request: AdmissionRequest) -> list[Object | None]:
    """What `params` stands for, one after the other. Raises PolicyError."""
    kind, asked = section(spec, "paramKind"), section(bound, "paramRef")
    if not kind or not asked:
        return [None]
    row = site.kinds.by_type(kind.get("apiVersion"), kind.get("kind"))
    if row is None:
        named = f"{kind.get('apiVersion')}, Kind={kind.get('kind')}"
        raise PolicyError(f"failed to find resource referenced by paramKind: '{named}'")
    namespace = str(asked.get("namespace") or request.namespace) if row.namespaced else ""
    if row.namespaced and not namespace:
        raise PolicyError(_BOUNDLESS)
    if asked.get("name"):
        one = await site.find(row.key, namespace, str(asked["name"]))
        found = [] if one is None else [one]
    else:
        found = await _selected(site, row.key, namespace, asked.get("selector"))
    if not found and asked.get("parameterNotFoundAction") != "Allow":
        raise PolicyError(_NOT_FOUND)
    return [*found]


async def _selected(site: Site, key: str, namespace: str, selector: Any) -> list[Object]:
    reply: Any = await site.api.ask(commands.List(key, namespace or None))
    every: list[Object] = [codec.unpack(each) for each in reply.blobs] if isinstance(reply, replies.Listing) else []
    try:
        wanted = label_selector(selector or {})
    except SelectorError as error:
        raise PolicyError(str(error)) from error
    return [each for each in every if wanted.matches(text_map(section(each, "metadata").get("labels")))]
