"""What the containers of a pod do: each one's command, with the variables that the kubelet gives it."""

from __future__ import annotations

import re
from typing import Any, Final

from actors.kube.commands.plans import Plan
from actors.kube.commands.shell import Variables, planned
from core.objects.metadata import section, text_map

Object = dict[str, Any]

DURATION: Final = "pumice.dev/duration"
EXIT_CODE: Final = "pumice.dev/exit-code"
"""What a pod's annotations say of its run comes before what its containers say."""

SERVICES: Final = {
    "agnhost", "caddy", "cassandra", "consul", "elasticsearch", "envoy", "etcd", "grafana", "haproxy", "httpd",
    "influxdb", "jenkins", "kafka", "mariadb", "memcached", "minio", "mongo", "mysql", "nats", "nginx", "pause",
    "postgres", "prometheus", "rabbitmq", "redis", "registry", "tomcat", "traefik", "valkey", "vault", "zookeeper",
}  # fmt: skip
"""Images that serve until they are stopped, when nothing else is asked of them."""

_REFERENCE: Final = re.compile(r"\$(\$|\(([^()\s]+)\))")
_FIELD: Final = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")


def annotated(pod: Object) -> bool:
    """Whether annotations of the pod say how it runs."""
    annotations = text_map(pod["metadata"].get("annotations"))
    return DURATION in annotations or EXIT_CODE in annotations


def plan_of(pod: Object, container: Object) -> Plan | None:
    """What the container does; None where its command does not say, or is of a program that nobody here knows, or where
    annotations say how the pod runs.
    """
    arguments = [*(container.get("command") or ()), *(container.get("args") or ())]
    if not arguments or annotated(pod):
        return None
    variables = _variables(pod, container)
    known = dict(variables)
    return planned(tuple([_filled_in(str(each), known) for each in arguments]), variables)


def serves(container: Object) -> bool:
    """Whether its image is one of a service, and nothing else is asked of it."""
    if container.get("command") or container.get("args"):
        return False
    name = str(container.get("image") or "").partition("@")[0].rpartition("/")[2].partition(":")[0]
    return name in SERVICES


def heeds(container: Object) -> bool:
    """Whether it ends soon when it is sent SIGTERM. The first process of a container ignores that signal unless it has
    a handler for it, as servers have; a shell and `sleep` have none.
    """
    return serves(container)


def has_commands(spec: Object) -> bool:
    """Whether any container says what it is to do."""
    for group in ("containers", "initContainers"):
        for each in spec.get(group) or ():
            if each.get("command") or each.get("args"):
                return True
    return False


def _variables(pod: Object, container: Object) -> Variables:
    spec = section(pod, "spec")
    known = {"HOSTNAME": str(spec.get("hostname") or pod["metadata"]["name"])}
    for each in container.get("env") or ():
        source = section(section(each, "valueFrom"), "fieldRef").get("fieldPath")
        value = _field(pod, source) if source else _filled_in(str(each.get("value") or ""), known)
        known[str(each.get("name"))] = value
    return tuple(known.items())


def _field(pod: Object, path: str) -> str:
    """Of the downward API; empty for what is not known here."""
    meta: Object = pod["metadata"]
    match = _FIELD.fullmatch(path)
    if match is not None:
        return text_map(meta.get(match[1])).get(match[2], "")
    where, _, name = path.partition(".")
    known = {"metadata": meta, "spec": section(pod, "spec"), "status": section(pod, "status")}
    value = known.get(where, {}).get(name)
    return value if isinstance(value, str) else ""


def _filled_in(text: str, variables: dict[str, str]) -> str:
    """`$(NAME)` is the value of a variable, if there is one; `$$` a dollar (source: Kubernetes' `expansion`)."""
    return _REFERENCE.sub(
        lambda match: "$" if match[1] == "$" else variables.get(match[2], match[0]),
        text,
    )
