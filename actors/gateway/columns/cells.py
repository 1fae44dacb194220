# SPDX-License-Identifier: Apache-2.0
"""Cells that need more than a field: small pure functions of an object and a moment, in the order of the table."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from pumice.actors.gateway.columns.words import (
    NONE,
    UNKNOWN,
    UNSET,
    Cell,
    Cells,
    access_modes,
    at,
    count,
    deleted,
    human_duration,
    name_of,
    or_none,
    quantity,
    since,
    some,
    spec_of,
    status_of,
)
from pumice.core.objects.metadata import Object, annotations_of, controlling_owner, labels_of, parse_time, rows, section
from pumice.core.quantity import quantity_of

_SHOWN: Final = 3
"""Number of ports, addresses and hosts that are shown."""
_METRICS_SHOWN: Final = 2

# --- Pods: what their containers say decides the STATUS column, not the phase alone

_ENDED: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


class _Tally(Struct):
    """Counts so far; `last_restart` in seconds since the epoch, 0 for never."""

    reason: str
    ready: int = 0
    restarts: int = 0
    last_restart: float = 0.0

    def add_restarts(self, container: Object) -> None:
        self.restarts += count(container, "restartCount")
        ended = section(section(container, "lastState"), "terminated").get("finishedAt")
        self.last_restart = max(self.last_restart, parse_time(ended))


def ready_status_restarts(pod: Object, now: float) -> list[Any]:
    """Return ready containers of all, the state in one word, and restarts with the time since the last."""
    spec, status = spec_of(pod), status_of(pod)
    # A sidecar runs beside the main containers, so printPod (`pkg/printers/internalversion/printers.go`)
    # counts it in READY as well.
    sidecars = {one["name"] for one in rows(spec, "initContainers") if one.get("restartPolicy") == "Always"}
    tally = _tally(spec, status, sidecars)
    restarts = str(tally.restarts)
    # A status may count restarts without the end of the last one: then there is no time to show.
    if tally.restarts and tally.last_restart:
        restarts += f" ({human_duration(now - tally.last_restart)} ago)"
    total = len(rows(spec, "containers")) + len(sidecars)
    return [f"{tally.ready}/{total}", _leaving(pod, status) or tally.reason, restarts]


def _leaving(pod: Object, status: Object) -> str:
    if not deleted(pod):
        return ""
    # The node life-cycle controller gives this reason to pods of a node that does not answer: what became of
    # them is not known.
    if status.get("reason") == "NodeLost":
        return "Unknown"
    # A pod that has ended keeps its own word while a finalizer delays its deletion.
    return "" if status.get("phase") in _ENDED else "Terminating"


def _tally(spec: Object, status: Object, sidecars: set[str]) -> _Tally:
    reason = status.get("reason") or status.get("phase") or ""
    for condition in rows(status, "conditions"):
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    starting, of_sidecars, waits = _init_containers(spec, status, sidecars, reason)
    # A sidecar that restarts waits again, but its pod has been initialised before: no `Init:` then.
    if waits and not _true(status, "Initialized"):
        return starting
    # From here on the restarts of init containers that are done no longer count, as in printPod.
    of_sidecars.reason = starting.reason
    return _main_containers(status, of_sidecars)


def _init_containers(spec: Object, status: Object, sidecars: set[str], reason: str) -> tuple[_Tally, _Tally, bool]:
    """Return counts of all init containers, of sidecars alone, and whether the pod still initialises."""
    every, alone = _Tally(reason), _Tally(reason)
    total = len(rows(spec, "initContainers"))
    for place, container in enumerate(rows(status, "initContainerStatuses")):
        every.add_restarts(container)
        sidecar = container.get("name") in sidecars
        if sidecar:
            alone.add_restarts(container)
        ended = section(container, "state").get("terminated")
        if ended is not None and not ended.get("exitCode"):
            continue
        if sidecar and container.get("started"):
            # In both: which of the two is shown is known only after the last init container.
            for tally in (every, alone):
                tally.ready += bool(container.get("ready"))
            continue
        # Init containers run one after another, so those behind the first that is not done have nothing to add.
        every.reason = f"Init:{_why_not_done(container, f'{place}/{total}')}"
        return every, alone, True
    return every, alone, False


def _why_not_done(container: Object, progress: str) -> str:
    state = section(container, "state")
    if state.get("terminated") is not None:
        return _ending(state["terminated"])
    waiting = section(state, "waiting").get("reason") or ""
    # Every container that waits for its turn says PodInitializing: the progress says more.
    return waiting if waiting not in ("", "PodInitializing") else progress


def _ending(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode') or 0}"


def _main_containers(status: Object, tally: _Tally) -> _Tally:
    running, failed = False, ""
    # Backwards, as printPod goes: the word of the first container is the one that stays.
    for container in reversed(rows(status, "containerStatuses")):
        tally.add_restarts(container)
        state = section(container, "state")
        ended, waiting = state.get("terminated"), section(state, "waiting").get("reason")
        if waiting:
            tally.reason = waiting
        elif ended is not None:
            tally.reason = _ending(ended)
            # Kept apart: `Completed` of a container earlier in the list would hide the failure of a later one.
            failed = tally.reason if ended.get("exitCode") else failed
        elif container.get("ready") and state.get("running") is not None:
            running = True
            tally.ready += 1
    if tally.reason == "Completed":
        tally.reason = _completed(status, running=running, failed=failed)
    return tally


def _completed(status: Object, *, running: bool, failed: str) -> str:
    """Return whether a pod with one ended container is still Running: another one runs and the pod is ready."""
    if running and _true(status, "Ready"):
        return "Running"
    return failed or ("NotReady" if running else "Completed")


def _true(status: Object, condition_type: str) -> bool:
    return any(one.get("type") == condition_type and one.get("status") == "True" for one in rows(status, "conditions"))


def pod_address(pod: Object, _now: float) -> str:
    """Return the pod's first address."""
    addresses = rows(status_of(pod), "podIPs")
    return or_none(addresses[0].get("ip") if addresses else "")


