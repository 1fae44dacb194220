"""Who comes in the place of pods that are gone: what their controllers make, of the objects around them only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pumice.cluster.controllers.job_keys import TASK_SPEC
from pumice.cluster.controllers.jobs.life import Action
from pumice.cluster.controllers.jobs.policies import POD_EVICTED, JobTrigger, resolve
from pumice.core.objects.metadata import Object, section, text_map
from pumice.questions.explain.advice.changes import Identity, identity_of
from pumice.questions.oneshot.between import object_key
from pumice.questions.oneshot.expand import expanded
from pumice.questions.oneshot.prepare import CONTROLLED, stored_as

AGAIN: Final = (Action.SYNC_JOB, Action.RESTART_POD)
OWNED: Final = ("Pod", "PodGroup")


def made_again(objects: Mapping[Identity, Object], gone: Iterable[Object], now: float) -> dict[Identity, Object]:
    """Pods that the owners of those `gone` make again, as of `now` (seconds since the epoch), and what changes with
    that. Others' pods are nothing to their controllers and are not looked at.
    """
    owners = {uid for pod in gone for uid in _controllers(pod)}
    if not owners:
        return {}
    near = [obj for obj in objects.values() if around(obj, owners)]
    known = {id(obj) for obj in near}
    return {identity_of(obj): obj for obj in expanded(near, now).objects if id(obj) not in known}


def with_policies(objects: Mapping[Identity, Object], gone: Iterable[Object]) -> set[str]:
    """The Volcano Jobs ("namespace/name") that do more about an eviction than to make the pod again."""
    owned = [(pod, uid) for pod in gone for uid in _controllers(pod)]
    uids = {uid for _, uid in owned}
    jobs = {uid: obj for obj in objects.values() if (uid := obj["metadata"].get("uid")) in uids and _is_job(obj)}
    found = set[str]()
    for pod, uid in owned:
        task = text_map(pod["metadata"].get("annotations")).get(TASK_SPEC, "")
        if uid in jobs and resolve(jobs[uid], JobTrigger(POD_EVICTED, task=task)).action not in AGAIN:
            found.add(object_key(jobs[uid]))
    return found


def _is_job(obj: Object) -> bool:
    return stored_as(obj) == "Job"


def around(obj: Object, owners: set[str]) -> bool:
    """Whether an object counts for what the owners of these uids make: they, what is theirs, and what is nobody's."""
    if obj["kind"] in OWNED:
        return not owners.isdisjoint(_controllers(obj))
    return stored_as(obj) not in CONTROLLED or section(obj, "metadata").get("uid") in owners


def _controllers(obj: Object) -> list[str]:
    references = section(obj, "metadata").get("ownerReferences") or ()
    return [str(each["uid"]) for each in references if each.get("controller")]
