"""Whom to trust, over a real handshake."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace as replace_

from pumice.actors.errors import RemoteError
from pumice.actors.gateway.settings import GatewaySettings, listen
from pumice.actors.real_clusters.remote.api import RemoteApi
from pumice.config.kubeconfig import ClusterAccess
from tests.actors.gateway.rig import PASSIVE
from tests.actors.rig import started
from tests.kit.prometheus import self_signed

pytestmark = pytest.mark.anyio
TOKEN = "secret"


@asynccontextmanager
async def https(folder: Path) -> AsyncGenerator[tuple[str, bytes]]:
    """A server with a token, and the certificate that nobody else vouches for."""
    pem = self_signed(folder)
    with listen("127.0.0.1", 0) as listener:
        gateway = GatewaySettings(listener, token=TOKEN, certificate=pem, key=pem, grace_s=0.1)
        async with started(settings=replace(PASSIVE, gateway=gateway)):
            yield gateway.url, pem.read_bytes()


async def answered(access: ClusterAccess) -> str:
    async with RemoteApi(access) as api:
        return str((await api.get("/api/v1/namespaces"))["kind"])


async def test_the_authority_of_the_kubeconfig_is_trusted_and_no_other(tmp_path: Path) -> None:
    async with https(tmp_path) as (url, authority):
        assert await answered(ClusterAccess(url, authority=authority, token=TOKEN)) == "NamespaceList"
        assert await answered(ClusterAccess(url, insecure=True, token=TOKEN)) == "NamespaceList"
        with pytest.raises(RemoteError, match="no answer") as caught:
            await answered(ClusterAccess(url, token=TOKEN))
        assert caught.value.code == 0
        assert isinstance(caught.value.__cause__, httpx.ConnectError)


async def test_the_certificate_has_the_name_that_the_kubeconfig_says(tmp_path: Path) -> None:
    async with https(tmp_path) as (url, authority):
        there = ClusterAccess(url, authority=authority, token=TOKEN)
        assert await answered(replace_(there, server_name="127.0.0.1")) == "NamespaceList"
        with pytest.raises(RemoteError, match="no answer"):
            await answered(replace_(there, server_name="wrong.name"))


async def test_who_shows_no_token_is_told_so(tmp_path: Path) -> None:
    async with https(tmp_path) as (url, authority):
        with pytest.raises(RemoteError, match="401") as caught:
            await answered(ClusterAccess(url, authority=authority))
        assert caught.value.code == 401