def readiness_gates(pod: Object, _now: float) -> str:
    """Return how many readiness gates hold, of all."""
    gates, status = rows(spec_of(pod), "readinessGates"), status_of(pod)
    if not gates:
        return NONE
    return f"{sum(_true(status, str(gate.get('conditionType'))) for gate in gates)}/{len(gates)}"


def pod_conditions(pod: Object) -> list[dict[str, str]]:
    """Return the condition of a pod that has ended."""
    phase = status_of(pod).get("phase", "")
    message = _ENDED.get(phase)
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}] if message else []


# --- Nodes

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
# The older label, which has the role as its value; findNodeRoles still reads it.
_ROLE: Final = "kubernetes.io/role"


def node_state(node: Object, _now: float) -> str:
    """Return `Ready`, `NotReady` or `Unknown`, and whether pods may be bound to the node."""
    said = [one.get("status") for one in rows(status_of(node), "conditions") if one.get("type") == "Ready"]
    # As in printNode a Ready condition of status Unknown is NotReady; `Unknown` is for a node without one.
    state = "Unknown" if not said else "Ready" if said[-1] == "True" else "NotReady"
    return f"{state},SchedulingDisabled" if spec_of(node).get("unschedulable") else state


def node_roles(node: Object, _now: float) -> str:
    """Return the roles given by labels, sorted."""
    labels = labels_of(node)
    found = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return ",".join(sorted((found | {labels.get(_ROLE, "")}) - {""})) or NONE


def node_address(wanted: str) -> Cell:
    """Return the cell of the first address of a type."""
    return at(
        "status.addresses",
        lambda listed: next((one.get("address", "") for one in listed or () if one.get("type") == wanted), NONE),
    )


# --- Kinds that make pods from a template

# In printJob's order: the first that holds is shown. The empty type stands for a deletion.
_JOB_STATES: Final = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def containers(path: str) -> Cells:
    """Return the cells of the names and images of a template's containers; `path` leads to the holder of the
    template.
    """
    # The path of a PodTemplate is empty, for its template is at the top: hence the dot to strip.
    named: Cells = at(
        f"{path}.template.spec.containers".lstrip("."),
        lambda listed: [",".join(str(one.get(field, "")) for one in listed or ()) for field in ("name", "image")],
    )
    return named


def last_schedule(cron_job: Object, now: float) -> str:
    """Return the time since the last job was made."""
    last = status_of(cron_job).get("lastScheduleTime")
    return since(last, now) if last else NONE


