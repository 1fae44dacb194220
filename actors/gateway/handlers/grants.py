# SPDX-License-Identifier: Apache-2.0
"""Writes of roles and bindings: as far as their writer may hand out rights, and in force once they are answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from msgspec.structs import replace

from pumice.actors.gateway.problems import ApiError
from pumice.actors.gateway.request.bodies import packed
from pumice.cluster.api import refusals
from pumice.cluster.rbac import escalation
from pumice.cluster.rbac.rules import GROUP, User
from pumice.core.messages.commands import Create, Patch, Update
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object, section
from pumice.storage import codec

if TYPE_CHECKING:
    from pumice.actors.gateway.site import Site
    from pumice.cluster.api.kinds import Kind
    from pumice.core.messages.commands import Delete

    Write = Create | Update | Patch


SMALL: Final = 4 * 1024
"""Bytes of a change that passes while the server is full."""


async def carry_out(site: Site, user: User, row: Kind, message: Write | Delete) -> Accepted:
    """Carry out a write of an object. Raises ApiError, 403 for a role or binding with rights that the user lacks, and
    when the server is full.
    """
    _demand_room(site, row, message)
    if row.group != GROUP or site.rights.index is None:
        return await site.ask(message)
    if isinstance(message, Create | Update | Patch):
        message = await _granted(site, user, row, message)
    answer = await site.ask(message)
    if not message.dry_run:
        # With the answer its effect: the next request of this client may need it.
        await site.hub.reach(answer.revision)
    return answer


def _demand_room(site: Site, row: Kind, message: Write | Delete) -> None:
    """Refuse what makes a full server hold more. Deletes pass, and small changes, which finalizers need; writes of this
    process do not come here. A burst may pass by as much as the hub is behind.
    """
    hub, settings = site.hub, site.settings
    full, name = hub.object_bytes >= settings.object_bytes, ""
    is_new = isinstance(message, Create)
    match message:
        case Create():
            grows = full
        case Patch(form="apply"):
            name = message.name
            is_new = hub.known(row.key, message.namespace if row.namespaced else "", name) is None
            grows = full and (is_new or len(message.blob) > SMALL)
        case Update() | Patch():
            name = getattr(message, "name", "")
            grows = full and not message.subresource and len(message.blob) > SMALL
        case _:
            return
    if is_new and hub.objects >= settings.object_limit:
        why = f"the server holds {hub.objects} objects, as many as it may (--max-objects)"
        raise ApiError(refusals.forbidden(row, name or _name(message), why))
    if grows:
        why = f"the objects have {hub.object_bytes} bytes, as many as they may (--max-object-bytes)"
        raise ApiError(refusals.forbidden(row, name or _name(message), why))


def _name(message: Write | Delete) -> str:
    """Return the name of an object that is to be created; a generated one is not known yet."""
    if not isinstance(message, Create):
        return ""
    meta = section(cast("Object", codec.unpack(message.blob)), "metadata")
    return str(meta.get("name") or meta.get("generateName") or "")


async def _granted(site: Site, user: User, row: Kind, message: Write) -> Write:
    old: Object | None = None
    if isinstance(message, Patch):
        answer = await site.ask(replace(message, dry_run=True))
        new = cast("Object", codec.unpack(answer.blob))
        exists = not answer.created
    else:
        new = cast("Object", codec.unpack(message.blob))
        exists = isinstance(message, Update)
    if exists:
        meta = new["metadata"]
        old = await site.get(row.key, meta.get("namespace") or "", meta["name"])
    _demand(site, user, row, new, old)
    if isinstance(message, Patch) and message.form != "apply":
        # What was looked at is what is written: with its revision, which refuses it when the object has changed since.
        return Update(packed(new), user=message.user, manager=message.manager, dry_run=message.dry_run)
    return message


def _demand(site: Site, user: User, row: Kind, new: Object, old: Object | None) -> None:
    index = site.rights.index
    assert index is not None, "roles are enforced here"
    unbound = row.kind.endswith("Binding") and not escalation.may_bind(index, user, new)
    if unbound and (gone := escalation.missing_role(index, new)) is not None:
        raise ApiError(Refused(404, "NotFound", gone))
    why = escalation.escalation(index, user, row.kind, new, old)
    if why is not None:
        raise ApiError(refusals.forbidden(row, str(new["metadata"].get("name") or ""), why))
