"""Start a server that enforces roles, and connect to it as its administrator."""

from __future__ import annotations

import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import httpx

from pumice.cluster.api.kinds import KINDS
from tests.kit.authority import Authority

USER: Final = "tester"
GROUP: Final = "rbac.authorization.k8s.io"
ALL: Final = "cluster-admin"
OF_NAMESPACES: Final = "admin"
"""Kubernetes' role for who administers a namespace. Given in all namespaces it leaves out what is cluster-wide, custom
kinds, and what only schedulers and kubelets write.
"""
CLUSTER_WIDE: Final = "limitranges namespaces nodes nodes/status persistentvolumes resourcequotas"
GROUPS: Final = [
    *("admissionregistration.k8s.io", "apiextensions.k8s.io", "example.com", "metrics.k8s.io"),
    *("rbac.authorization.k8s.io", "scheduling.k8s.io", "storage.k8s.io"),
    *sorted({kind.group for kind in KINDS.values() if kind.group.endswith(".volcano.sh")}),
]
"""Beside `OF_NAMESPACES`: what else an administrator of a cluster with Volcano has to do with."""
ADMIN: Final = "token-of-pumice"
TOKEN: Final = "token-of-tester"


class Roles:
    """TLS, and two tokens. Tests come as `USER`, who may do what that role allows, and `CLUSTER_WIDE` and `GROUPS`.
    `ADMIN` is the token of `--token-file`: its user may do anything without a role, and gives those.
    """

    def __init__(self, folder: Path, role: str) -> None:
        self._role = role
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
        """Give the user its roles, which a server that has started again has kept."""
        rules = [
            {"apiGroups": [""], "resources": CLUSTER_WIDE.split(), "verbs": ["*"]},
            {"apiGroups": GROUPS, "resources": ["*"], "verbs": ["*"]},
        ]
        made: list[tuple[str, dict[str, Any]]] = [("clusterroles", {"metadata": {"name": USER}, "rules": rules})]
        for role in (USER, self._role):
            ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
            subjects = [{"apiGroup": GROUP, "kind": "User", "name": USER}]
            binding = {"metadata": {"name": f"{USER}-{role}"}, "roleRef": ref, "subjects": subjects}
            made.append(("clusterrolebindings", binding))
        with httpx.Client(base_url=url, verify=self.trusted, headers=bearer(ADMIN), trust_env=False) as client:
            for plural, obj in made:
                answer = client.post(f"/apis/{GROUP}/v1/{plural}", json=obj)
                assert answer.status_code in (201, 409), answer.text

    def write_kubeconfig(self, url: str, path: Path) -> None:
        """As an administrator makes one for a user."""
        command = [sys.executable, "-m", "pumice", "kubeconfig", "--server", url, "--tls-cert", str(self.certificate)]
        command += ["--user", USER, "--token-auth-file", str(self._users), "--write", str(path)]
        subprocess.run(command, check=True, capture_output=True)


def bearer(token: str) -> dict[str, str]:
    """The header with a token."""
    return {"authorization": f"Bearer {token}"}