def completions(job: Object, _now: float) -> str:
    """Return pods that have succeeded, of those wanted."""
    spec, status = spec_of(job), status_of(job)
    done = count(status, "succeeded")
    if spec.get("completions") is not None:
        return f"{done}/{spec['completions']}"
    # Without completions one pod that succeeds ends the work of all, so the number wanted is 1.
    parallelism = count(spec, "parallelism")
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def job_duration(job: Object, now: float) -> str:
    """Return how long a Job took, or has taken so far."""
    status = status_of(job)
    started = status.get("startTime")
    if not started:
        return ""
    ended = status.get("completionTime")
    return human_duration((parse_time(ended) if ended else now) - parse_time(started))


def job_state(obj: Object, _now: float) -> str:
    """Return the state of a batch Job, in one word."""
    holds = {one.get("type") for one in rows(status_of(obj), "conditions") if one.get("status") == "True"}
    for condition, word in _JOB_STATES:
        if condition in holds or (not condition and deleted(obj)):
            return word
    return "Running"


# --- Services, endpoints and ingresses


def cluster_address(service: Object, _now: float) -> str:
    """Return the first address inside the cluster."""
    spec = spec_of(service)
    return or_none((spec.get("clusterIPs") or [spec.get("clusterIP")])[0])


def external_address(service: Object, _now: float) -> str:
    """Return addresses outside the cluster, by the service's type."""
    spec = spec_of(service)
    listed: list[str] = spec.get("externalIPs") or []
    match spec.get("type") or "ClusterIP":
        case "ClusterIP" | "NodePort":
            return ",".join(listed) or NONE
        case "LoadBalancer":
            return ",".join([*load_balancers(service), *listed]) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName") or "")
        case _:
            return UNKNOWN


def load_balancers(obj: Object) -> list[str]:
    """Return addresses and host names of the load balancers, sorted."""
    # Never cut to 16 letters: an API server prints its tables with `Wide`, and only the narrow form is cut.
    given = rows(section(status_of(obj), "loadBalancer"), "ingress")
    return sorted({str(one.get("ip") or one.get("hostname") or "") for one in given} - {""})


def service_ports(service: Object, _now: float) -> str:
    """Return ports like `80/TCP,81:30001/UDP`."""
    return ",".join(_port(one) for one in rows(spec_of(service), "ports")) or NONE


def _port(port: Object) -> str:
    outside = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{outside}/{port.get('protocol') or 'TCP'}"


def endpoints(obj: Object, _now: float) -> str:
    """Return the first addresses of all subsets, each with each port."""
    found: list[str] = []
    for subset in rows(obj, "subsets"):
        addresses = [str(one.get("ip", "")) for one in rows(subset, "addresses")]
        ports = [f":{one.get('port', 0)}" for one in rows(subset, "ports")] or [""]
        # Ports outside, addresses inside, as formatEndpoints goes: it decides which three are shown.
        # An IPv6 address needs brackets only where a port follows (Go's net.JoinHostPort).
        found += [f"[{ip}]{port}" if ":" in ip and port else ip + port for port in ports for ip in addresses]
    # Subsets without addresses give an empty cell: `<none>` is for no subsets at all (formatEndpoints).
    return some(found, _SHOWN) if rows(obj, "subsets") else NONE


def slice_ports(obj: Object, _now: float) -> str:
    """Return the first ports of an EndpointSlice."""
    return some([_slice_port(one) for one in rows(obj, "ports")], _SHOWN) or UNSET


def slice_addresses(obj: Object, _now: float) -> str:
    """Return the first addresses of an EndpointSlice."""
    return some([one for each in rows(obj, "endpoints") for one in each.get("addresses") or ()], _SHOWN) or UNSET


def _slice_port(port: Object) -> str:
    if port.get("port") is not None:
        return str(port["port"])
    # In an EndpointPort no number means that ports are not restricted.
    return "*" if port.get("name") is None else str(port["name"])


def hosts(ingress: Object, _now: float) -> str:
    """Return the hosts of the first rules, and the number of further rules; `*` without hosts."""
    found: list[str] = []
    rules = rows(spec_of(ingress), "rules")
    for rule in rules:
        if len(found) == _SHOWN:
            # formatHosts counts rules here, also those without a host.
            return f"{','.join(found)} + {len(rules) - _SHOWN} more..."
        found += [rule["host"]] if rule.get("host") else []
    return ",".join(found) or "*"


def class_parameters(ingress_class: Object, _now: float) -> str:
    """Return `Kind.group/name` of a class's parameters."""
    given = spec_of(ingress_class).get("parameters")
    if not given:
        return NONE
    group = "" if given.get("apiGroup") is None else f".{given['apiGroup']}"
    return f"{given.get('kind', '')}{group}/{given.get('name', '')}"


