# SPDX-License-Identifier: Apache-2.0
"""Managers and the fields they own, kept where the object's maker has named a manager or it was applied server-side."""

from __future__ import annotations

from typing import Any, Final

from pumice.cluster.api import apply as serverside
from pumice.cluster.api.apply.owners import by_update, first_owners, resets, updated, write_managers
from pumice.cluster.api.kind_table import KindTable
from pumice.cluster.api.kinds import Kind
from pumice.cluster.api.schema.shapes import Shape, shape_of_kind
from pumice.cluster.api.verbs.requests import RequestMoment
from pumice.core.messages.commands import Patch
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object

MANAGED: Final = "managedFields"


def applied(
    kinds: KindTable, kind: Kind, live: Object | None, config: Object, request: Patch, moment: RequestMoment
) -> Object | Refused:
    """Return the object after a server-side apply, with its owners; conflicts are refused (409)."""
    shape = _shape(kinds, kind)
    reset = resets(request.subresource, drops_status=kind.drops_status)
    who = serverside.Applicant(moment.manager, kind.api_version, request.subresource, request.force, reset)
    if live is not None and MANAGED not in live["metadata"] and kind.status:
        # no manager is known to own the status, so the first applier meets no conflict
        stated = {part: value for part, value in live.items() if part != "status"}
        live = write_managers(live, first_owners(stated, kind.api_version, moment.text, shape))
    return serverside.apply(live, config, who, moment.text, shape)


def made(kinds: KindTable, kind: Kind, obj: Object, moment: RequestMoment) -> Object:
    """Return a new object with its maker as the owner of its fields, where the maker has named a manager."""
    if not moment.manager:
        return obj
    who = by_update(moment.manager, kind.api_version)
    reset = resets("", drops_status=kind.drops_status)
    managers = updated({}, obj, {}, who, moment.text, _shape(kinds, kind), reset)
    return write_managers(obj, managers)


def tracked(kinds: KindTable, kind: Kind, old: Object, new: Object, subresource: str, moment: RequestMoment) -> Object:
    """Return the new object with the owners of its fields after an update; `new` may hold a client's managedFields.

    An object that was made without a manager has none until it is applied.
    """
    if not old["metadata"].get(MANAGED):
        new["metadata"].pop(MANAGED, None)
        return new
    who = by_update(moment.manager or moment.user, kind.api_version, subresource)
    reset = resets(subresource, drops_status=kind.drops_status)
    return serverside.track_update(old, new, who, moment.text, _shape(kinds, kind), reset)


def owners_in(obj: Object) -> Any:
    """Return an object's managedFields as they stand, None without any."""
    return obj["metadata"].get(MANAGED)


def _shape(kinds: KindTable, kind: Kind) -> Shape:
    return shape_of_kind(kind.group, kind.version, kind.kind, kinds.schema(kind.key))
