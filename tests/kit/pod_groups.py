"""Pod groups."""

from collections.abc import Mapping

from pumice.core.objects.metadata import Object
from tests.kit.objects import CREATED, metadata, without_empty


def pod_group(
    name: str,
    *,
    namespace: str = "default",
    queue: str = "default",
    min_member: int = 1,
    min_resources: Mapping[str, str] | None = None,
    min_task_member: Mapping[str, int] | None = None,
    priority_class: str | None = None,
    phase: str = "Pending",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    created: str = CREATED,
) -> Object:
    """A pod group, which is a job to the scheduler; `phase="Inqueue"` skips the enqueue action."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": metadata(name, namespace=namespace, labels=labels, annotations=annotations, created=created),
        "spec": {"minMember": min_member, "queue": queue}
        | without_empty(
            minResources=dict(min_resources or {}),
            minTaskMember=dict(min_task_member or {}),
            priorityClassName=priority_class,
        ),
        "status": {"phase": phase},
    }
