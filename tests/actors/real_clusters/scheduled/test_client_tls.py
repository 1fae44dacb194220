"""Writes over a real handshake: whom they trust, and as whom they come."""

from pathlib import Path

import anyio
import pytest

from pumice.actors.errors import RemoteError
from pumice.actors.real_clusters.scheduled.client import ClusterClient
from pumice.actors.real_clusters.scheduled.settings import ClusterSettings
from pumice.config.kubeconfig import ClusterAccess
from tests.actors.real_clusters.remote.test_tls import TOKEN, https

pytestmark = pytest.mark.anyio


async def written(access: ClusterAccess, name: str) -> str:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    async with ClusterClient(ClusterSettings(access)) as api:
        made = await api.create("/api/v1/namespaces", namespace, anyio.current_time() + 1.0)
        await api.delete(f"/api/v1/namespaces/{name}", {}, anyio.current_time() + 1.0)
    return str(made["metadata"]["name"])


async def test_writes_trust_whom_the_kubeconfig_trusts_and_no_other(tmp_path: Path) -> None:
    async with https(tmp_path) as (url, authority):
        assert await written(ClusterAccess(url, authority=authority, token=TOKEN), "a") == "a"
        assert await written(ClusterAccess(url, insecure=True, token=TOKEN), "b") == "b"
        for wrong in (
            ClusterAccess(url, token=TOKEN),
            ClusterAccess(url, authority=authority, token=TOKEN, server_name="other.example"),
        ):
            with pytest.raises(RemoteError, match="certificate verify failed"):
                await written(wrong, "c")
        with pytest.raises(RemoteError, match="401"):
            await written(ClusterAccess(url, authority=authority), "d")
