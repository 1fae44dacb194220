"""The plugins' rules about victims the plain way: one candidate after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session

SHARE_DELTA = 0.000001
LEAST = 0.1


def gang(session: Session, _: Task, candidates: Sequence[Task]) -> list[Task]:
    """What a job has above its minimum."""
    left: dict[int, int] = {}
    victims: list[Task] = []
    for candidate in candidates:
        job = session.job_of(candidate)
        if job is None:
            continue
        has = left.setdefault(job.row, session.jobs.ready_count(job))
        if has > job.pod_group.min_member:
            left[job.row] = has - 1
            victims.append(candidate)
    return victims


def priority(session: Session, preemptor: Task, candidates: Sequence[Task]) -> list[Task]:
    """Strictly lower job priority; within one job strictly lower task priority."""
    own = session.job_of(preemptor)
    priorities = session.jobs.priority
    victims: list[Task] = []
    for candidate in candidates:
        job = session.job_of(candidate)
        if own is None or job is None:
            continue
        same = job.key == own.key
        lower = candidate.priority < preemptor.priority if same else priorities[job.row] < priorities[own.row]
        victims += [candidate] if lower else []
    return victims


def conformance(_: Session, __: Task, candidates: Sequence[Task]) -> list[Task]:
    """Nothing that Kubernetes itself needs."""
    critical = ("system-cluster-critical", "system-node-critical")
    return [c for c in candidates if c.priority_class not in critical and c.namespace != "kube-system"]


def drf(session: Session, preemptor: Task, candidates: Sequence[Task]) -> list[Task]:
    """Those whose job keeps a share that is not smaller than the preemptor's will be."""
    own, only_victims = session.job_row(preemptor), "drf-counts-victims-only" in session.config.pumice.fix
    if own < 0:
        return []
    columns = session.snapshot.jobs.allocated
    ours = share(session, changed(columns[:, own].tolist(), preemptor, 1.0))
    left: dict[int, list[float]] = {}
    victims: list[Task] = []
    for candidate in candidates:
        row = session.job_row(candidate)
        if row < 0:
            continue
        before = left[row] if row in left else columns[:, row].tolist()
        after = changed(before, candidate, -1.0)
        theirs = share(session, after)
        taken = ours < theirs or abs(ours - theirs) <= SHARE_DELTA
        left[row] = after if taken or not only_victims else before
        victims += [candidate] if taken else []
    return victims


def changed(amounts: list[float], task: Task, sign: float) -> list[float]:
    """The amounts with the task's request added or taken off."""
    result = list(amounts)
    for dimension, value in task.template.items:
        result[dimension] += sign * value
    return result


def share(session: Session, amounts: list[float]) -> float:
    """The dominant share of these amounts."""
    totals = {0: session.total.milli_cpu, 1: session.total.memory}
    totals |= {session.dims.index(name): amount for name, amount in (session.total.scalars or {}).items()}
    return max([0.0, *[amounts[dimension] / total for dimension, total in totals.items() if total >= LEAST]])


RULES = {"gang": gang, "priority": priority, "conformance": conformance, "drf": drf}
