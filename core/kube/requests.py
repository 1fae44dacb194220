"""What a pod asks for, as kube-scheduler's scorers count it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.objects.pod_template import pod_request

if TYPE_CHECKING:
    from core.objects.pod_template import PodTemplate
    from core.resources import Resource


def scored_request(template: PodTemplate) -> Resource:
    """The pod's request without pod-level resources.

    Volcano builds the scorers with that feature off, whatever its gate says.
    """
    if "resources" not in template.spec:
        return template.request
    return pod_request({name: value for name, value in template.spec.items() if name != "resources"})