# --- Horizontal pod autoscalers

_SOURCES: Final = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def scaled(scaler: Object, _now: float) -> str:
    """Return the target of an autoscaler: `Kind/name`."""
    target = section(spec_of(scaler), "scaleTargetRef")
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def metrics(scaler: Object, _now: float) -> str:
    """Return the first metrics, each as current/target."""
    specs, statuses = rows(spec_of(scaler), "metrics"), rows(status_of(scaler), "currentMetrics")
    if not specs:
        return NONE
    told = [_metric(one, statuses[place] if place < len(statuses) else {}) for place, one in enumerate(specs)]
    return some(told, _METRICS_SHOWN, ", ")


def _metric(spec: Object, status: Object) -> str:
    field = _SOURCES.get(str(spec.get("type")))
    if field is None:
        return "<unknown type>"
    source = section(spec, field)
    target, current = section(source, "target"), section(section(status, field), "current")
    if field in ("resource", "containerResource"):
        return f"{source.get('name', '')}: {_of_resource(target, current)}"
    if field == "pods" or target.get("averageValue") is not None:
        told = f"{_amount(current, 'averageValue')}/{quantity(target.get('averageValue'))}"
        return told if field == "pods" else f"{told} (avg)"
    return f"{_amount(current, 'value')}/{quantity(target.get('value'))}"


def _of_resource(target: Object, current: Object) -> str:
    if target.get("averageValue") is not None:
        return f"{_amount(current, 'averageValue')}/{quantity(target['averageValue'])}"
    wanted, used = target.get("averageUtilization"), current.get("averageUtilization")
    told = UNKNOWN if used is None else f"{used}%"
    return f"{told}/{'<auto>' if wanted is None else f'{wanted}%'}"


def _amount(current: Object, field: str) -> str:
    return UNKNOWN if current.get(field) is None else quantity(current[field])


# --- Events


def first_seen(event: Object, now: float) -> str:
    """Return the time since the event was first seen."""
    # Events of events.k8s.io have an eventTime in place of the first and the last time.
    return since(event.get("firstTimestamp") or event.get("eventTime"), now)


def last_seen(event: Object, now: float) -> str:
    """Return the time since the event was last seen; a series has its own time."""
    series, stamp = event.get("series"), event.get("lastTimestamp")
    if series:
        return since(series.get("lastObservedTime"), now)
    return since(stamp, now) if stamp else first_seen(event, now)


def times_seen(event: Object, _now: float) -> int:
    """Return how often an event was seen: a series has its own count, a single event counts once."""
    series = event.get("series")
    # Single events of events.k8s.io have no count, which Go reads as 0.
    return count(series, "count") if series else count(event, "count") or 1


def event_object(event: Object, _now: float) -> str:
    """Return the object that an event is about: `pod/name`."""
    about = section(event, "involvedObject")
    kind = str(about.get("kind") or "").lower()
    return f"{kind}/{about['name']}" if about.get("name") else kind


def event_source(event: Object, _now: float) -> str:
    """Return the reporter of an event, and its host."""
    source = section(event, "source")
    component = source.get("component") or event.get("reportingComponent") or ""
    instance = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else str(component)


# --- Metrics


def usage(obj: Object, _now: float) -> list[str]:
    """Return processor and memory: a node's own, or a pod's exact sums over its containers."""
    used = section(obj, "usage")
    return [
        quantity(used.get(resource)) if used else _total(rows(obj, "containers"), resource)
        for resource in ("cpu", "memory")
    ]


def _total(listed: list[Object], resource: str) -> str:
    total = quantity_of(0)
    for given in [section(one, "usage").get(resource) for one in listed]:
        total = total.plus(quantity_of(given or 0))
    return total.canonical()


# --- Volumes

# The annotation of the beta; where it is given it wins over the field (Kubernetes' GetPersistentVolumeClass).
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def storage_class(obj: Object, _now: float) -> str:
    """Return the class of a volume or claim."""
    return annotations_of(obj).get(_OLD_CLASS) or spec_of(obj).get("storageClassName") or ""


def phase(obj: Object, _now: float) -> str:
    """Return the phase of a volume or claim."""
    # A volume in use waits for its protection finalizer: its phase would hide that it is going.
    return "Terminating" if deleted(obj) else status_of(obj).get("phase") or ""


