"""A small journal's records: a job of one pod, a cycle that binds it, the outcome, and something unrelated."""

from __future__ import annotations

from typing import Any

from pumice.core.messages.decisions import Bind, Evict
from pumice.core.messages.events import ActorCrashed, Bound, ConfigLoaded, CycleRecord, Mutation
from pumice.storage import codec
from pumice.storage.journal import ACTOR, API, CONFIG, CYCLE, DECISION, OUTCOME, Record


def mutation(kind: str, name: str, what: str = "ADDED", **obj: Any) -> Record:
    """An object in namespace a came, changed or went."""
    body = {"kind": kind, "metadata": {"name": name, "namespace": "a", **obj.pop("metadata", {})}, **obj}
    return Record(API, codec.encode(Mutation(1, what, kind, "a", name, codec.pack(body))), at=1.0)


def cycle(number: int, decisions: int) -> Record:
    """A cycle that decided so many times."""
    return Record(CYCLE, codec.encode(CycleRecord(number, 2.0, 0, 7, 9, "conf", f"digest{number}", decisions)), at=2.0)


def owned_by(job: str) -> dict[str, Any]:
    """Metadata of a part of a job."""
    return {"ownerReferences": [{"kind": "Job", "name": job}], "annotations": {"volcano.sh/job-name": job}}


RECORDS = [
    Record(CONFIG, codec.encode(ConfigLoaded("conf", "actions: x", "default")), at=0.5),  # 1
    mutation("Job", "train", status={"state": {"phase": "Pending"}}),  # 2
    mutation("PodGroup", "train-1", metadata=owned_by("train"), status={"phase": "Pending"}),  # 3
    mutation("Pod", "train-worker-0", metadata=owned_by("train"), status={"phase": "Pending"}),  # 4
    mutation("Pod", "other", status={"phase": "Pending"}),  # 5
    cycle(1, 1),  # 6
    Record(DECISION, codec.encode(Bind("a", "train-worker-0", "u", "n0", "a/train-1")), at=2.0),  # 7
    Record(OUTCOME, codec.encode(Bound("1/u", 7, "a", "train-worker-0", "u", "n0", 8)), cause=7, at=2.1),  # 8
    mutation("Pod", "train-worker-0", "MODIFIED", metadata=owned_by("train"), spec={"nodeName": "n0"}),  # 9
    mutation("Pod", "train-worker-0", "MODIFIED", metadata=owned_by("train"), spec={"nodeName": "n0"}),  # 10
    cycle(2, 1),  # 11
    Record(
        DECISION,
        codec.encode(Evict("a", "train-worker-0", "u", "n0", "a/train-1", "preempt", "a/other", "preempt", -10.0)),
        at=3.0,
    ),  # 12
    Record(ACTOR, codec.encode(ActorCrashed("cache", 3.0, "boom")), at=3.0),  # 13
]
