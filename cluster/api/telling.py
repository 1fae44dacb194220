"""What a request is about, for people."""

from __future__ import annotations

from typing import Any

from pumice.cluster.api.fields import is_mapping
from pumice.cluster.api.verbs.decoding import decoded
from pumice.core.messages import commands
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object


def told_of(request: commands.StoreRequest) -> str:
    """Which object, as `Pod default/a at the api server`; of one that is not known by a name only where it went."""
    about = [str(getattr(request, part, "")) for part in ("kind", "namespace", "name")]
    if isinstance(request, commands.Create | commands.LoadObject | commands.Update):
        obj = decoded(request.blob)
        about = [] if isinstance(obj, Refused) else _named(obj)
    kind, *named = about or [""]
    return " ".join(part for part in (kind, "/".join(part for part in named if part), "at the api server") if part)


def _named(obj: Object) -> list[str]:
    meta: Any = obj.get("metadata")
    found = [obj.get("kind"), *([meta.get("namespace"), meta.get("name")] if is_mapping(meta) else [])]
    return [each if isinstance(each, str) else "" for each in found]
