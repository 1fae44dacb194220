"""Kubernetes Event objects: what a controller has to say about an object."""

from __future__ import annotations

from typing import Any

from actors.controllers.job_status import timestamp

Object = dict[str, Any]


def event(about: Object, reason: str, message: str, now: float, *, warning: bool = False) -> Object:
    """An Event about an object; its name is generated."""
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
        "source": {"component": "vc-controller-manager"},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
