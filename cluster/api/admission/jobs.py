# SPDX-License-Identifier: Apache-2.0
"""Volcano Jobs: defaults and rules of Volcano's webhooks (`webhooks/admission/jobs`); single fields: its CRD."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.api.admission.pod_groups import topology_problems
from pumice.cluster.api.admission.pod_spec import pod_spec_problems
from pumice.cluster.api.admission.queues import state_problems
from pumice.cluster.api.admission.rules import MOST_PODS, Lookup, run_problems
from pumice.cluster.api.names import qualified_name_problem, subdomain_problem
from pumice.cluster.api.refusals import Cause, duplicate, forbidden_field, invalid_value, missing, required, unsupported
from pumice.cluster.kube.go_flags import parsed_flags
from pumice.core.objects.metadata import Object, annotations_of, rows, section
from pumice.core.quantity import quantity_of

# --- Life cycle policies of Jobs and tasks
# Which events and actions there are, and which pairs make sense.

ANY_EVENT: Final = "*"
EVENTS: Final = (
    ANY_EVENT,
    "PodFailed",
    "PodEvicted",
    "PodPending",
    "Unknown",
    "TaskCompleted",
    "TaskFailed",
    "JobUpdated",
)
"""Events a policy may name; the rest is Volcano's own business."""

ACTIONS: Final = (
    "AbortJob",
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
)
"""Actions a policy may ask for."""


def policy_problems(policies: list[Object], path: str) -> list[Cause]:
    """Return the problems of policies: an event or an exit code each, each only once, and none beside the event `*`."""
    found: list[Cause] = []
    events: set[str] = set()
    codes: set[int] = set()
    for index, policy in enumerate(policies):
        where = f"{path}[{index}]"
        named, code = _events(policy), policy.get("exitCode")
        if named and code is not None:
            found.append(forbidden_field(where, "must not specify event and exitCode simultaneously"))
        elif named:
            found += _event_problems(policy, named, where, events)
        elif code is None:
            found.append(required(where, "either event and exitCode should be specified"))
        else:
            found += _code_problems(code, where, codes)
            found += _action_problems(policy, where)
    if ANY_EVENT in events and len(events) > 1:
        found.append(forbidden_field(path, "if there's * here, no other policy should be here"))
    return found


def _events(policy: Object) -> list[str]:
    named = list(policy.get("events") or ())
    # both fields may name an event, and the same one counts once (Volcano's `getEventList`)
    if policy.get("event"):
        named.append(policy["event"])
    return list(dict.fromkeys(named))


def _event_problems(policy: Object, named: list[str], where: str, seen: set[str]) -> list[Cause]:
    found: list[Cause] = []
    for event in named:
        if event not in EVENTS:
            found.append(invalid_value(f"{where}.event", event, f"invalid policy event: {_known(EVENTS)}"))
        elif event in seen:
            found.append(duplicate(f"{where}.event", event, "duplicate event across different policies"))
        seen.add(event)
    return found + _action_problems(policy, where)


def _action_problems(policy: Object, where: str) -> list[Cause]:
    action = policy.get("action")
    if action in ACTIONS:
        return []
    return [invalid_value(f"{where}.action", action, f"invalid policy action: {_known(ACTIONS)}")]


def _known(names: Sequence[str]) -> str:
    return f"supported values: {', '.join(names)}"


def _code_problems(code: int, where: str, seen: set[int]) -> list[Cause]:
    if code == 0:
        return [invalid_value(f"{where}.exitCode", code, "0 is not a valid error code")]
    if code in seen:
        return [duplicate(f"{where}.exitCode", code, f"duplicate exitCode {code}")]
    seen.add(code)
    return []


PLUGINS: Final = ("env", "svc", "ssh", "tensorflow", "mpi", "pytorch", "hcclrank", "ray")
_NEED_SERVICE: Final = frozenset(("tensorflow", "mpi", "pytorch", "ray"))
_MAX_RETRY: Final = 3
_SCALABLE: Final = ("minAvailable", "priorityClassName", "tasks")


def default(job: Object, _lookup: Lookup) -> None:
    """Fill in queue, scheduler, retries, task names and minimums, and the plugins that other plugins need."""
    spec: Object = job.setdefault("spec", {})
    spec["queue"] = spec.get("queue") or "default"
    spec["schedulerName"] = spec.get("schedulerName") or "volcano"
    # 0 counts as absent here: Go's webhook cannot tell them apart
    spec["maxRetry"] = spec.get("maxRetry") or _MAX_RETRY
    for index, task in enumerate(rows(spec, "tasks")):
        _default_task(index, task)
    if not spec.get("minAvailable"):
        spec["minAvailable"] = sum(task["minAvailable"] for task in rows(spec, "tasks"))
    plugins = section(spec, "plugins")
    # these find their peers by host names, which svc provides
    if plugins.keys() & _NEED_SERVICE:
        plugins.setdefault("svc", [])
    # mpirun starts its workers over ssh
    if "mpi" in plugins:
        plugins.setdefault("ssh", [])


