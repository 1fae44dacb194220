"""Jobs that stand in the way of another one: those that hold the most of its missing amounts, or took them in this
cycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.belonging import owner_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

NAMED: Final = 3
"""Number of jobs that are named."""


def holders(session: Session, resources: Sequence[str], queues: Collection[str] | None = None) -> tuple[str, ...]:
    """Return the jobs that hold most of the first of these resources now, the largest first. `queues`: only jobs of
    these.
    """
    dimension = session.dims.names.index(resources[0]) if resources and resources[0] in session.dims.names else -1
    if dimension < 0:
        return ()
    held, found = session.snapshot.jobs.allocated[dimension], list[str]()
    order: list[int] = np.argsort(-held, kind="stable").tolist()
    for row in order:
        if held[row] <= 0 or len(found) == NAMED:
            break
        job = session.snapshot.jobs.handles[row]
        if job is not None and job.spec is not None and (queues is None or job.spec.queue in queues):
            found.append(name_of(job))
    return tuple(found)


def takers(session: Session) -> tuple[str, ...]:
    """Return the first jobs that got nodes in this cycle."""
    keys = dict.fromkeys(bind.job for bind in session.binds)
    known = {job.key: job for job in session.jobs.in_order if job.key in keys}
    return tuple(name_of(known[key]) if key in known else key for key in list(keys)[:NAMED])


def name_of(job: Job) -> str:
    """Return it as people know it: the job that its PodGroup was made for, else the PodGroup."""
    return job.key if job.spec is None else owner_of(job.spec.pod_group)
