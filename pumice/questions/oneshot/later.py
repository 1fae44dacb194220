"""Objects that controllers make only later: pods and Jobs that wait for others to run or to end, which takes time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count

from pumice.cluster.controllers.flows import job_name
from pumice.cluster.controllers.jobs.pods import pod_name
from pumice.cluster.controllers.stateful import first_ordinal
from pumice.core.objects.metadata import Object, section
from pumice.questions.measures.jobs import OVER

Identity = tuple[str, str, str]


def made_later(objects: Mapping[Identity, Object]) -> list[str]:
    """Return a sentence for each owner that has some of its children and gets others when these have come so far."""
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
    number = next(each for each in count(first) if ("Pod", meta["namespace"], f"{meta['name']}-{each}") not in objects)
    after = first + int(spec.get("replicas") or 0) - number - 1
    if number > first and after >= 0:
        more = f", and {after} more one after the other" if after else ""
        before, pod = f"{meta['name']}-{number - 1}", f"{meta['name']}-{number}"
        yield f"pod {pod} is made when {before} runs and is ready{more} (podManagementPolicy OrderedReady)"


def _of_job(owner: Object, objects: Mapping[Identity, Object]) -> Iterator[str]:
    """Yield the tasks that depend on others."""
    spec, meta = section(owner, "spec"), owner["metadata"]
    if section(section(owner, "status"), "state").get("phase") in OVER:
        return
    tasks = [task for task in spec.get("tasks") or () if task.get("name")]
    counts = {task["name"]: int(task.get("replicas") or 0) for task in tasks}
    there = {name for name in counts if ("Pod", meta["namespace"], pod_name(meta["name"], name, 0)) in objects}
    for task in tasks:
        depends = section(task, "dependsOn")
        targets: list[str] = depends.get("name") or []
        name = task["name"]
        if counts[name] and name not in there and there.intersection(targets):
            together = " or " if depends.get("iteration") == "any" else " and "
            before = together.join(targets)
            yield f"the {counts[name]} pods of task {name} are made when those of {before} run (dependsOn)"


def _of_flow(owner: Object, objects: Mapping[Identity, Object]) -> Iterator[str]:
    """Yield the Jobs that depend on others, and those whose template does not exist; a flow without a name owns
    none."""
    namespace = owner["metadata"]["namespace"]
    for each in section(owner, "spec").get("flows") or ():
        name = each.get("name") or ""
        if not name or ("Job", namespace, job_name(owner, name)) in objects:
            continue
        targets: list[str] = section(each, "dependsOn").get("targets") or []
        if ("JobTemplate", namespace, name) not in objects:
            yield f"JobTemplate {name} is not among the objects: no Job is made of it"
        elif targets:
            yield f"Job {job_name(owner, name)} is made when those of {' and '.join(targets)} are Completed (dependsOn)"