def _default_task(index: int, task: Object) -> None:
    task["name"] = task.get("name") or f"default{index}"
    task.setdefault("replicas", 0)
    partition = section(task, "partitionPolicy")
    if "minAvailable" not in task:
        least = (partition.get("minPartitions") or 0) * (partition.get("partitionSize") or 0)
        task["minAvailable"] = least or task["replicas"]
    task["maxRetry"] = task.get("maxRetry") or _MAX_RETRY
    pod = section(section(task, "template"), "spec")
    # on the node's network a pod would ask the node's DNS, which does not know the other pods of the Job
    if pod.get("hostNetwork") and not pod.get("dnsPolicy"):
        pod["dnsPolicy"] = "ClusterFirstWithHostNet"


def validate(job: Object, lookup: Lookup) -> list[Cause]:
    """Return all problems of a new Job, by Volcano's rules in their order."""
    spec = section(job, "spec")
    tasks = rows(spec, "tasks")
    if not tasks:
        return [required("spec.tasks", "No task specified in job spec")]
    if (master := _missing_master(spec)) is not None:
        return [invalid_value("spec.plugins[mpi]", master, "the specified mpi master task was not found")]
    name: str = job["metadata"]["name"]
    found = topology_problems(spec, "spec.networkTopology")
    if problem := qualified_name_problem(name):
        found.append(invalid_value("metadata.name", name, problem))
    seen: set[str] = set()
    for index, task in enumerate(tasks):
        found += _task_problems(name, index, task, seen)
    found += _number_problems(spec) + _dependency_problems(tasks)
    found += policy_problems(rows(spec, "policies"), "spec.policies")
    unknown = [plugin for plugin in section(spec, "plugins") if plugin not in PLUGINS]
    for plugin in unknown:
        why = f"unable to find job plugin: {plugin} (known are {', '.join(PLUGINS)})"
        found.append(invalid_value(f"spec.plugins[{plugin}]", plugin, why))
    found += run_problems(annotations_of(job), "metadata")
    return found + _volume_problems(spec) + _queue_problems(spec["queue"], lookup)


def _missing_master(spec: Object) -> str | None:
    """Return the name of the task that plugin mpi takes for its master, when no task has it."""
    plugins = section(spec, "plugins")
    if "mpi" not in plugins:
        return None
    master = str(parsed_flags(plugins["mpi"] or (), {"master": "master", "worker": "worker", "port": 22})["master"])
    return None if any(task["name"] == master for task in rows(spec, "tasks")) else master


