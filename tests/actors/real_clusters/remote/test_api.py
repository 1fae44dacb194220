"""Requests: throttled, unauthorised, nonsense; and what is cut into lines."""

import httpx
import pytest

from pumice.actors.errors import RemoteError
from pumice.actors.real_clusters.remote.access import Credential
from pumice.config.kubeconfig import ClusterAccess
from tests.actors.real_clusters.remote.scripted import ScriptedServer, Stream, page, status

pytestmark = pytest.mark.anyio


class Changing:
    """Another token whenever the last one was refused."""

    def __init__(self) -> None:
        self.number = 0

    async def current(self) -> Credential:
        return Credential(f"Bearer {self.number}")

    def refused(self) -> None:
        self.number += 1


async def test_a_server_that_asks_for_time_gets_it() -> None:
    throttled = {"retry-after": "0"}
    server = ScriptedServer(status(429, **throttled), status(503, **throttled), page())
    async with server.api() as api:
        assert (await api.get("/api/v1/pods"))["items"] == []
    assert len(server.asked) == 3


async def test_patience_has_an_end() -> None:
    server = ScriptedServer(*[status(429, **{"retry-after": "0"})] * 20)
    async with server.api() as api:
        with pytest.raises(RemoteError, match="429: no") as caught:
            await api.get("/api/v1/pods")
    assert (caught.value.code, len(server.asked)) == (429, 10)


async def test_what_does_not_say_when_is_not_asked_again() -> None:
    server = ScriptedServer(status(500))
    async with server.api() as api:
        with pytest.raises(RemoteError, match="500"):
            await api.get("/api/v1/pods")
    assert len(server.asked) == 1


async def test_an_expired_token_is_renewed_once() -> None:
    server, changing = ScriptedServer(status(401), page(), status(401), status(401)), Changing()
    async with server.api(credentials=changing) as api:
        await api.get("/api/v1/pods")
        assert [each.headers["authorization"] for each in server.asked] == ["Bearer 0", "Bearer 1"]
        with pytest.raises(RemoteError, match="401"):
            await api.get("/api/v1/pods")


@pytest.mark.parametrize(
    ("access", "header"),
    [
        (ClusterAccess("http://c", token="t", username="u"), "Bearer t"),
        (ClusterAccess("http://c", username="u", password="p"), "Basic dTpw"),
        (ClusterAccess("http://c"), None),
    ],
)
async def test_who_asks_is_shown(access: ClusterAccess, header: str | None) -> None:
    server = ScriptedServer(page())
    async with server.api(access) as api:
        await api.get("/api/v1/pods")
    assert server.asked[0].headers.get("authorization") == header


async def test_reads_are_made_as_whom_the_kubeconfig_says() -> None:
    server = ScriptedServer(page())
    groups = (("Impersonate-User", "ann"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"))
    async with server.api(ClusterAccess("http://c", token="t", impersonation=groups)) as api:
        await api.get("/api/v1/pods")
    headers = server.asked[0].headers
    assert (headers["impersonate-user"], headers.get_list("impersonate-group")) == ("ann", ["a", "b"])
    assert headers["authorization"] == "Bearer t"


async def test_what_is_no_kubernetes_api_is_said() -> None:
    server = ScriptedServer(httpx.Response(200, text="<html>welcome</html>"))
    async with server.api() as api:
        with pytest.raises(RemoteError, match="expected a JSON object, was b'<html>"):
            await api.get("/api/v1/pods")


async def test_lines_end_at_line_feeds_alone_wherever_they_are_cut() -> None:
    text = "a\u2028b"
    parts = [b"one\nt", b"wo\n\n", f"{text}\nha".encode(), b"lf"]
    server = ScriptedServer(httpx.Response(200, stream=Stream(parts)))
    async with server.api() as api, api.lines("/api/v1/pods", {}, 5.0) as lines:
        found = [line async for line in lines]
    assert found == [b"one", b"two", text.encode()]


async def test_timeout_is_named_without_the_words_of_a_library() -> None:
    late = httpx.ReadTimeout("Cancelled via cancel scope 7f; reason: deadline exceeded")
    server = ScriptedServer(late, httpx.Response(200, stream=Stream((), error=late)))
    async with server.api() as api:
        with pytest.raises(RemoteError, match=r": no answer: timeout$"):
            await api.get("/api/v1/pods")
        with pytest.raises(RemoteError, match=r"^GET /api/v1/pods: the stream broke off: timeout$"):
            async with api.lines("/api/v1/pods", {}, 1.0) as lines:
                assert [line async for line in lines] == []
