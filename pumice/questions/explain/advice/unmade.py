"""A job that waits to be admitted and has no pods yet: the scene as if its controller had made them, for advice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pumice.core.objects.metadata import section
from pumice.questions.explain.advice.trial import around
from pumice.questions.oneshot.cycles import fill
from pumice.questions.oneshot.expand import expanded

if TYPE_CHECKING:
    from pumice.questions.explain.scene import Scene

REMARK: Final = "it has no pods before it is admitted: tried as if they were there"


def with_pods(scene: Scene, job: str) -> Scene | None:
    """That moment with the pods that the owner of the PodGroup "namespace/name" makes once it is admitted; None
    where there are pods, or nobody who would make some.
    """
    handle = scene.view.jobs.by_key[job]
    if handle.tasks or handle.spec is None:
        return None
    objects = scene.objects()
    group = next((each for each in objects if each["kind"] == "PodGroup" and _key(each) == job), None)
    owners = {str(each["uid"]) for each in section(group or {}, "metadata").get("ownerReferences") or ()}
    near = [each for each in objects if around(each, owners)]
    known = {id(each) for each in near}
    made = [each for each in expanded(near, scene.clock.now).objects if each["kind"] == "Pod" and id(each) not in known]
    if not made:
        return None
    grown = [*objects, *made]
    return replace(scene, view=fill(grown, scene.in_flight), recorded=None, objects=lambda: grown)


def _key(group: dict[str, object]) -> str:
    metadata = section(group, "metadata")
    return f"{metadata.get('namespace') or 'default'}/{metadata['name']}"
