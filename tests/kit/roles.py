"""What a server that enforces roles is started with, and how its administrator comes to it."""

from __future__ import annotations

import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import httpx

from tests.kit.authority import Authority

USER: Final = "tester"
BINDINGS: Final = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
ADMIN: Final = "token-of-pumice"
TOKEN: Final = "token-of-tester"


class Roles:
    """TLS, and two tokens. Tests come as `USER`, who may do what the role cluster-admin allows. `ADMIN` is the token of
    `--token-file`: its user may do anything without a role, and gives that one.
    """

    def __init__(self, folder: Path) -> None:
        self.certificate = Authority(folder, "server").file
        self.trusted = ssl.create_default_context(cafile=str(self.certificate))
        self._admin, self._users = folder / "admin-token", folder / "users.csv"
        for file, text in ((self._admin, ADMIN), (self._users, f"{TOKEN},{USER},1\n")):
            file.touch(0o600)
            file.write_text(text, "utf-8")

    def flags(self) -> list[str]:
        """Of `pumice run`."""
        pair = ["--tls-cert", str(self.certificate), "--tls-key", str(self.certificate)]
        tokens = ["--token-file", str(self._admin), "--token-auth-file", str(self._users)]
        return [*pair, *tokens, "--authorization", "rbac"]

    def bind(self, url: str) -> None:
        """Give the user its role, which a server that has started again has kept."""
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}
        binding: dict[str, Any] = {"metadata": {"name": USER}, "roleRef": role, "subjects": [subject]}
        with httpx.Client(base_url=url, verify=self.trusted, headers=bearer(ADMIN), trust_env=False) as client:
            answer = client.post(BINDINGS, json=binding)
        assert answer.status_code in (201, 409), answer.text

    def write_kubeconfig(self, url: str, path: Path) -> None:
        """As an administrator makes one for a user."""
        command = [sys.executable, "-m", "pumice", "kubeconfig", "--server", url, "--tls-cert", str(self.certificate)]
        command += ["--user", USER, "--token-auth-file", str(self._users), "--write", str(path)]
        subprocess.run(command, check=True, capture_output=True)


def bearer(token: str) -> dict[str, str]:
    """The header with a token."""
    return {"authorization": f"Bearer {token}"}
