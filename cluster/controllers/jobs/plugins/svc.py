# SPDX-License-Identifier: Apache-2.0
"""Job plugin svc: pods find each other by name (source: Volcano's `plugins/svc`).

A headless Service gives the names, a ConfigMap mounted at /etc/volcano and VC_*_HOSTS, VC_*_NUM list them, and a
NetworkPolicy lets in the pods of the Job alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.controllers import job_keys as keys
from pumice.cluster.controllers.jobs.plugins.plugin import hosts_of, owned, tasks_of, with_more, with_spec
from pumice.cluster.kube.go_flags import Flag, parsed_flags
from pumice.core.objects.metadata import Object

MOUNTED_AT: Final = "/etc/volcano"
_FLAGS: Final[dict[str, Flag]] = {"publish-not-ready-addresses": False, "disable-network-policy": False}


class SvcPlugin:
    """The plugin svc. It also sets hostname and subdomain where the template has none."""

    def __init__(self, job: Object, arguments: Sequence[str]) -> None:
        self._job = job
        self._flags = parsed_flags(arguments, _FLAGS)
        self._map = f"{job['metadata']['name']}-svc"
        names = [name for task in tasks_of(job) for name in (f"VC_{_upper(task)}_HOSTS", f"VC_{_upper(task)}_NUM")]
        self._env = [
            {"name": name, "valueFrom": {"configMapKeyRef": {"name": self._map, "key": name}}} for name in names
        ]

    def pod(self, pod: Object, task: Object, index: int) -> Object:
        """Return the index-th pod of the task with the plugin's additions; the given pod does not change."""
        spec = pod["spec"]
        pod = with_spec(
            pod,
            # Kubernetes' DNS knows a pod as HOSTNAME.SUBDOMAIN where a headless Service is called like the subdomain.
            hostname=spec.get("hostname") or pod["metadata"]["name"],
            subdomain=spec.get("subdomain") or self._job["metadata"]["name"],
            volumes=[*(spec.get("volumes") or ()), {"name": self._map, "configMap": {"name": self._map}}],
        )
        mount = {"mountPath": MOUNTED_AT, "name": self._map}
        return with_more(with_more(pod, "env", self._env), "volumeMounts", [mount])

    def objects(self) -> Sequence[Object]:
        """Return the objects that are created for the Job, and deleted when its pods are."""
        job, name = self._job, self._job["metadata"]["name"]
        selector = {keys.JOB_NAME: name, keys.JOB_NAMESPACE: job["metadata"]["namespace"]}
        # It has no ports: names of pods need none.
        service: Object = {"clusterIP": "None", "selector": selector}
        if self._flags["publish-not-ready-addresses"]:
            service["publishNotReadyAddresses"] = True
        made = [self.hosts(), {**owned(job, "Service", name), "spec": service}]
        if not self._flags["disable-network-policy"]:
            own = {"matchLabels": selector}
            rules = {"podSelector": own, "ingress": [{"from": [{"podSelector": own}]}], "policyTypes": ["Ingress"]}
            made.append({**owned(job, "NetworkPolicy", name, "networking.k8s.io/v1"), "spec": rules})
        return made

    def hosts(self) -> Object:
        """Return the ConfigMap of hosts, which follows the replicas of tasks."""
        data: dict[str, str] = {}
        for task in tasks_of(self._job):
            hosts = hosts_of(self._job, task)
            data[f"{task['name'].replace('-', '_')}.host"] = "\n".join(hosts)
            data[f"VC_{_upper(task)}_HOSTS"] = ",".join(hosts)
            data[f"VC_{_upper(task)}_NUM"] = str(len(hosts))
        return {**owned(self._job, "ConfigMap", self._map), "data": data}


def _upper(task: Object) -> str:
    return str(task["name"]).replace("-", "_").upper()
