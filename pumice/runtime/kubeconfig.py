"""A kubeconfig for the gateway, and how to get a client to use it."""

from __future__ import annotations

import shlex
from base64 import b64encode
from pathlib import Path
from typing import Final

from pumice.config.input_file import read_bytes
from pumice.core.objects.metadata import Object
from pumice.yaml_text import dump_yaml

NAME: Final = "pumice"


def kubeconfig_of(server: str, token: str = "", certificate: Path | None = None) -> Object:
    """For the server of this URL. `certificate` is what clients are to trust, put in as it is. Raises OSError."""
    cluster: Object = {"server": server}
    if server.startswith("http://"):  # without it @kubernetes/client-node refuses plain HTTP; others do not look at it
        cluster["insecure-skip-tls-verify"] = True
    elif certificate is not None:
        cluster["certificate-authority-data"] = b64encode(read_bytes(certificate)).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": {"token": token} if token else {}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
        "current-context": NAME,
    }


def text_of(config: Object) -> str:
    """The kubeconfig in YAML."""
    return dump_yaml(config)


def write(config: Object, path: Path) -> None:
    """Into a file that only its owner may read, for it may hold a token. Raises OSError."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(text_of(config))


def export_line(path: Path) -> str:
    """What a shell is told."""
    return f"export KUBECONFIG={shlex.quote(str(path.absolute()))}"
