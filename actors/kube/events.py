"""Kubernetes Event objects: what somebody has to say about an object."""

from __future__ import annotations

from typing import Any

from actors.kube.times import timestamp

Object = dict[str, Any]


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