def validate_update(old: Object, new: Object, _lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed Job: only minAvailable, priorityClassName and the tasks' replicas and
    minAvailable may change.
    """
    spec, before = section(new, "spec"), section(old, "spec")
    # labels and annotations may change even where the stored spec would not be valid today
    if spec == before:
        return []
    tasks = rows(spec, "tasks")
    # a client that applies a Job again writes its tasks as before, without what was filled in
    for index, task in enumerate(tasks):
        _default_task(index, task)
    if len(tasks) != len(rows(before, "tasks")):
        return [forbidden_field("spec.tasks", "job updates may not add or remove tasks")]
    if _frozen(spec) != _frozen(before):
        why = "job updates may not change fields other than minAvailable, priorityClassName and tasks[*].replicas"
        return [forbidden_field("spec", why)]
    found = _number_problems(spec)
    for index, task in enumerate(tasks):
        found += _replica_problems(task, f"spec.tasks[{index}]")
        found += _partition_problems(task, f"spec.tasks[{index}].partitionPolicy")
    return found


def _frozen(spec: Object) -> Object:
    kept = {name: value for name, value in spec.items() if name not in _SCALABLE}
    kept["tasks"] = [
        {name: value for name, value in task.items() if name not in ("replicas", "minAvailable")}
        for task in rows(spec, "tasks")
    ]
    # the controller fills in the claims it made
    kept["volumes"] = [
        {name: value for name, value in volume.items() if name != "volumeClaimName" or not volume.get("volumeClaim")}
        for volume in rows(spec, "volumes")
    ]
    return kept


def _number_problems(spec: Object) -> list[Cause]:
    found: list[Cause] = []
    total = sum(task["replicas"] for task in rows(spec, "tasks"))
    if total > MOST_PODS:
        found.append(invalid_value("spec.tasks", total, f"must not have more than {MOST_PODS} replicas in all"))
    if (least := spec.get("minAvailable") or 0) > total:
        why = f"job 'minAvailable' should not be greater than total replicas in tasks ({total})"
        found.append(invalid_value("spec.minAvailable", least, why))
    return found


def _task_problems(job: str, index: int, task: Object, seen: set[str]) -> list[Cause]:
    path, name = f"spec.tasks[{index}]", str(task["name"])
    if name in seen:
        return [duplicate(f"{path}.name", name, "duplicated task name")]
    seen.add(name)
    found: list[Cause] = []
    # By the number of the task, not of a pod: names of later pods may be longer (validateJobCreate).
    if problem := qualified_name_problem(f"{job}-{name}-{index}"):
        found.append(invalid_value(f"{path}.name", name, f"its pods could not be named: {problem}"))
    found += _replica_problems(task, path)
    found += policy_problems(rows(task, "policies"), f"{path}.policies")
    found += _partition_problems(task, f"{path}.partitionPolicy")
    template = section(task, "template")
    found += run_problems(annotations_of(template), f"{path}.template.metadata")
    found += pod_spec_problems(section(template, "spec"), f"{path}.template.spec")
    return found or _numa_problems(task, path)


def _numa_problems(task: Object, path: str) -> list[Cause]:
    """Return a problem where a task with a topologyPolicy has a container that asks for no whole CPUs."""
    policy: str = task.get("topologyPolicy") or "none"
    if policy == "none":
        return []
    pod = section(section(task, "template"), "spec")
    for index, container in enumerate([*rows(pod, "containers"), *rows(pod, "initContainers")]):
        resources = section(container, "resources")
        asked = section(resources, "requests") or section(resources, "limits")
        cpu = quantity_of(asked.get("cpu") or "0")
        if not cpu.value() or cpu.value() * 1000 != cpu.milli_value():
            why = f"the cpu request isn't an integer in container[{index}]"
            return [invalid_value(f"{path}.topologyPolicy", policy, why)]
    return []


def _replica_problems(task: Object, path: str) -> list[Cause]:
    found: list[Cause] = []
    replicas, least = task["replicas"], task.get("minAvailable") or 0
    if least > replicas:
        why = f"'minAvailable' is greater than 'replicas' in task: {task['name']} ({replicas})"
        found.append(invalid_value(f"{path}.minAvailable", least, why))
    return found


def _partition_problems(task: Object, path: str) -> list[Cause]:
    policy: Object | None = task.get("partitionPolicy")
    if policy is None:
        return []
    found = topology_problems(policy, f"{path}.networkTopology")
    size = policy["partitionSize"]
    if task["replicas"] != policy["totalPartitions"] * size:
        why = f"'replicas' ({task['replicas']}) is not equal to totalPartitions*partitionSize"
        found.append(invalid_value(f"{path}.totalPartitions", policy["totalPartitions"], why))
    least = policy.get("minPartitions") or 0
    if least > 0 and least * size != task["minAvailable"]:
        why = f"'minAvailable' ({task['minAvailable']}) is not equal to minPartitions*partitionSize"
        found.append(invalid_value(f"{path}.minPartitions", least, why))
    return found


def _dependency_problems(tasks: list[Object]) -> list[Cause]:
    """Return the problems of dependsOn: it must name tasks of this Job and contain no cycle."""
    before: dict[str, tuple[str, ...]] = {
        task["name"]: tuple(section(task, "dependsOn").get("name") or ()) for task in tasks
    }
    found: list[Cause] = []
    for index, task in enumerate(tasks):
        iteration = section(task, "dependsOn").get("iteration") or "any"
        if iteration not in ("any", "all"):
            found.append(unsupported(f"spec.tasks[{index}].dependsOn.iteration", iteration, ("any", "all")))
        where = f"spec.tasks[{index}].dependsOn.name"
        strangers = [name for name in before[task["name"]] if name not in before]
        found += [missing(where, name, "no task of this job has that name") for name in strangers]
    left = dict(before)
    # tasks whose needs are met are taken away; what is left stands in a circle, or behind one
    while ready := [name for name, needs in left.items() if not any(need in left for need in needs)]:
        for name in ready:
            del left[name]
    if left:
        why = "job has dependencies between tasks, but doesn't form a directed acyclic graph (DAG)"
        found.append(invalid_value("spec.tasks", ", ".join(left), why))
    return found


def _volume_problems(spec: Object) -> list[Cause]:
    found: list[Cause] = []
    paths: set[str] = set()
    for index, volume in enumerate(rows(spec, "volumes")):
        where = f"spec.volumes[{index}]"
        mount: str = volume["mountPath"]
        if mount in paths:
            found.append(duplicate(f"{where}.mountPath", mount, f"duplicated mountPath: {mount}"))
        paths.add(mount)
        claim, name = volume.get("volumeClaim"), volume.get("volumeClaimName")
        if claim is None and not name:
            why = "either VolumeClaim or VolumeClaimName must be specified"
            found.append(required(f"{where}.volumeClaimName", why))
        if name and (problem := subdomain_problem(name)):
            found.append(invalid_value(f"{where}.volumeClaimName", name, f"invalid VolumeClaimName: {problem}"))
        if claim is not None and name:
            why = "an existing claim is named, a new one is described: only one of volumeClaimName and volumeClaim"
            found.append(forbidden_field(f"{where}.volumeClaim", why))
    return found


def _queue_problems(name: str, lookup: Lookup) -> list[Cause]:
    """Return the problems of the queue: it must exist, be open, not be the root, and have no children."""
    path = "spec.queue"
    queue = lookup.get("Queue", "", name)
    if queue is None:
        return [missing(path, name, f'queue "{name}" does not exist')]
    if found := state_problems(queue, "job"):
        return found
    if name == "root":
        return [forbidden_field(path, "can not submit job to root queue")]
    if children := lookup.children(name):
        why = f"can only submit job to leaf queue, queue `{name}` has {len(children)} child queues"
        return [invalid_value(path, name, why)]
    return []
