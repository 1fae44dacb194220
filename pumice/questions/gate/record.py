# SPDX-License-Identifier: Apache-2.0
"""A record keeps the outcome of one workload under one policy: the facts for expectations, as plain data.

Times are seconds from the beginning, to the millisecond.
"""

from __future__ import annotations

from msgspec import Struct, field

from pumice.questions.measures.measures import MeasuresSummary


class RecordedJob(Struct, frozen=True, gc=False):
    """Records one job. None: not within the horizon. `labels` are the job's own. `is_refused`: the API did not take it;
    to its user it waits.
    """

    job: str
    queue: str = ""
    priority_class: str = ""
    labels: dict[str, str] = field(default_factory=dict[str, str])
    pods: int = 0
    submitted: float = 0.0
    started: float | None = None
    ended: float | None = None
    run_s: float | None = None
    evictions: int = 0
    lost_cpu_s: float = 0.0
    lost_gpu_s: float = 0.0
    is_refused: bool = False

    @property
    def name(self) -> str:
        """Return the name without the namespace."""
        return self.job.rpartition("/")[2]

    @property
    def namespace(self) -> str:
        """Return the namespace."""
        return self.job.rpartition("/")[0]

    def wait_s(self, horizon_s: float) -> float:
        """Return the wait of the job; without a start it waits until the horizon, and one that came after the
        horizon does not wait."""
        until = horizon_s if self.started is None else self.started
        return max(0.0, round(until - self.submitted, 3))


class RecordedEviction(Struct, frozen=True, gc=False):
    """Records the eviction of a pod by the scheduler, `by` the job that needed the room ("" for none).

    Priorities are those of the pods. `ran_s`: how long it had run. `younger`: running pods of its queue, of no higher
    priority and begun later, that stayed. `within_share`: whether its queue held no more than it deserved; None where
    no plugin says what it deserves.
    """

    at: float
    pod: str
    job: str
    queue: str
    priority: int
    action: str
    by: str = ""
    by_queue: str = ""
    by_priority: int | None = None
    ran_s: float = 0.0
    younger: int = 0
    within_share: bool | None = None


class RecordedBind(Struct, frozen=True, gc=False):
    """Records a pod that got a node. `task`: the role of the pod in its job."""

    at: float
    pod: str
    job: str
    task: str
    node: str


class RecordedLoop(Struct, frozen=True, gc=False):
    """Records jobs that evict each other again and again; of one job, a job that comes back only to be evicted."""

    jobs: tuple[str, ...]
    times: int


class RecordedNode(Struct, frozen=True, gc=False):
    """Records a node's labels, and its HyperNode at each tier."""

    labels: dict[str, str] = field(default_factory=dict[str, str])
    domains: dict[str, str] = field(default_factory=dict[str, str])


class RecordedUse(Struct, frozen=True, gc=False):
    """Records fractions: the allocated part of all amounts, and the fragmented part of the free amounts."""

    utilisation: float
    fragmentation: float


class RunRecord(Struct, frozen=True):
    """Records one run of `horizon_s` seconds. `stopped`: why it ended before its horizon, "" if it did not; `idle`:
    nothing more would have happened. `pending`: job -> code of the reason why it waits at the end. `refused`: objects
    that the API does not take, each with its words. `cycles`: cycles in which the scheduler decided something.
    `foreseen`: every job stood in the workload and was taken, so that another policy has as many of them. `summary`:
    the figures that `pumice measures` gives, where they are wanted. `failed`: answers that users' plugins failed to
    give.
    """

    horizon_s: float
    jobs: tuple[RecordedJob, ...] = ()
    evictions: tuple[RecordedEviction, ...] = ()
    binds: tuple[RecordedBind, ...] = ()
    loops: tuple[RecordedLoop, ...] = ()
    nodes: dict[str, RecordedNode] = field(default_factory=dict[str, RecordedNode])
    uses: dict[str, RecordedUse] = field(default_factory=dict[str, RecordedUse])
    pending: dict[str, str] = field(default_factory=dict[str, str])
    refused: tuple[str, ...] = ()
    idle: bool = False
    stopped: str = ""
    cycles: int = 0
    foreseen: bool = False
    summary: MeasuresSummary | None = None
    failed: int = 0

    @property
    def makespan_s(self) -> float:
        """Return the time from the first submission to the last end, 0 without one."""
        ends = [job.ended for job in self.jobs if job.ended is not None]
        return round(max(ends) - min(job.submitted for job in self.jobs), 3) if ends else 0.0
