# SPDX-License-Identifier: Apache-2.0
"""Pod specs, both in a pod and in the template of a Job, a Deployment or a ReplicaSet.

The rules of Kubernetes' validation that matter to scheduling; an image is not asked for, since nothing is pulled.
"""

from __future__ import annotations

from typing import Final

from pumice.cluster.api.admission.amounts import (
    MOST_RESOURCES,
    amount_problems,
    exceeds,
    quantity_total_too_large,
    settle_amounts,
)
from pumice.cluster.api.metadata import label_problems
from pumice.cluster.api.names import label_problem, qualified_name_problem
from pumice.cluster.api.refusals import Cause, duplicate, invalid_value, required, too_many, unsupported
from pumice.cluster.api.schema.table import enum_of
from pumice.core.objects.metadata import Object, containers_of, rows, section

RESTARTS: Final = enum_of("core.v1.PodSpec", "restartPolicy", declared=True)
EFFECTS: Final = enum_of("core.v1.Toleration", "effect", declared=True)
# the schema has Gt and Lt too, which Kubernetes refuses while their feature gate (alpha) is off
_TOLERATION_OPERATORS: Final = ("Equal", "Exists")
_NODE_OPERATORS: Final = enum_of("core.v1.NodeSelectorRequirement", "operator")
_SPREADS: Final = enum_of("core.v1.TopologySpreadConstraint", "whenUnsatisfiable")
_PLACING: Final = frozenset(("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "schedulingGates"))
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def default_pod_spec(spec: Object) -> None:
    """Fill in what scheduling reads: policies, names, and requests from limits."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    for container in containers_of(spec):
        if resources := container.get("resources"):
            default_requests(resources)
        if container.get("ports"):
            default_protocols(container)
    if overhead := spec.get("overhead"):
        settle_amounts(overhead)


def default_protocols(container: Object) -> None:
    """Set the protocol of ports without one to TCP."""
    for port in rows(container, "ports"):
        port.setdefault("protocol", "TCP")


def default_requests(resources: Object) -> None:
    """Set missing requests to the limits."""
    limits, requests = resources.get("limits"), resources.get("requests")
    if requests:
        settle_amounts(requests)
    if limits:
        settle_amounts(limits)
        missing = {name: amount for name, amount in limits.items() if not requests or name not in requests}
        if missing:
            resources["requests"] = {**(requests or {}), **missing}


def pod_spec_problems(spec: Object, path: str) -> list[Cause]:
    """Return all problems of a spec; `path` is its place, such as `spec`."""
    found: list[Cause] = []
    if not spec.get("containers"):
        found.append(required(f"{path}.containers", "a pod has at least one container"))
    # one set for both groups: an init container cannot have the name of a container either
    names: set[str] = set()
    for group in ("containers", "initContainers"):
        for index, container in enumerate(rows(spec, group)):
            found += _container_problems(container, f"{path}.{group}[{index}]", names)
    found += _sum_problems(spec, path)
    restart = spec.get("restartPolicy")
    if restart is not None and restart not in RESTARTS:
        found.append(unsupported(f"{path}.restartPolicy", restart, RESTARTS))
    if (grace := spec.get("terminationGracePeriodSeconds") or 0) < 0:
        where = f"{path}.terminationGracePeriodSeconds"
        found.append(invalid_value(where, grace, "must be greater than or equal to 0"))
    if overhead := spec.get("overhead"):
        found += amount_problems(overhead, f"{path}.overhead")
    # most pods have none of these fields: one look instead of five
    return found if _PLACING.isdisjoint(spec) else found + _placing_problems(spec, path)


def _placing_problems(spec: Object, path: str) -> list[Cause]:
    """Return the problems of the fields that say where the pod may run."""
    found: list[Cause] = []
    if selector := spec.get("nodeSelector"):
        found += label_problems(selector, f"{path}.nodeSelector")
    for index, toleration in enumerate(rows(spec, "tolerations")):
        found += _toleration_problems(toleration, f"{path}.tolerations[{index}]")
    if affinity := spec.get("affinity"):
        found += _affinity_problems(affinity, f"{path}.affinity")
    for index, spread in enumerate(rows(spec, "topologySpreadConstraints")):
        found += _spread_problems(spread, f"{path}.topologySpreadConstraints[{index}]")
    return found + _gate_problems(rows(spec, "schedulingGates"), f"{path}.schedulingGates")


def _gate_problems(gates: list[Object], path: str) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate["name"]
        if problem := qualified_name_problem(name):
            found.append(invalid_value(f"{path}[{index}].name", name, problem))
        if name in seen:
            found.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return found


def container_name_problems(container: Object, path: str, names: set[str]) -> list[Cause]:
    """Return the problems of a container's name, which must be unique; the name is added to `names`."""
    name: str = container.get("name") or ""
    if not name:
        found = [required(f"{path}.name")]
    elif problem := label_problem(name):
        found = [invalid_value(f"{path}.name", name, problem)]
    else:
        found = [duplicate(f"{path}.name", name)] if name in names else []
    names.add(name)
    return found


def _container_problems(container: Object, path: str, names: set[str]) -> list[Cause]:
    found = container_name_problems(container, path, names)
    if resources := container.get("resources"):
        found += _resource_problems(resources, f"{path}.resources")
    for index, port in enumerate(rows(container, "ports")):
        found += _port_problems(port, f"{path}.ports[{index}]")
    return found


def _resource_problems(resources: Object, path: str) -> list[Cause]:
    requests, limits = section(resources, "requests"), section(resources, "limits")
    found = amount_problems(requests, f"{path}.requests")
    if not limits:
        return found
    found += amount_problems(limits, f"{path}.limits")
    for name, amount in requests.items():
        # most requests are written like their limit: then no quantity is read
        if name in limits and amount != limits[name] and exceeds(amount, limits[name]):
            why = f"must be less than or equal to {name} limit of {limits[name]}"
            found.append(invalid_value(f"{path}.requests[{name}]", amount, why))
    return found


def _sum_problems(spec: Object, path: str) -> list[Cause]:
    containers = rows(spec, "containers")
    # a single container has been judged alone
    if len(containers) + len(rows(spec, "initContainers")) < 2:
        return []
    asked = {name for each in (*containers, *rows(spec, "initContainers")) for name in _names(each)}
    if len(asked) > MOST_RESOURCES:
        return [too_many(f"{path}.containers", len(asked), MOST_RESOURCES)]
    requests = [section(section(container, "resources"), "requests") for container in containers]
    # in the spec's order: that of a set differs from process to process
    names = dict.fromkeys(name for each in requests for name in each)
    return [
        invalid_value(f"{path}.containers", name, "the containers' requests together do not fit 64 bits")
        for name in names
        if quantity_total_too_large(name, [each[name] for each in requests if name in each])
    ]


def _names(container: Object) -> set[str]:
    """Return the names of the resources that a container requests."""
    resources = section(container, "resources")
    return section(resources, "requests").keys() | section(resources, "limits").keys()


def _port_problems(port: Object, path: str) -> list[Cause]:
    found: list[Cause] = []
    # hostPort 0 is an absent one: Go cannot tell them apart
    for field, least in (("containerPort", 1), ("hostPort", 0)):
        number = port.get(field)
        if number is not None and not least <= number <= 65535:
            found.append(invalid_value(f"{path}.{field}", number, "must be between 1 and 65535, inclusive"))
    return found


def _toleration_problems(toleration: Object, path: str) -> list[Cause]:
    found: list[Cause] = []
    operator = toleration.get("operator") or "Equal"
    if operator not in _TOLERATION_OPERATORS:
        found.append(unsupported(f"{path}.operator", operator, _TOLERATION_OPERATORS))
    if not toleration.get("key") and operator != "Exists":
        found.append(invalid_value(f"{path}.operator", operator, "operator must be Exists when `key` is empty"))
    if operator == "Exists" and toleration.get("value"):
        found.append(invalid_value(f"{path}.value", toleration["value"], "must be empty when `operator` is 'Exists'"))
    effect = toleration.get("effect")
    if effect and effect not in EFFECTS:
        found.append(unsupported(f"{path}.effect", effect, EFFECTS))
    return found


def _affinity_problems(affinity: Object, path: str) -> list[Cause]:
    node = section(affinity, "nodeAffinity")
    must = section(node, _REQUIRED)
    found: list[Cause] = []
    for index, term in enumerate(rows(must, "nodeSelectorTerms")):
        found += _node_term_problems(term, f"{path}.nodeAffinity.{_REQUIRED}.nodeSelectorTerms[{index}]")
    for index, choice in enumerate(rows(node, _PREFERRED)):
        place = f"{path}.nodeAffinity.{_PREFERRED}[{index}]"
        found += _weight_problems(choice, place) + _node_term_problems(choice["preference"], f"{place}.preference")
    for side in ("podAffinity", "podAntiAffinity"):
        for index, choice in enumerate(rows(section(affinity, side), _PREFERRED)):
            found += _weight_problems(choice, f"{path}.{side}.{_PREFERRED}[{index}]")
    return found


def _weight_problems(choice: Object, path: str) -> list[Cause]:
    weight = choice["weight"]
    return [] if 1 <= weight <= 100 else [invalid_value(f"{path}.weight", weight, "must be in the range 1-100")]


def _node_term_problems(term: Object, path: str) -> list[Cause]:
    found: list[Cause] = []
    for group in ("matchExpressions", "matchFields"):
        for index, requirement in enumerate(rows(term, group)):
            place, values = f"{path}.{group}[{index}]", requirement.get("values") or ()
            operator = requirement["operator"]
            if operator not in _NODE_OPERATORS:
                found.append(invalid_value(f"{place}.operator", operator, "not a valid selector operator"))
            elif operator in ("In", "NotIn") and not values:
                found.append(required(f"{place}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
            elif operator in ("Gt", "Lt") and len(values) != 1:
                found.append(required(f"{place}.values", "must be a single value when `operator` is 'Lt' or 'Gt'"))
    return found


def _spread_problems(spread: Object, path: str) -> list[Cause]:
    found: list[Cause] = []
    if spread["maxSkew"] <= 0:
        found.append(invalid_value(f"{path}.maxSkew", spread["maxSkew"], "must be greater than zero"))
    if spread["whenUnsatisfiable"] not in _SPREADS:
        found.append(unsupported(f"{path}.whenUnsatisfiable", spread["whenUnsatisfiable"], _SPREADS))
    return found
