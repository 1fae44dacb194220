"""Priority classes."""

from pumice.core.objects.metadata import Object
from tests.kit.objects import CREATED, metadata, without_empty


def priority_class(
    name: str, value: int, *, default: bool = False, preemption_policy: str | None = None, created: str = CREATED
) -> Object:
    """A priority class; with `default` it is the one that pods without a class get."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": metadata(name, created=created),
        "value": value,
    } | without_empty(globalDefault=default or None, preemptionPolicy=preemption_policy)
