"""What `pumice run` says at its end."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from core.messages.replies import Listing
from storage import codec

if TYPE_CHECKING:
    from actors.api.store import Store

Object = dict[str, Any]


def summary(store: Store, cycles: int, seconds: float) -> Object:
    """Pods by state, jobs by "namespace/name", and pods bound for each second."""
    pods: Counter[str] = Counter(dict.fromkeys(("bound", "running", "succeeded", "failed", "pending"), 0))
    jobs: dict[str, Object] = {}
    for job in _objects(store, "Job"):
        phase = ((job.get("status") or {}).get("state") or {}).get("phase", "")
        jobs[_key(job)] = {"phase": phase, "bound": 0, "pending": 0}
    for pod in _objects(store, "Pod"):
        bound = bool((pod.get("spec") or {}).get("nodeName"))
        phase = (pod.get("status") or {}).get("phase", "Pending").lower()
        pods["bound"] += bound
        if phase != "pending" or not bound:
            pods[phase] += 1
        owner = jobs.get(_job_of(pod))
        if owner is not None:
            owner["bound"] += bound
            owner["pending"] += not bound
    rate = pods["bound"] / seconds if seconds > 0 else 0.0
    return {"cycles": cycles, "pods": dict(pods), "jobs": jobs, "seconds": seconds, "pods_per_s": rate}


def _objects(store: Store, kind: str) -> list[Object]:
    listing = store.list(kind, None, None)
    return [codec.unpack(blob) for blob in listing.blobs] if isinstance(listing, Listing) else []


def _key(obj: Object) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


def _job_of(pod: Object) -> str:
    metadata: Object = pod["metadata"]
    name = (metadata.get("annotations") or {}).get("volcano.sh/job-name", "")
    return f"{metadata.get('namespace', '')}/{name}"
