"""Followed over real connections: a server of ours, which stops and comes back."""

from typing import Any

import anyio
import httpx
import pytest

from pumice.actors.errors import CredentialsError, RemoteError
from pumice.actors.real_clusters.remote.api import RemoteApi
from pumice.actors.real_clusters.remote.backoff import Backoff
from pumice.actors.real_clusters.remote.reflector import Reflector, RemoteListing, RemoteResource, list_all
from pumice.config.kubeconfig import ClusterAccess
from tests.actors.gateway.rig import PODS, serving
from tests.actors.real_clusters.remote import scripted
from tests.kit.cutting import cutting

pytestmark = pytest.mark.anyio


class Known:
    """What is there by what was heard; `moved` is set at every change."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.lists = 0
        self._moved = anyio.Event()

    async def until(self, *names: str) -> None:
        with anyio.fail_after(20):
            while self.names != set(names):
                await self._moved.wait()

    async def listed(self, resource: RemoteResource, listing: RemoteListing) -> None:
        self.lists += 1
        self.names = {obj["metadata"]["name"] for obj in listing.objects}
        self._move()

    async def changed(self, resource: RemoteResource, type_: str, obj: dict[str, Any]) -> None:
        assert (obj["kind"], obj["apiVersion"]) == ("Pod", "v1")
        (self.names.discard if type_ == "DELETED" else self.names.add)(obj["metadata"]["name"])
        self._move()

    def failed(self, resource: RemoteResource, error: RemoteError | CredentialsError) -> None:
        """It is tried again."""

    def _move(self) -> None:
        self._moved.set()
        self._moved = anyio.Event()


async def test_what_comes_and_goes_is_heard_of() -> None:
    known = Known()
    async with (
        serving(grace_s=0.1) as web,
        RemoteApi(ClusterAccess(web.settings.url)) as api,
        anyio.create_task_group() as tasks,
    ):
        await web.create_pods("a", "b")
        tasks.start_soon(Reflector(api, scripted.PODS, known).run)
        await known.until("a", "b")
        await web.create_pods("c")
        await web.send("DELETE", f"{PODS}/a")
        await known.until("b", "c")
        assert known.lists == 1
        tasks.cancel_scope.cancel()


async def test_all_pages_are_read() -> None:
    async with serving(grace_s=0.1) as web, RemoteApi(ClusterAccess(web.settings.url)) as api:
        names = [f"p{number}" for number in range(7)]
        await web.create_pods(*names)
        listing = await list_all(api, scripted.PODS, page=3)
        assert [obj["metadata"]["name"] for obj in listing.objects] == names


async def test_a_list_that_is_longer_than_any_connection_lasts_comes_through_in_pages() -> None:
    """And those that have come are not asked for again."""
    names = [f"p{number:02}" for number in range(60)]
    async with serving(grace_s=0.1) as web:
        await web.create_pods(*names)
        length = len((await web.http.get("/api/v1/pods")).content)
        with cutting(web.settings.address[1], seed=3, least=length // 20, most=length // 3) as wire:
            async with RemoteApi(ClusterAccess(f"http://127.0.0.1:{wire.port}")) as api:
                listing = await list_all(api, scripted.PODS)
            assert wire.cuts
    assert [obj["metadata"]["name"] for obj in listing.objects] == names


class Moving(httpx.AsyncBaseTransport):
    """To whichever server there is now, by the same name."""

    def __init__(self) -> None:
        self.port = 0
        self._inner = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.url = request.url.copy_with(port=self.port)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


async def test_a_server_that_was_replaced_is_listed_again() -> None:
    """The other one has never heard of the old one's revisions."""
    known, moving = Known(), Moving()
    api = RemoteApi(ClusterAccess("http://127.0.0.1"), transport=moving)
    quick = Backoff(lambda: 0.0, 0.01, 0.05)
    async with api, anyio.create_task_group() as tasks:
        async with serving(grace_s=0.1) as first:
            moving.port = first.settings.address[1]
            tasks.start_soon(Reflector(api, scripted.PODS, known, backoff=quick).run)
            await first.create_pods("a")
            await known.until("a")
        async with serving(grace_s=0.1) as second:
            await second.create_pods("z")
            moving.port = second.settings.address[1]
            await known.until("z")
            tasks.cancel_scope.cancel()
    assert known.lists > 1
