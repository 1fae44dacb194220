"""Kubernetes Event objects: what somebody has to say about an object."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from pumice.cluster.kube.conditions import timestamp
from pumice.core.messages.commands import Create, Patch
from pumice.core.objects.metadata import Object
from pumice.storage.codec import pack

KEPT: Final = 4096
"""Sayings that are remembered to be counted."""


class Sayings:
    """Says things about objects: what is said again is counted in the first Event (as client-go has it)."""

    def __init__(self, user: str) -> None:
        self._user = user
        self._counts: dict[tuple[str, str], int] = {}

    def say(
        self, about: Object, reason: str, message: str, now: float, *, source: str, warning: bool = False
    ) -> Create | Patch:
        """What to ask of the api for it."""
        said = event(about, reason, message, now, source=source, warning=warning)
        mark = blake2b(f"{about['metadata']['uid']} {reason} {message}".encode(), digest_size=8).hexdigest()
        place = said["metadata"]["namespace"], f"{about['metadata']['name']}.{mark}"
        count = self._counts[place] = self._counts.pop(place, 0) + 1
        if len(self._counts) > KEPT:
            del self._counts[next(iter(self._counts))]
        if count == 1:
            said["metadata"] = {"namespace": place[0], "name": place[1]}
            return Create(pack(said), user=self._user)
        return Patch("Event", *place, pack({"count": count, "lastTimestamp": said["lastTimestamp"]}), user=self._user)


def event(about: Object, reason: str, message: str, now: float, *, source: str, warning: bool = False) -> Object:
    """An Event about an object, said by the component `source`; its name is generated."""
    meta, at = about["metadata"], timestamp(now)
    reference = {
        "apiVersion": about["apiVersion"],
        "kind": about["kind"],
        "name": meta["name"],
        "namespace": meta.get("namespace", ""),
        "uid": meta["uid"],
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{meta['name']}.", "namespace": meta.get("namespace") or "default"},
        "involvedObject": reference,
        "reason": reason,
        "message": message,
        "type": "Warning" if warning else "Normal",
        "source": {"component": source},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
