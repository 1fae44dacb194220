"""What `pumice run` says at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.messages.replies import Listing
from core.objects.metadata import Object, section
from storage import codec

if TYPE_CHECKING:
    from actors.api.store import Store


def summary(store: Store, cycles: int, seconds: float) -> Object:
    """Pods by state, jobs by "namespace/name", and pods bound for each second."""
    pods = dict.fromkeys(("bound", "running", "succeeded", "failed", "pending"), 0)
    jobs: dict[str, Object] = {
        _key(job): {"phase": _job_phase(job), "bound": 0, "pending": 0} for job in _objects(store, "Job")
    }
    for pod in _objects(store, "Pod"):
        bound = bool(section(pod, "spec").get("nodeName"))
        phase = str(section(pod, "status").get("phase") or "Pending").lower()
        pods["bound"] += bound
        if phase in pods and (phase != "pending" or not bound):
            pods[phase] += 1
        owner = jobs.get(_job_of(pod))
        if owner is not None:
            owner["bound" if bound else "pending"] += 1
    rate = pods["bound"] / seconds if seconds > 0 else 0.0
    return {"cycles": cycles, "pods": pods, "jobs": jobs, "seconds": seconds, "pods_per_s": rate}


def _objects(store: Store, kind: str) -> list[Object]:
    listing = store.list(kind)
    return [codec.unpack(blob) for blob in listing.blobs] if isinstance(listing, Listing) else []


def _key(obj: Object) -> str:
    metadata = section(obj, "metadata")
    return f"{metadata.get('namespace') or ''}/{metadata.get('name')}"


def _job_phase(job: Object) -> str:
    return str(section(section(job, "status"), "state").get("phase") or "")


def _job_of(pod: Object) -> str:
    metadata = section(pod, "metadata")
    name = section(metadata, "annotations").get("volcano.sh/job-name") or ""
    return f"{metadata.get('namespace') or ''}/{name}"
