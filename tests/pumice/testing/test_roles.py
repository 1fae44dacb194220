# SPDX-License-Identifier: Apache-2.0
"""A controller's rights are tested: users with kubeconfigs of their own, and the real kubectl over TLS."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from pumice.errors import InputError
from pumice.testing import ClusterOptions, RefusedError, certificates

if TYPE_CHECKING:
    from pathlib import Path

    from pumice.testing import ServedCluster

PODS = "/api/v1/namespaces/default/pods"
ROLE: dict[str, Any] = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
    "metadata": {"name": "reads-pods", "namespace": "default"},
    "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}],
}
ACCOUNT: dict[str, Any] = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "operator"}}


def binding(kind: str, name: str) -> dict[str, Any]:
    subject = {"kind": kind, "name": name, **({"namespace": "default"} if kind == "ServiceAccount" else {})}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"{name}-reads-pods", "namespace": "default"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reads-pods"},
        "subjects": [subject],
    }


@pytest.mark.pumice_cluster(authorization="rbac", nodes=1)
def test_a_user_may_do_what_its_role_says_and_no_more(pumice_cluster: ServedCluster) -> None:
    alice = pumice_cluster.user("alice", "dev")
    assert alice.client.get(PODS).status_code == 403
    pumice_cluster.apply(ROLE, binding("Group", "dev"))
    assert alice.client.get(PODS).json()["items"] == []
    refused = alice.client.post(PODS, json={"metadata": {"name": "p"}}).json()
    assert refused["message"].startswith('pods is forbidden: User "alice" cannot create resource "pods"')
    pumice_cluster.reset()
    assert alice.client.get(PODS).status_code == 403


@pytest.mark.pumice_cluster(authorization="rbac", nodes=1)
def test_a_service_account_has_a_kubeconfig_too(pumice_cluster: ServedCluster) -> None:
    pumice_cluster.apply(ACCOUNT, ROLE, binding("ServiceAccount", "operator"))
    operator = pumice_cluster.user("system:serviceaccount:default:operator")
    assert operator.client.get(PODS).status_code == 200
    assert operator.client.get("/api/v1/nodes").status_code == 403
    with pytest.raises(RefusedError, match="not found"):
        pumice_cluster.user("system:serviceaccount:default:nobody")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
@pytest.mark.pumice_cluster(authorization="rbac", tls=True, nodes=1)
def test_kubectl_asks_what_it_may_do(pumice_cluster: ServedCluster) -> None:
    pumice_cluster.apply(ROLE, binding("User", "alice"))

    def kubectl(config: Path, *arguments: str) -> str:
        environment = {**os.environ, "KUBECONFIG": str(config)}
        done = subprocess.run(["kubectl", *arguments], env=environment, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    alice = pumice_cluster.user("alice").kubeconfig
    admin = pumice_cluster.kubeconfig
    assert kubectl(alice, "auth", "can-i", "list", "pods").strip() == "yes"
    assert kubectl(alice, "auth", "can-i", "delete", "pods").strip() == "no"
    listed = [line.split() for line in kubectl(alice, "auth", "can-i", "--list").splitlines()]
    assert ["pods", "[]", "[]", "[get", "list]"] in listed
    assert "No resources found" in kubectl(alice, "get", "pods")
    forbidden = 'Error from server (Forbidden): secrets is forbidden: User "alice" cannot list resource "secrets"'
    assert kubectl(alice, "get", "secrets").startswith(forbidden)
    assert 'cannot impersonate resource "users"' in kubectl(alice, "get", "pods", "--as", "bob")
    assert kubectl(admin, "auth", "can-i", "list", "pods", "--as", "alice").strip() == "yes"
    assert kubectl(admin, "auth", "can-i", "list", "pods", "--as", "bob", "--as-group", "dev").strip() == "no"
    token = kubectl(admin, "create", "token", "default").strip()
    seen = kubectl(alice, "auth", "whoami", "--token", token)
    assert "system:serviceaccount:default:default" in seen


def test_what_cannot_be_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="authorization: expected rbac or none"):
        ClusterOptions(authorization="abac")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(certificates, "import_module", missing)
    with pytest.raises(InputError, match=r"tls: needs cryptography: pip install 'pumice\[tls\]'"):
        certificates.made_certificate(tmp_path)
