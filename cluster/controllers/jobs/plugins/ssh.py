# SPDX-License-Identifier: Apache-2.0
"""Job plugin ssh: pods of a Job can log in to each other (source: Volcano's `plugins/ssh`)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from typing import Final

from pumice.cluster.controllers.jobs.plugins.plugin import hosts_of, owned, tasks_of, with_more, with_spec
from pumice.cluster.kube.go_flags import Flag, parsed_flags
from pumice.core.objects.metadata import Object

# --- Keys
# Well formed, and not secret: a simulated cluster has no log-ins, and nothing here is drawn by chance, so all
# have the same.

EXPONENT: Final = 65537
_P: Final = (
    "f807e0fa060a853a31ee05df7ff1bb82eaf5cc7814aec35641981e9d36b4f34cb932a8327dce23d07c7671978c4fd604"
    "823e6b14cede1c58e969dbd560ef8da9e88b67711831a29685d94e7b6fa9e157aad78eed8399e8606f1bee4eff53af0e"
    "0ec77b8c7bccec8e2d1cb09e198153ab7972025283f241913713889157565fcf"
)
_Q: Final = (
    "c16bf698cba17e63e9b72ca6ef69be4abd9563e54bd09619f0c6427f7f5a26919777670ba1dd8a5b921265538469720e"
    "a909f1bcd360a528d79f7f28b5fe3c6a74aca254d3f244f129eeb3b466f883c0e1f0b9125e5830319c08d87c1e1ae8d6"
    "d6ccaffe9afb4a3d70bdcb06b8e7f0fccadf5b34bc79a14be68150636a2a39f1"
)


# Once in the process: a modular inverse of 2,048 bits and the encoding, for a text that is the same for all Jobs.
@cache
def key_pair() -> tuple[str, str]:
    """Return the private key as PEM (PKCS #1), and the public one as a line of authorized_keys."""
    p, q = int(_P, 16), int(_Q, 16)
    n, d = p * q, pow(EXPONENT, -1, (p - 1) * (q - 1))
    # In the order of RFC 8017 (A.1.2): version, modulus, exponents, primes, exponents by prime, coefficient.
    numbers = (0, n, EXPONENT, d, p, q, d % (p - 1), d % (q - 1), pow(q, -1, p))
    body = b64encode(_field(0x30, b"".join([_field(0x02, _bytes(number)) for number in numbers]))).decode()
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    private = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *lines, "-----END RSA PRIVATE KEY-----", ""])
    wire = b"".join([len(part).to_bytes(4, "big") + part for part in (b"ssh-rsa", _bytes(EXPONENT), _bytes(n))])
    return private, f"ssh-rsa {b64encode(wire).decode()}\n"


def _bytes(number: int) -> bytes:
    """Return a number as bytes, big-endian, with the sign bit."""
    # One byte more where the first bit is set: DER and SSH would read a negative number.
    return number.to_bytes(number.bit_length() // 8 + 1, "big")


def _field(kind: int, content: bytes) -> bytes:
    """Return a field in ASN.1's DER."""
    size = len(content)
    if size < 0x80:
        return bytes((kind, size)) + content
    given = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((kind, 0x80 | len(given))) + given + content


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
        """Return the index-th pod of the task with the plugin's additions; the given pod does not change."""
        path = self._flags["ssh-key-file-path"]
        items = [{"key": name, "path": f"{_FOLDER}/{name}"} for name in _FILES]
        mode = 0o600 if path == ROOT else 0o644
        volume = {"name": self._secret, "secret": {"secretName": self._secret, "items": items, "defaultMode": mode}}
        mount = {"mountPath": path, "subPath": _FOLDER, "name": self._secret}
        pod = with_spec(pod, volumes=[*(pod["spec"].get("volumes") or ()), volume])
        return with_more(pod, "volumeMounts", [mount])

    def objects(self) -> Sequence[Object]:
        """Return the objects that are created for the Job, and deleted when its pods are."""
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
                # `ssh j-a-0` is what users type; the subdomain is what the cluster's DNS needs beside it.
                name = host.partition(".")[0]
                lines += [f"Host {name}", f"  HostName {host}", f"  Port {port if 0 < port <= _MOST_PORT else PORT}"]
        return "\n".join(lines) + "\n"
