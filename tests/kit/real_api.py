"""A real etcd and kube-apiserver, from the folder that KUBEBUILDER_ASSETS names (as controller-runtime's envtest).

There is nothing else: no controller, no kubelet. Volcano's definitions are written from the kinds that Pumice serves.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from pumice.cluster.api.kinds import KINDS, Kind
from tests.kit.serving import free_port

START_S: Final = 120.0
TOKEN: Final = "of-the-tests"
ASSETS: Final = "KUBEBUILDER_ASSETS"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def assets() -> Path:
    """The folder with both programs; skips where there is none."""
    named = os.environ.get(ASSETS, "")
    folder = Path(named)
    missing = [name for name in ("etcd", "kube-apiserver") if not (folder / name).exists()]
    if not named or missing:
        pytest.skip(f"{ASSETS} names no folder with etcd and kube-apiserver (setup-envtest use -p path)")
    if shutil.which("openssl") is None:
        pytest.skip("openssl is needed to make the key of service accounts")
    return folder


class RealApi:
    """Where it is, and how to speak to it."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self._programs = programs
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Return when it is ready."""
        key, tokens = self.folder / "sa.key", self.folder / "tokens.csv"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        tokens.write_text(f'{TOKEN},admin,admin,"system:masters"\n', "utf-8")
        client, peer = free_port(), free_port()
        etcd = f"http://127.0.0.1:{client}"
        self._run(
            "etcd", f"--data-dir={self.folder / 'etcd'}", f"--listen-client-urls={etcd}",
            f"--advertise-client-urls={etcd}", f"--listen-peer-urls=http://127.0.0.1:{peer}", "--unsafe-no-fsync",
        )  # fmt: skip
        self._run(
            "kube-apiserver", f"--etcd-servers={etcd}", f"--secure-port={self.port}", "--bind-address=127.0.0.1",
            f"--cert-dir={self.folder / 'certificates'}", f"--token-auth-file={tokens}", "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}", "--service-cluster-ip-range=10.0.0.0/24",
            "--disable-admission-plugins=ServiceAccount", "--max-requests-inflight=2000",
            "--max-mutating-requests-inflight=2000",
        )  # fmt: skip
        self._wait_ready()
        self._define()

    def _run(self, name: str, *flags: str) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            command = [str(self._programs / name), *flags]
            self._processes.append(subprocess.Popen(command, stdout=log, stderr=log))

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + START_S
        with self.client() as client:
            while time.monotonic() < deadline:
                for process in self._processes:
                    assert process.poll() is None, (self.folder / "kube-apiserver.log").read_text("utf-8")[-2000:]
                try:
                    if client.get("/readyz").status_code == 200:
                        return
                except httpx.TransportError:
                    pass
                time.sleep(0.2)
        raise AssertionError(f"the api server was not ready within {START_S} s")

    def _define(self) -> None:
        custom = [kind for kind in KINDS.values() if kind.group.endswith(".volcano.sh")]
        with self.client() as client:
            for kind in custom:
                answer = client.post(DEFINITIONS, json=definition(kind))
                assert answer.status_code == 201, answer.text
            for kind in custom:
                self._wait_served(client, kind)

    def _wait_served(self, client: httpx.Client, kind: Kind) -> None:
        deadline = time.monotonic() + START_S
        while client.get(f"/apis/{kind.group}/{kind.version}/{kind.plural}").status_code != 200:
            assert time.monotonic() < deadline, kind
            time.sleep(0.1)

    def stop(self) -> None:
        """Both, the api server first."""
        for process in reversed(self._processes):
            process.kill()
            process.wait()

    def kubeconfig(self, token: str = TOKEN, name: str = "kubeconfig") -> Path:
        """A kubeconfig for it: of one who may do everything, unless it is somebody else's token."""
        path = self.folder / name
        path.write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: real\n"
            f"clusters: [{{name: real, cluster: {{server: '{self.url}', insecure-skip-tls-verify: true}}}}]\n"
            f"users: [{{name: real, user: {{token: {token}}}}}]\n"
            "contexts: [{name: real, context: {cluster: real, user: real}}]\n",
            "utf-8",
        )
        return path

    def client(self) -> httpx.Client:
        """To be closed by whoever asks for it."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return httpx.Client(base_url=self.url, headers=headers, verify=False, timeout=30.0, trust_env=False)


def definition(kind: Kind) -> dict[str, Any]:
    """A CustomResourceDefinition that takes whatever fields there are."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: dict[str, Any] = {"name": kind.version, "served": True, "storage": True}
    version["schema"] = {"openAPIV3Schema": schema}
    if kind.status:
        version["subresources"] = {"status": {}}
    names = {"plural": kind.plural, "singular": kind.singular, "kind": kind.kind, "listKind": f"{kind.kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{kind.group}",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/volcano-sh/volcano"},
        },
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": {**names, "shortNames": list(kind.short_names)},
            "versions": [version],
        },
    }


@contextmanager
def real_api(folder: Path) -> Generator[RealApi]:
    """One that is ready; gone at the end. Skips where there is none to be had."""
    server = RealApi(folder, assets())
    try:
        server.start()
        yield server
    finally:
        server.stop()
