"""A request on its way through the webhooks: those that change the object one after another, then the policies and all
webhooks that judge it.

What comes over HTTP is shown to them, and what controllers of this process ask (`controllers`); what the scheduler
decides is not.
"""

from __future__ import annotations

from dataclasses import replace

import anyio

from pumice.actors.gateway.problems import ApiError, bad_request
from pumice.actors.gateway.site import Site
from pumice.actors.gateway.webhooks import calls, hooks
from pumice.actors.gateway.webhooks.hooks import AdmissionRequest
from pumice.actors.gateway.webhooks.policies import obeyed
from pumice.actors.gateway.webhooks.reviews import BadAnswerError, HookVerdict, review, uid_of_review, verdict
from pumice.cluster.api.fields import section
from pumice.cluster.api.patches.operations import apply_operations
from pumice.core.kube.cel.reading import ExpressionError
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object


async def mutated(site: Site, request: AdmissionRequest) -> tuple[Object | None, list[str]]:
    """The object as the webhooks have it, and their warnings. Raises ApiError when one refuses."""
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
    """The warnings of those that judge. Raises ApiError when one refuses."""
    warnings = await obeyed(site, request)
    refused: list[ApiError] = []

    async def ask(hook: Object, number: int) -> None:
        try:
            await _asked(site, hook, request, number, warnings)
        except ApiError as error:
            refused.append(error)

    async with anyio.create_task_group() as group:
        for number, hook in enumerate(site.hooks.of(hooks.VALIDATING)):
            group.start_soon(ask, hook, number)
    if refused:
        raise min(refused, key=lambda error: error.refused.message)
    return warnings


async def _asked(site: Site, hook: Object, request: AdmissionRequest, number: int, warnings: list[str]) -> HookVerdict:
    """What one says; nothing, where it is not asked or need not answer. Raises ApiError."""
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
        said = verdict(await calls.call(hook, address, review(request, uid)), uid, name)
    except (calls.CallError, BadAnswerError, ExpressionError) as error:
        if hook.get("failurePolicy") == "Ignore":
            return HookVerdict()
        raise _failed(name, f"failed to call webhook: {error}") from error
    warnings += said.warnings
    if said.refused is not None:
        raise ApiError(said.refused)
    return said


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
    """The Service that a webhook stands behind, and its Endpoints."""
    asked = section(section(hook, "clientConfig"), "service")
    if not asked:
        return None, None
    place = str(asked.get("namespace") or ""), str(asked.get("name") or "")
    return await site.find("Service", *place), await site.find("Endpoints", *place)


async def labels_of_namespace(site: Site, namespace: str) -> dict[str, str] | None:
    """None where there is no namespace."""
    found = await site.find("Namespace", "", namespace) if namespace else None
    return section(section(found, "metadata"), "labels") if found is not None else {} if namespace else None