def bound_claim(volume: Object, _now: float) -> str:
    """Return `namespace/name` of the claim that a volume is bound to."""
    claim = spec_of(volume).get("claimRef")
    return f"{claim.get('namespace') or ''}/{claim.get('name') or ''}" if claim else ""


def bound_volume(claim: Object, _now: float) -> list[Any]:
    """Return name, capacity and access modes of the volume that a claim is bound to."""
    bound, status = spec_of(claim).get("volumeName") or "", status_of(claim)
    if not bound:
        return ["", "", ""]
    # The status has the volume's size; the spec has the size asked for, which may be less.
    return [bound, quantity(section(status, "capacity").get("storage")), access_modes(status.get("accessModes"))]


def name_and_default(obj: Object, _now: float) -> str:
    """Return the name of a StorageClass, with a mark on the default."""
    default = any(annotations_of(obj).get(key) == "true" for key in _DEFAULT_CLASS)
    return f"{name_of(obj)} (default)" if default else name_of(obj)


def audiences(driver: Object, _now: float) -> str:
    """Return the audiences that a driver wants tokens for."""
    requests = spec_of(driver).get("tokenRequests")
    return UNSET if requests is None else ",".join(str(one.get("audience", "")) for one in requests)


# --- Configuration, roles, devices, limits, policies


def keys(obj: Object, _now: float) -> int:
    """Return the number of keys of a ConfigMap or Secret."""
    return len(section(obj, "data")) + len(section(obj, "binaryData"))


def role(binding: Object, _now: float) -> str:
    """Return the role that is given: `Kind/name`."""
    given = section(binding, "roleRef")
    return f"{given.get('kind', '')}/{given.get('name', '')}"


def subjects(binding: Object, _now: float) -> list[str]:
    """Return the users, groups and service accounts that have a role."""
    named: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in rows(binding, "subjects"):
        prefix = f"{subject.get('namespace') or ''}/" if subject.get("kind") == "ServiceAccount" else ""
        # The name of a subject of another kind goes into a list that is dropped.
        named.get(str(subject.get("kind")), []).append(f"{prefix}{subject.get('name', '')}")
    return [", ".join(names) for names in named.values()]


def controller(revision: Object, _now: float) -> str:
    """Return the controller of a revision: `kind.group/name`."""
    owner = controlling_owner(revision)
    if owner is None:
        return NONE
    group, slash, _ = str(owner.get("apiVersion", "")).partition("/")
    suffix = f".{group}" if slash else ""
    return f"{owner.get('kind', '')}{suffix}".lower() + f"/{owner.get('name', '')}"


def claim_state(claim: Object, _now: float) -> str:
    """Return the state of a ResourceClaim, in a few words."""
    status, going = status_of(claim), deleted(claim)
    allocated = status.get("allocation") is not None
    states = {
        "deleted": going,
        "pending": not allocated and not going,
        "allocated": allocated,
        "reserved": allocated and bool(status.get("reservedFor")),
    }
    return ",".join(word for word, holds in states.items() if holds)


def used_of_hard(quota: Object, _now: float) -> list[str]:
    """Return requests and limits of a ResourceQuota, each `resource: used/hard`."""
    status = status_of(quota)
    used = section(status, "used")
    told: dict[bool, list[str]] = {False: [], True: []}
    for resource, hard in sorted(section(status, "hard").items()):
        told[resource.startswith("limits.")].append(f"{resource}: {quantity(used.get(resource))}/{quantity(hard)}")
    return [", ".join(listed) for listed in told.values()]


def request_condition(request: Object, _now: float) -> str:
    """Return the decision on a CertificateSigningRequest, and its result."""
    status = status_of(request)
    said = {each.get("type") for each in status.get("conditions") or ()}
    words = ["Denied" if "Denied" in said else "Approved" if "Approved" in said else "Pending"]
    words += ["Failed"] * ("Failed" in said) + ["Issued"] * bool(status.get("certificate"))
    return ",".join(words)


def parameter_kind(policy: Object, _now: float) -> str:
    """Return the kind of a policy's parameters: `apiVersion/Kind`."""
    kind = spec_of(policy).get("paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET


def parameter_reference(binding: Object, _now: float) -> str:
    """Return the parameters of a policy's binding: `namespace/name`."""
    given = spec_of(binding).get("paramRef")
    return f"{given.get('namespace') or '*'}/{given['name']}" if given and given.get("name") else UNSET
