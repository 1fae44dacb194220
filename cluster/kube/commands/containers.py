# SPDX-License-Identifier: Apache-2.0
"""Plans of a pod's containers: each one's command, with the variables that the kubelet gives it."""

from __future__ import annotations

import re
from typing import Any, Final

from pumice.cluster.kube.commands.plans import FOR_EVER, Plan
from pumice.cluster.kube.commands.programs import is_server, waits_for_input
from pumice.cluster.kube.commands.scripts import Variables, planned
from pumice.core.objects.metadata import Object, section, text_map

DURATION: Final = "pumice.dev/duration"
EXIT_CODE: Final = "pumice.dev/exit-code"
"""Annotations of a pod about its run come before its containers' commands."""

SERVICES: Final = {
    "activemq", "adminer", "agnhost", "alertmanager", "apache", "caddy", "cassandra", "chronograf", "clickhouse",
    "clickhouse-server", "cockroach", "consul", "coredns", "couchbase", "couchdb", "drupal", "echo-server",
    "echoserver", "elasticsearch", "emqx", "envoy", "etcd", "fluent-bit", "fluentd", "ghost", "gitea", "grafana",
    "haproxy", "hello-app", "http-echo", "httpbin", "httpd", "influxdb", "jaeger", "jenkins", "joomla", "kafka",
    "keycloak", "kibana", "kong", "kube-proxy", "logstash", "loki", "mariadb", "mediawiki", "memcached", "metabase",
    "minio", "mongo", "mongodb", "mosquitto", "mysql", "nats", "neo4j", "nextcloud", "nexus3", "nginx",
    "nginx-slim", "nginx-unprivileged", "node-exporter", "ollama", "openresty", "opensearch", "openssh-server",
    "pause", "percona", "phpmyadmin", "podinfo", "postgres", "postgresql", "prometheus", "pulsar", "pushgateway",
    "qdrant", "rabbitmq", "redis", "redis-stack-server", "redmine", "registry", "rethinkdb", "serve_hostname",
    "solr", "sonarqube", "squid", "telegraf", "tomcat", "traefik", "tritonserver", "valkey", "varnish", "vault",
    "vllm-openai", "weaviate", "whoami", "wordpress", "zookeeper",
}  # fmt: skip
"""Images that serve until they are stopped, when nothing else is asked of them, whatever the pod's restartPolicy is."""
SHELL_IMAGES: Final = {
    "almalinux", "alpine", "amazonlinux", "archlinux", "bash", "busybox", "centos", "debian", "fedora", "leap",
    "oraclelinux", "rockylinux", "tumbleweed", "ubi-minimal", "ubuntu",
}  # fmt: skip
"""Images whose program is a shell: without a command it reads an empty input and ends."""

_REFERENCE: Final = re.compile(r"\$(\$|\(([^()\s]+)\))")
_FIELD: Final = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")


def annotated(pod: Object) -> bool:
    """Return whether annotations of the pod say how it runs."""
    annotations = text_map(pod["metadata"].get("annotations"))
    return DURATION in annotations or EXIT_CODE in annotations


def plan_of(pod: Object, container: Object) -> Plan | None:
    """Return the container's plan. None where the command does not determine it, where the program is unknown here, or
    where annotations say how the pod runs.
    """
    arguments = [*(container.get("command") or ()), *(container.get("args") or ())]
    if annotated(pod) or not (arguments or _is_shell(container)):
        return None
    if waits_for_input(arguments or ["sh"]) and container.get("stdin"):
        return Plan(FOR_EVER)
    if not arguments:
        return Plan(0.0)
    variables = _variables(pod, container)
    known = dict(variables)
    return planned(tuple([_filled_in(str(each), known) for each in arguments]), variables)


def serves(container: Object) -> bool:
    """Return whether the image is one of a service, and the container has no other command."""
    return not _is_asked(container) and _image(container) in SERVICES


def _is_shell(container: Object) -> bool:
    return not _is_asked(container) and _image(container) in SHELL_IMAGES


def _is_asked(container: Object) -> bool:
    return bool(container.get("command") or container.get("args"))


def _image(container: Object) -> str:
    """Return the last word of an image's name, without tag and digest."""
    # The registry goes first: its port has a colon as well.
    return str(container.get("image") or "").partition("@")[0].rpartition("/")[2].partition(":")[0]


def heeds(container: Object) -> bool:
    """Return whether the container ends soon after SIGTERM. The first process of a container ignores that signal unless
    it has a handler: servers have one, a shell and `sleep` do not.
    """
    if serves(container):
        return True
    words: list[Any] = [*(container.get("command") or []), *(container.get("args") or []), ""]
    program, *arguments = map(str, words)
    return is_server(program.rpartition("/")[2], arguments)


def has_commands(spec: Object) -> bool:
    """Return whether any container has a command, or is known to be a shell."""
    for group in ("containers", "initContainers"):
        for each in spec.get(group) or ():
            if _is_asked(each) or _is_shell(each):
                return True
    return False


def names_commands(spec: Object) -> bool:
    """Return whether any container has a command."""
    return any(_is_asked(each) for group in ("containers", "initContainers") for each in spec.get(group) or ())


def _variables(pod: Object, container: Object) -> Variables:
    spec = section(pod, "spec")
    # filled in order: a variable may refer to those before it
    known = {"HOSTNAME": str(spec.get("hostname") or pod["metadata"]["name"])}
    for each in container.get("env") or ():
        source = section(section(each, "valueFrom"), "fieldRef").get("fieldPath")
        value = _field(pod, source) if source else _filled_in(str(each.get("value") or ""), known)
        known[str(each.get("name"))] = value
    return tuple(known.items())


def _field(pod: Object, path: str) -> str:
    """Return a value of the downward API; empty for an unknown field."""
    meta: Object = pod["metadata"]
    match = _FIELD.fullmatch(path)
    if match is not None:
        return text_map(meta.get(match[1])).get(match[2], "")
    where, _, name = path.partition(".")
    known = {"metadata": meta, "spec": section(pod, "spec"), "status": section(pod, "status")}
    value = known.get(where, {}).get(name)
    return value if isinstance(value, str) else ""


def _filled_in(text: str, variables: dict[str, str]) -> str:
    """Replace `$(NAME)` by the value of the variable, if it exists, and `$$` by a dollar (source: Kubernetes'
    `expansion`).
    """
    return _REFERENCE.sub(
        lambda match: "$" if match[1] == "$" else variables.get(match[2], match[0]),
        text,
    )
