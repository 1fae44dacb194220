"""What comes out of another cluster goes on here."""

from __future__ import annotations

from collections.abc import Sequence

from pumice.cluster.kubelets.pod_runs import DURATION
from pumice.core.objects.metadata import Object, section, text_map


def still_running(objects: Sequence[Object]) -> list[Object]:
    """Pods that were running run for ever, unless they say for how long: how long they have left nobody knows."""
    return [_for_ever(obj) if _was_running(obj) else obj for obj in objects]


def _was_running(obj: Object) -> bool:
    if obj["kind"] != "Pod" or section(obj, "status").get("phase") != "Running":
        return False
    return DURATION not in text_map(obj["metadata"].get("annotations"))


def _for_ever(pod: Object) -> Object:
    annotations = {**text_map(pod["metadata"].get("annotations")), DURATION: "0"}
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}
