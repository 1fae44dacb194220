"""Job plugin ssh: pods of a Job can log in at each other (source: Volcano's `plugins/ssh`)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Final

from pumice.cluster.controllers.jobs.plugins.plugin import hosts_of, owned, tasks_of, with_more, with_spec
from pumice.cluster.controllers.jobs.plugins.rsa_keys import key_pair
from pumice.cluster.kube.go_flags import Flag, parsed_flags
from pumice.core.objects.metadata import Object

_FOLDER, _USER = ".ssh", "root"
ROOT: Final = f"/{_USER}/{_FOLDER}"
"""Of the user in the container."""
PORT: Final = 22
_MOST_PORT: Final = 65535
_FILES: Final = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")
_FLAGS: Final[dict[str, Flag]] = {
    "ssh-key-file-path": ROOT,
    "ssh-private-key": "",
    "ssh-public-key": "",
    "ssh-port": PORT,
}


class SshPlugin:
    """A Secret with a pair of keys and a configuration, mounted in every container."""

    def __init__(self, job: Object, arguments: Sequence[str]) -> None:
        self._job = job
        self._flags = parsed_flags(arguments, _FLAGS)
        self._secret = f"{job['metadata']['name']}-ssh"

    def pod(self, pod: Object, task: Object, index: int) -> Object:
        """The index-th pod of the task, with what the plugin adds; the pod given is not changed."""
        del task, index
        path = self._flags["ssh-key-file-path"]
        items = [{"key": name, "path": f"{_FOLDER}/{name}"} for name in _FILES]
        mode = 0o600 if path == ROOT else 0o644
        volume = {"name": self._secret, "secret": {"secretName": self._secret, "items": items, "defaultMode": mode}}
        mount = {"mountPath": path, "subPath": _FOLDER, "name": self._secret}
        pod = with_spec(pod, volumes=[*(pod["spec"].get("volumes") or ()), volume])
        return with_more(pod, "volumeMounts", [mount])

    def objects(self) -> Sequence[Object]:
        """What is created for the Job, and deleted when its pods are."""
        private, public = str(self._flags["ssh-private-key"]), str(self._flags["ssh-public-key"])
        if not private:
            private, public = key_pair()
        texts = dict(zip(_FILES, (private, public, public, self._config()), strict=True))
        data = {name: b64encode(text.encode()).decode() for name, text in texts.items()}
        return [{**owned(self._job, "Secret", self._secret), "data": data}]

    def _config(self) -> str:
        port = int(self._flags["ssh-port"])
        lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
        for task in tasks_of(self._job):
            for host in hosts_of(self._job, task):
                name = host.partition(".")[0]
                lines += [f"Host {name}", f"  HostName {host}", f"  Port {port if 0 < port <= _MOST_PORT else PORT}"]
        return "\n".join(lines) + "\n"
