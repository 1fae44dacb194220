"""Jobs: a gang as the scheduler sees it, and a Volcano Job as its author writes it."""

from collections.abc import Sequence
from typing import Any

from pumice.core.objects.metadata import Object
from tests.kit.objects import CREATED, resources, without_empty
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod


def gang(
    name: str,
    *,
    pods: int,
    min_member: int | None = None,
    namespace: str = "default",
    queue: str = "default",
    phase: str = "Pending",
    priority_class: str | None = None,
    nodes: Sequence[str] = (),
    created: str = CREATED,
    **each: Any,
) -> list[Object]:
    """A pod group and its pods, `name-0`, `name-1` …, in that order; all are needed unless `min_member` says so.

    The first pods run on `nodes`, as many as are named. The other arguments are those of `pod`.
    """
    needed = pods if min_member is None else min_member
    group = pod_group(
        name,
        namespace=namespace,
        queue=queue,
        min_member=needed,
        priority_class=priority_class,
        phase=phase,
        created=created,
    )
    placed = [*nodes, *[None] * pods][:pods]
    shared: Object = {
        "namespace": namespace,
        "group": name,
        "priority_class": priority_class,
        "created": created,
        **each,
    }
    return [group, *(pod(f"{name}-{index}", node=where, **shared) for index, where in enumerate(placed))]


def job_task(
    name: str = "worker",
    *,
    replicas: int = 1,
    min_available: int | None = None,
    cpu: str | None = "1",
    memory: str | None = "1Gi",
    gpus: int = 0,
    policies: Sequence[Object] = (),
    depends_on: Sequence[str] = (),
    duration: str | None = None,
    restart_policy: str = "OnFailure",
) -> Object:
    """One task of a Volcano Job: that many equal pods of one container."""
    container = {"name": "main", "image": "work"} | without_empty(resources=_requests(cpu, memory, gpus))
    marks = {"pumice.dev/duration": duration} if duration else {}
    return {
        "name": name,
        "replicas": replicas,
        "template": without_empty(metadata=without_empty(annotations=marks))
        | {"spec": {"containers": [container], "restartPolicy": restart_policy, "terminationGracePeriodSeconds": 1}},
    } | without_empty(
        minAvailable=min_available,
        policies=list(policies),
        dependsOn={"name": list(depends_on)} if depends_on else None,
    )


def vcjob(
    name: str,
    *tasks: Object,
    namespace: str = "default",
    queue: str = "default",
    min_available: int | None = None,
    priority_class: str | None = None,
    policies: Sequence[Object] = (),
    max_retry: int | None = None,
    ttl_s: int | None = None,
    scheduler: str = "volcano",
) -> Object:
    """A Volcano Job as in a manifest, without status or uid; one task of one pod when none is given.

    All replicas are needed unless `min_available` says so; `ttl_s` is the time it is kept after it has ended.
    """
    listed = list(tasks) or [job_task()]
    needed = sum(int(task["replicas"]) for task in listed) if min_available is None else min_available
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedulerName": scheduler, "minAvailable": needed, "queue": queue, "tasks": listed}
        | without_empty(
            priorityClassName=priority_class,
            policies=list(policies),
            maxRetry=max_retry,
            ttlSecondsAfterFinished=ttl_s,
        ),
    }


def _requests(cpu: str | None, memory: str | None, gpus: int) -> Object | None:
    requests = resources(cpu, memory, gpus, None)
    return {"requests": requests} if requests else None
