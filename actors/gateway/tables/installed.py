"""Kinds that installers bring along (Volcano's chart and others): ingresses, webhooks, admission policies."""

from __future__ import annotations

from typing import Any, Final

from pumice.actors.gateway.tables.ages import age
from pumice.actors.gateway.tables.column import AGE, NAME, NONE, UNSET, Printer, number, text
from pumice.actors.gateway.tables.words import containers, label_map, name_of, spec_of, status_of
from pumice.cluster.api.fields import rows
from pumice.core.objects.metadata import Object, section

_SHOWN: Final = 3


def _pod_template(obj: Object, now: float) -> list[Any]:
    return [name_of(obj), *containers(obj), label_map(section(section(obj, "template"), "metadata").get("labels"))]


def _ingress(obj: Object, now: float) -> list[Any]:
    spec = spec_of(obj)
    given = rows(section(status_of(obj), "loadBalancer"), "ingress")
    addresses = {str(one.get("ip") or one.get("hostname") or "") for one in given} - {""}
    return [
        name_of(obj),
        spec.get("ingressClassName") or NONE,
        _hosts(rows(spec, "rules")),
        ",".join(sorted(addresses)),
        "80, 443" if spec.get("tls") else "80",
        age(obj, now),
    ]


def _hosts(rules: list[Object]) -> str:
    """The hosts of the first rules, and how many rules are left; `*` when there are none."""
    hosts: list[str] = []
    for rule in rules:
        if len(hosts) == _SHOWN:
            return f"{','.join(hosts)} + {len(rules) - _SHOWN} more..."
        hosts += [rule["host"]] if rule.get("host") else []
    return ",".join(hosts) or "*"


def _ingress_class(obj: Object, now: float) -> list[Any]:
    spec = spec_of(obj)
    given = spec.get("parameters")
    told = NONE
    if given:
        group = "" if given.get("apiGroup") is None else f".{given['apiGroup']}"
        told = f"{given.get('kind', '')}{group}/{given.get('name', '')}"
    return [name_of(obj), spec.get("controller") or "", told, age(obj, now)]


def _runtime_class(obj: Object, now: float) -> list[Any]:
    return [name_of(obj), obj.get("handler") or "", age(obj, now)]


def _webhooks(obj: Object, now: float) -> list[Any]:
    return [name_of(obj), len(rows(obj, "webhooks")), age(obj, now)]


def _policy(obj: Object, now: float) -> list[Any]:
    spec = spec_of(obj)
    kind = spec.get("paramKind")
    told = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET
    return [name_of(obj), len(rows(spec, "validations")), told, age(obj, now)]


def _policy_binding(obj: Object, now: float) -> list[Any]:
    spec = spec_of(obj)
    given = spec.get("paramRef")
    told = UNSET
    if given and given.get("name"):
        told = f"{given.get('namespace') or '*'}/{given['name']}"
    return [name_of(obj), spec.get("policyName") or "", told, age(obj, now)]


POD_TEMPLATES: Final = Printer(
    (
        NAME,
        text("Containers", "Names of the template's containers."),
        text("Images", "Images of the template's containers."),
        text("Pod Labels", "Labels of the pods made from it."),
    ),
    _pod_template,
)

INGRESSES: Final = Printer(
    (
        NAME,
        text("Class", "Whose configuration it follows."),
        text("Hosts", "The hosts that its rules are for."),
        text("Address", "Where it is reached."),
        text("Ports", "443 too when it has certificates."),
        AGE,
    ),
    _ingress,
)

INGRESS_CLASSES: Final = Printer(
    (
        NAME,
        text("Controller", "Who serves ingresses of this class."),
        text("Parameters", "Where more of its configuration is."),
        AGE,
    ),
    _ingress_class,
)

RUNTIME_CLASSES: Final = Printer((NAME, text("Handler", "The handler in the container runtime."), AGE), _runtime_class)
WEBHOOKS: Final = Printer((NAME, number("Webhooks", "How many webhooks it has."), AGE), _webhooks)

POLICIES: Final = Printer(
    (
        NAME,
        number("Validations", "How many rules it has."),
        text("ParamKind", "The kind of its parameters."),
        AGE,
    ),
    _policy,
)

POLICY_BINDINGS: Final = Printer(
    (NAME, text("PolicyName", "The policy."), text("ParamRef", "Its parameters."), AGE), _policy_binding
)
