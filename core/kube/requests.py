"""What a pod asks for, as kube-scheduler's scorers count it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.core.objects.pod_template import nonzero_request, pod_request

if TYPE_CHECKING:
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.resources import Resource


def scored_request(template: PodTemplate) -> Resource:
    """The pod's request without pod-level resources.

    Volcano builds the scorers with that feature off, whatever its gate says.
    """
    if "resources" not in template.spec:
        return template.request
    return pod_request(_of_containers(template))


def scored_nonzero(template: PodTemplate) -> tuple[float, float]:
    """(milli-cores, bytes) as `nonzero_request`, without pod-level resources."""
    if "resources" not in template.spec:
        return template.nonzero_cpu, template.nonzero_memory
    return nonzero_request(_of_containers(template))


def _of_containers(template: PodTemplate) -> dict[str, Any]:
    return {name: value for name, value in template.spec.items() if name != "resources"}
