# SPDX-License-Identifier: Apache-2.0
"""A request on its way through the webhooks: those that change the object one after another, then the policies and all
validating webhooks.

What comes over HTTP is shown to them, and what controllers of this process ask (`controllers`); what the scheduler
decides is not.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Final

import anyio

from pumice.actors.gateway.identity.users import ADMIN
from pumice.actors.gateway.problems import ApiError, bad_request
from pumice.actors.gateway.site import Site
from pumice.actors.gateway.webhooks import calls, hooks
from pumice.actors.gateway.webhooks.hooks import AdmissionRequest, told
from pumice.cluster.api.patches.operations import apply_operations
from pumice.cluster.faults.decisions import ClientRequest
from pumice.cluster.faults.rules import LateWebhook
from pumice.core.kube.cel.costs import SPEND, StepsLeft
from pumice.core.kube.cel.evaluating import evaluate
from pumice.core.kube.cel.reading import ExpressionError, read_expression
from pumice.core.kube.cel.values import truth
from pumice.core.kube.selectors import SelectorError, label_selector
from pumice.core.messages import commands, replies
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object, is_list, is_mapping, labels_of, rows, section
from pumice.storage import codec

# --- ValidatingAdmissionPolicies
# Source: Kubernetes' `admission/plugin/policy/validating`. Nothing is audited: the action Audit does nothing.

_CODES: Final = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
_INVALID: Final = "Invalid"
_BOUNDLESS: Final = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
_NOT_FOUND: Final = "no params found for policy binding with `Deny` parameterNotFoundAction"

Said = tuple[str, str]
"""A message and the reason of the Status."""


class PolicyError(Exception):
    """A binding that cannot be applied."""


async def obeyed(site: Site, request: AdmissionRequest) -> list[str]:
    """Return the warnings of all policies that are about a request. Raises ApiError for the first that denies it."""
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
    # `is forbidden` whatever the reason: Kubernetes' plugin makes a Forbidden error and then replaces reason
    # and code.
    why = f"ValidatingAdmissionPolicy {about} denied request: {message}"
    details = {"name": request.name, "group": row.group, "kind": row.plural, "causes": [{"message": message}]}
    return Refused(_CODES.get(reason, 422), reason, f'{row.resource} "{request.name}" is forbidden: {why}', details)


async def _said(site: Site, policy: Object, binding: Object, request: AdmissionRequest) -> list[Said]:
    """Return the objections of a policy to a request."""
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


def _judged(spec: Object, names: Object) -> list[Said]:
    """Return the objections of its validations over one parameter."""
    lenient = spec.get("failurePolicy") == "Ignore"
    names = {**names, SPEND: StepsLeft()}
    try:
        if not hooks.all_hold(rows(spec, "matchConditions"), names):
            return []
    except ExpressionError as error:
        return [] if lenient else [(str(error), _INVALID)]
    names["variables"] = _Variables(rows(spec, "variables"), names)
    return [said for each in rows(spec, "validations") for said in _broken(each, names, lenient=lenient)]


def _broken(validation: Object, names: Object, *, lenient: bool) -> Iterator[Said]:
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


def _message(validation: Object, names: Object) -> str:
    """Return the value of `messageExpression`; "" where its value cannot serve as a message."""
    text = validation.get("messageExpression")
    if not text:
        return ""
    try:
        said = evaluate(read_expression(str(text)), names)
    except ExpressionError:
        return ""
    return said.strip() if isinstance(said, str) and "\n" not in said.strip() else ""


class _Variables(dict[str, Any]):
    """Variables, evaluated on first use. Raises ExpressionError."""

    def __init__(self, variables: list[Object], names: Object) -> None:
        super().__init__()
        self._texts = {str(each.get("name")): str(each.get("expression") or "") for each in variables}
        self._names = names
        self._open: set[str] = set()

    def __contains__(self, name: object) -> bool:
        # By name alone: to ask whether a variable exists must not evaluate it.
        return name in self._texts

    def __missing__(self, name: str) -> Any:
        if name not in self._texts or name in self._open:  # one that speaks of itself finds nothing
            raise KeyError(name)
        self._open.add(name)
        value = self[name] = evaluate(read_expression(self._texts[name]), self._names)
        self._open.discard(name)
        return value


async def _params(site: Site, spec: Object, bound: Object, request: AdmissionRequest) -> list[Object | None]:
    """Yield the objects of `params`. Raises PolicyError."""
    kind, asked = section(spec, "paramKind"), section(bound, "paramRef")
    if not kind or not asked:
        # Without parameters the validations still run once, with `params` null.
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
    return [each for each in every if wanted.matches(labels_of(each))]


# --- AdmissionReview
# Source: Kubernetes' `webhook/request`.

VERSION: Final = "admission.k8s.io/v1"
# A refusal with the code of a success is answered as 400 (`webhook/errors/statuserror.go`).
_LEAST: Final = 400


class BadAnswerError(Exception):
    """An answer that cannot be parsed."""


@dataclass(frozen=True, slots=True)
class HookVerdict:
    """Answer of a webhook: a refusal, or operations on the object; and warnings."""

    refused: Refused | None = None
    operations: tuple[Any, ...] = ()
    warnings: tuple[str, ...] = ()


def uid_of_review(request: AdmissionRequest, hook: str, number: int) -> str:
    """Return a uid that differs for each review."""
    said = f"{hook} {request.operation} {request.row.key} {request.namespace}/{request.name} {number}"
    mark = blake2b(said.encode(), digest_size=16).hexdigest()
    return f"{mark[:8]}-{mark[8:12]}-{mark[12:16]}-{mark[16:20]}-{mark[20:]}"


def review(request: AdmissionRequest, uid: str) -> bytes:
    """Return the body of a review request."""
    asked = {"uid": uid, **told(request), "object": request.new, "oldObject": request.old}
    return json.dumps({"kind": "AdmissionReview", "apiVersion": VERSION, "request": asked}).encode()


def verdict(body: bytes, uid: str, hook: str) -> HookVerdict:
    """Read the verdict of an answer. Raises BadAnswerError."""
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadAnswerError(f"couldn't get version/kind; json parse error: {error}") from error
    if not is_mapping(answer) or answer.get("kind") != "AdmissionReview" or answer.get("apiVersion") != VERSION:
        raise BadAnswerError(f"expected webhook response of {VERSION}, Kind=AdmissionReview")
    response = answer.get("response")
    if not is_mapping(response):
        raise BadAnswerError("webhook response was absent")
    if response.get("uid") != uid:
        raise BadAnswerError(f'expected response.uid="{uid}"')
    given: Any = response.get("warnings")
    warnings = tuple(map(str, given)) if is_list(given) else ()
    if response.get("allowed") is not True:
        return HookVerdict(_refusal(section(response, "status"), hook), warnings=warnings)
    return HookVerdict(operations=_operations(response), warnings=warnings)


def _refusal(status: Object, hook: str) -> Refused:
    message, reason, code = status.get("message"), status.get("reason") or "", status.get("code")
    denied = f'admission webhook "{hook}" denied the request'
    why = f": {message}" if message else f": {reason}" if reason else " without explanation"
    number = code if isinstance(code, int) and _LEAST <= code < 600 else _LEAST
    details: Any = status.get("details")
    return Refused(number, str(reason), denied + why, details if is_mapping(details) else {})


def _operations(response: Object) -> tuple[Any, ...]:
    patch = response.get("patch")
    if not patch:
        return ()
    if response.get("patchType") != "JSONPatch":
        raise BadAnswerError("webhook returned response.patch but not response.patchType=JSONPatch")
    try:
        operations: Any = json.loads(base64.b64decode(str(patch), validate=True))
    except (ValueError, binascii.Error, RecursionError) as error:
        raise BadAnswerError(f"the patch cannot be read: {error}") from error
    if not is_list(operations):
        raise BadAnswerError("the patch is not a list of operations")
    return tuple(operations)


async def mutated(site: Site, request: AdmissionRequest) -> tuple[Object | None, list[str]]:
    """Return the object as the webhooks have it, and their warnings. Raises ApiError when one refuses."""
    warnings: list[str] = []
    for number, hook in enumerate(site.hooks.of(hooks.MUTATING)):
        said = await _asked(site, hook, request, number, warnings)
        if not said.operations or request.new is None:
            continue
        changed = apply_operations(request.new, list(said.operations))
        name = str(hook.get("name") or "")
        if isinstance(changed, Refused):
            raise _failed(name, changed.message)
        if problem := _other_identity(request, request.new, changed):
            raise _failed(name, f"the patch may not change {problem}")
        request = replace(request, new=changed)
    return request.new, warnings


async def judged(site: Site, request: AdmissionRequest) -> list[str]:
    """Return the warnings of those that judge. Raises ApiError when one refuses."""
    warnings = await obeyed(site, request)
    refused: list[ApiError] = []

    async def ask(hook: Object, number: int) -> None:
        try:
            await _asked(site, hook, request, number, warnings)
        except ApiError as error:
            # Kept, not raised: in a task group an error would cancel the other calls.
            refused.append(error)

    async with anyio.create_task_group() as group:
        for number, hook in enumerate(site.hooks.of(hooks.VALIDATING)):
            group.start_soon(ask, hook, number)
    if refused:
        # Chosen by its text: the order in which webhooks answer must not decide what the client reads.
        raise min(refused, key=lambda error: error.refused.message)
    return warnings


async def _asked(site: Site, hook: Object, request: AdmissionRequest, number: int, warnings: list[str]) -> HookVerdict:
    """Ask one webhook, and return its verdict, an empty one where it is not asked or need not answer. Raises
    ApiError.
    """
    name = str(hook.get("name") or "")
    try:
        if not hooks.wanted(hook, request):
            return HookVerdict()
        if request.dry_run and hook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise bad_request(f'admission webhook "{name}" does not support dry run')
        address = calls.address_of(hook, *await _service(site, hook))
        if address is None:
            warnings.append(f'admission webhook "{name}" is served by simulated pods and was not called')
            return HookVerdict()
        uid = uid_of_review(request, name, number)
        late_s = await _lateness(site, name, request) if site.faults.is_on else 0.0
        said = verdict(await calls.call(hook, address, review(request, uid), late_s), uid, name)
    except (calls.CallError, BadAnswerError, ExpressionError) as error:
        if hook.get("failurePolicy") == "Ignore":
            return HookVerdict()
        raise _failed(name, f"failed to call webhook: {error}") from error
    warnings += said.warnings
    if said.refused is not None:
        raise ApiError(said.refused)
    return said


async def _lateness(site: Site, hook: str, request: AdmissionRequest) -> float:
    """Return how much later a webhook is asked, by a fault."""
    row, of = request.row, request.new or request.old or {}
    asked = ClientRequest(
        client="",
        verb=request.operation.lower(),
        kind=row.key,
        namespace=request.namespace,
        name=request.name,
        subresource=request.subresource,
        user="" if request.user is ADMIN else request.user.name,
        kinds=(row.key, row.kind, row.qualified),
        labels=labels_of(of),
        webhook=hook,
    )
    strike = site.faults.strike(asked, site.clock.now())
    if strike is None or not isinstance(strike.rule, LateWebhook):
        return 0.0
    await site.note(strike.told(asked))
    return strike.rule.delay_s


def _other_identity(request: AdmissionRequest, before: Object, after: Object) -> str:
    """Return what a webhook has changed of that by which an object is known, "" where it has not.

    Kubernetes reads the patched object as one of the same kind, and does not store one of another name.
    """
    for name, own in (("apiVersion", request.row.api_version), ("kind", request.row.kind)):
        if (after.get(name) or own) != (before.get(name) or own):
            return name
    old, new = section(before, "metadata"), section(after, "metadata")
    if old.get("name") and old["name"] != new.get("name"):
        return "metadata.name"
    there = request.namespace or old.get("namespace") or ""
    return "metadata.namespace" if (new.get("namespace") or there) != there else ""


def _failed(hook: str, why: str) -> ApiError:
    return ApiError(Refused(500, "InternalError", f'Internal error occurred: failed calling webhook "{hook}": {why}'))


async def _service(site: Site, hook: Object) -> tuple[Object | None, Object | None]:
    """Return the Service that a webhook stands behind, and its Endpoints."""
    asked = section(section(hook, "clientConfig"), "service")
    if not asked:
        return None, None
    place = str(asked.get("namespace") or ""), str(asked.get("name") or "")
    return await site.find("Service", *place), await site.find("Endpoints", *place)


async def labels_of_namespace(site: Site, namespace: str) -> dict[str, str] | None:
    """Return the labels of a namespace, none where it does not exist; None for an object without a namespace."""
    found = await site.find("Namespace", "", namespace) if namespace else None
    return labels_of(found) if found is not None else {} if namespace else None
