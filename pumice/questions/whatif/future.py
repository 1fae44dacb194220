# SPDX-License-Identifier: Apache-2.0
"""Result of a future, as plain data. Times are in seconds from its beginning, to the millisecond."""

from __future__ import annotations

from dataclasses import dataclass, field

from pumice.questions.adviser.reasons import WaitReason
from pumice.questions.measures.amounts import ClusterFigures
from pumice.questions.measures.figures import QueueFigures


@dataclass(frozen=True, slots=True)
class JobFuture:
    """One job in a future. `start_s`: when as many pods as its minimum were on nodes (0: at the beginning);
    `all_placed_s`: when all its pods were, or as many as a Volcano Job requests, except those that had succeeded;
    `end_s`: when all its pods had ended, of a Volcano Job those that it will not make again. None: not within the
    horizon. `known`: whether every pod of it has a duration. `gone_s`: when it was deleted before it had ended, None:
    not. `evictions`: pods that had to go for others, or with their node; `killed`: further pods that a restart, an
    abort or the failure of the job ended, or that were made again; `restarts` of the job; `lost_pod_s`: how long all
    these, and those that failed, had run, the time before this future included.
    """

    queue: str = ""
    pods: int = 0
    bound: int = 0
    start_s: float | None = None
    all_placed_s: float | None = None
    end_s: float | None = None
    evictions: int = 0
    known: bool = True
    gone_s: float | None = None
    killed: int = 0
    restarts: int = 0
    lost_pod_s: float = 0.0


@dataclass(frozen=True, slots=True)
class EvictedPod:
    """One evicted pod. `pod`, `job` (its own) and `by` (the job that needed the room, "" for none) are
    "namespace/name"; `preemptor` is the pod, or the PodGroup, that gets the room. `returns_s`: when the pod, or one in
    its place, was on a node again; `ran_s`: how long it had run until it ended, None: it never ran, or has not ended
    within the horizon. `votes`: of the plugins, where that was requested.
    """

    at_s: float
    pod: str
    job: str
    by: str
    preemptor: str
    action: str
    reason: str
    node: str
    returns_s: float | None = None
    ran_s: float | None = None
    votes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PendingJob:
    """Job that waits at the end: `code` is a stable word, `message` a sentence; `pods` that wait or are to come.
    `wait`: the whole reason, null where the cycle gives none.
    """

    pods: int
    code: str
    message: str
    wait: WaitReason | None = None


@dataclass(frozen=True, slots=True)
class Future:
    """One future of `horizon_s` seconds. `refused`: objects that the api refused, with its message; `denied`: requests
    that it refused.

    `unknown_running`, `unknown_waiting`: pods that do not say how long they run; `supposed_s`: so long it was
    supposed that they do, 0: beyond the horizon. `supposed`: what was not asked of processes outside, and what else
    a future leaves out, in sentences.
    """

    horizon_s: float
    cycles: int
    jobs: dict[str, JobFuture] = field(default_factory=dict[str, JobFuture])
    evictions: tuple[EvictedPod, ...] = ()
    pending: dict[str, PendingJob] = field(default_factory=dict[str, PendingJob])
    queues: dict[str, QueueFigures] = field(default_factory=dict[str, QueueFigures])
    resources: dict[str, ClusterFigures] = field(default_factory=dict[str, ClusterFigures])
    placements: dict[str, str] = field(default_factory=dict[str, str])
    refused: tuple[tuple[str, str], ...] = ()
    denied: tuple[tuple[str, str], ...] = ()
    unknown_running: int = 0
    unknown_waiting: int = 0
    supposed: tuple[str, ...] = ()
    supposed_s: float = 0.0
