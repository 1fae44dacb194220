# SPDX-License-Identifier: Apache-2.0
"""Server-side apply requests: create an object that does not exist, otherwise change the fields that its applier
states.
"""

from __future__ import annotations

from msgspec.structs import replace

from pumice.cluster.api import refusals
from pumice.cluster.api.kinds import Kind
from pumice.cluster.api.registry import FoundObject, Registry
from pumice.cluster.api.verbs.changes import Changes
from pumice.cluster.api.verbs.creation import Creation
from pumice.cluster.api.verbs.ownership import applied, owners_in
from pumice.cluster.api.verbs.requests import RequestMoment, decoded
from pumice.core.messages.commands import Patch
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object, section


class Applying:
    """Applies configurations."""

    def __init__(self, registry: Registry, creation: Creation, changes: Changes) -> None:
        self._registry = registry
        self._creation = creation
        self._changes = changes

    def apply(self, request: Patch, moment: RequestMoment) -> Accepted | Refused:
        """Create or change the object; `created` in the answer tells which."""
        kind = self._registry.kinds.by_key(request.kind)
        if kind is None:
            return refusals.unknown_kind(request.kind)
        config = decoded(request.blob)
        if isinstance(config, Refused):
            return config
        if problem := self._misdirected(kind, config, request):
            return refusals.bad_request(problem)
        key = (kind.key, request.namespace if kind.namespaced else "", request.name)
        live = self._registry.tables.read(key)
        if live is None and request.subresource:
            return refusals.not_found(kind, request.name)
        # the client means an object that has gone, which must not come back under another uid
        if live is None and (uid := section(config, "metadata").get("uid")):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            return refusals.conflict(kind, request.name, why)
        new = applied(self._registry.kinds, kind, live, config, request, moment)
        if isinstance(new, Refused):
            return new
        if live is not None:
            return self._changes.write(FoundObject(key, kind, live), new, request, moment, owners=owners_in(new))
        answer = self._creation.create_object(new, moment, dry_run=request.dry_run, owners=owners_in(new))
        return replace(answer, created=True) if isinstance(answer, Accepted) else answer

    def _misdirected(self, kind: Kind, config: Object, request: Patch) -> str:
        """Return why the configuration does not match the requested object; its identity is filled in."""
        if not request.manager:
            return "PatchOptions.meta.k8s.io is invalid: fieldManager: Required value: is required for apply patch"
        found = self._registry.kinds.by_type(config.get("apiVersion"), config.get("kind"))
        if found is None or found.key != kind.key:
            return f"an apply patch is to state apiVersion and kind ({kind.api_version} {kind.kind})"
        config["apiVersion"] = kind.api_version
        meta = section(config, "metadata")
        if not isinstance(meta, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            return "metadata is to be a mapping"
        named = {"name": request.name} | ({"namespace": request.namespace} if kind.namespaced else {})
        for part, wanted in named.items():
            if meta.get(part, wanted) != wanted:
                return f"the {part} of the object ({meta[part]}) does not match the {part} on the URL ({wanted})"
        config["metadata"] = {**meta, **named}
        return ""
