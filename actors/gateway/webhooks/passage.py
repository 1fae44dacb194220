# SPDX-License-Identifier: Apache-2.0
"""Messages to the api on their way through the webhooks: the resulting object is requested first, shown, and
changed.
"""

from __future__ import annotations

import dataclasses

from msgspec.structs import replace

from pumice.actors.gateway.request.bodies import packed
from pumice.actors.gateway.request.paths import Target
from pumice.actors.gateway.site import Site
from pumice.actors.gateway.webhooks.admission import judged, labels_of_namespace, mutated
from pumice.actors.gateway.webhooks.hooks import AdmissionRequest
from pumice.cluster.api.kinds import Kind
from pumice.cluster.rbac.rules import User
from pumice.core.messages import commands
from pumice.core.messages.commands import Create, Delete, Patch, Update
from pumice.core.objects.metadata import Object, section
from pumice.storage import codec

_SERVERS = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")
"""Fields that only the server sets on a new object: a webhook is asked before they are set."""


async def creation(site: Site, user: User, target: Target, row: Kind, message: Create) -> tuple[Create, list[str]]:
    """Return a new object. Raises ApiError when a webhook or the api refuses it."""
    if not site.hooks.about("CREATE", row, target.version, ""):
        return message, []
    # A dry run gives the object with its defaults, as webhooks expect it. Nothing waits in the api meanwhile:
    # a webhook may ask the api in turn.
    obj = await _would_be(site, message)
    for name in _SERVERS:
        obj["metadata"].pop(name, None)
    request = await _request(site, user, target, row, "CREATE", obj, None, message)
    new, warnings = await mutated(site, request)
    if new != obj:
        message = replace(message, blob=packed(new))
        new = await _would_be(site, message)  # with the defaults of what has come in
    return message, warnings + await judged(site, dataclasses.replace(request, new=new))


async def change(
    site: Site, user: User, target: Target, row: Kind, message: Update | Patch
) -> tuple[Create | Update | Patch, list[str]]:
    """Return a changed object, or one made by an apply. Raises ApiError."""
    hooks, sub = site.hooks, target.subresource
    # An apply creates what does not exist, and only the dry run tells which of the two it is.
    if not any(hooks.about(operation, row, target.version, sub) for operation in ("UPDATE", "CREATE")):
        return message, []
    answer = await site.ask(replace(message, dry_run=True))
    obj: Object = codec.unpack(answer.blob)
    old = None if answer.created else await site.get(row.key, target.namespace, target.name)
    request = await _request(site, user, target, row, "CREATE" if old is None else "UPDATE", obj, old, message)
    new, warnings = await mutated(site, request)
    warnings += await judged(site, dataclasses.replace(request, new=new))
    # The message as it came: a patch is to meet the object that is stored then, not the one of the dry run.
    if new == obj:
        return message, warnings
    agent, manager, dry = message.user, message.manager, message.dry_run
    if old is None:
        return Create(packed(new), user=agent, manager=manager, dry_run=dry), warnings
    sub = message.subresource
    return Update(packed(new), subresource=sub, user=agent, manager=manager, dry_run=dry), warnings


async def removal(site: Site, user: User, target: Target, row: Kind, message: Delete) -> list[str]:
    """Return an object to be deleted. Raises ApiError."""
    if not site.hooks.about("DELETE", row, target.version, ""):
        return []
    old = await site.get(row.key, message.namespace, message.name)
    request = await _request(site, user, target, row, "DELETE", None, old, message)
    _, warnings = await mutated(site, request)
    return warnings + await judged(site, request)


async def _would_be(site: Site, message: Create) -> Object:
    answer = await site.ask(replace(message, dry_run=True))
    obj: Object = codec.unpack(answer.blob)
    return obj


async def _request(
    site: Site,
    user: User,
    target: Target,
    row: Kind,
    operation: str,
    new: Object | None,
    old: Object | None,
    message: commands.Create | commands.Update | commands.Patch | commands.Delete,
) -> AdmissionRequest:
    meta = section(new or old or Object(), "metadata")
    namespace = str(meta.get("namespace") or target.namespace) if row.namespaced else ""
    return AdmissionRequest(
        operation=operation,
        row=row,
        version=target.version,
        subresource=target.subresource,
        namespace=namespace,
        name=meta.get("name") or target.name,
        new=new,
        old=old,
        spaces=await labels_of_namespace(site, namespace),
        dry_run=message.dry_run,
        user=user,
        authorizer=site.rights.decide,
    )
