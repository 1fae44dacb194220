"""What controllers make later only: pods and Jobs that wait for others to run or to end, which takes time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from actors.controllers.flows.rule import job_name
from actors.controllers.jobs.pods import pod_name
from actors.controllers.stateful.pods import first_ordinal
from core.objects.metadata import section
from pumice.measures.jobs import OVER

Object = dict[str, Any]
Identity = tuple[str, str, str]


def made_later(objects: Mapping[Identity, Object]) -> list[str]:
    """A sentence for each owner that has some of its children and gets others when these have come so far."""
    finders = {"StatefulSet": _of_set, "Job": _of_job, "JobFlow": _of_flow}
    told = list[str]()
    for (kind, namespace, name), owner in objects.items():
        finder = finders.get(kind)
        told += [f"{kind} {namespace}/{name}: {said}" for said in (finder(owner, objects) if finder else ())]
    return told


def _of_set(owner: Object, objects: Mapping[Identity, Object]) -> Iterator[str]:
    """One pod after the other, unless they may come together."""
    spec, meta = section(owner, "spec"), owner["metadata"]
    if spec.get("podManagementPolicy") == "Parallel":
        return
    first = first_ordinal(owner)
    names = [f"{meta['name']}-{number}" for number in range(first, first + int(spec.get("replicas") or 0))]
    missing = [place for place, name in enumerate(names) if ("Pod", meta["namespace"], name) not in objects]
    if missing and missing[0] > 0:
        before, pod = names[missing[0] - 1], names[missing[0]]
        more = f", and {len(missing) - 1} more one after the other" if len(missing) > 1 else ""
        yield f"pod {pod} is made when {before} runs and is ready{more} (podManagementPolicy OrderedReady)"


def _of_job(owner: Object, objects: Mapping[Identity, Object]) -> Iterator[str]:
    """The tasks that depend on others."""
    spec, meta = section(owner, "spec"), owner["metadata"]
    if section(section(owner, "status"), "state").get("phase") in OVER:
        return
    counts = {task["name"]: int(task.get("replicas") or 0) for task in spec.get("tasks") or ()}
    there = {name for name in counts if ("Pod", meta["namespace"], pod_name(meta["name"], name, 0)) in objects}
    for task in spec.get("tasks") or ():
        depends = section(task, "dependsOn")
        targets: list[str] = depends.get("name") or []
        name = task["name"]
        if counts[name] and name not in there and there.intersection(targets):
            together = " or " if depends.get("iteration") == "any" else " and "
            before = together.join(targets)
            yield f"the {counts[name]} pods of task {name} are made when those of {before} run (dependsOn)"


def _of_flow(owner: Object, objects: Mapping[Identity, Object]) -> Iterator[str]:
    """The Jobs that depend on others, and those whose template is not there."""
    namespace = owner["metadata"]["namespace"]
    for each in section(owner, "spec").get("flows") or ():
        name = each["name"]
        if ("Job", namespace, job_name(owner, name)) in objects:
            continue
        targets: list[str] = section(each, "dependsOn").get("targets") or []
        if ("JobTemplate", namespace, name) not in objects:
            yield f"JobTemplate {name} is not among the objects: no Job is made of it"
        elif targets:
            yield f"Job {job_name(owner, name)} is made when those of {' and '.join(targets)} are Completed (dependsOn)"
