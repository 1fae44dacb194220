"""A resource is followed through everything that a server and a network do."""

from collections.abc import Callable

import httpx
import pytest

from tests.actors.real_clusters.remote.scripted import ScriptedServer, event, events, followed, page, pod, status

pytestmark = pytest.mark.anyio
GONE = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}


async def test_pages_are_one_list_and_the_watch_begins_at_its_revision() -> None:
    server = ScriptedServer(
        page(pod("a"), revision=7, token="more"),
        page(pod("b"), revision=7),
        events(event("ADDED", pod("c", 8)), open_=True),
    )
    heard, reflector = await followed(server, 2)
    assert heard.told == [("LISTED", "a", "b"), ("ADDED", "c")]
    first, second, watch = server.queries()
    assert (first, second) == ({"limit": "500"}, {"limit": "500", "continue": "more"})
    assert watch == {
        "watch": "true", "allowWatchBookmarks": "true", "resourceVersion": "7", "timeoutSeconds": "450"
    }  # fmt: skip
    assert reflector.revision == "8"


async def test_a_watch_that_ends_is_gone_on_with_from_its_last_bookmark() -> None:
    server = ScriptedServer(
        page(revision=1),
        events(event("ADDED", pod("a", 2)), event("BOOKMARK", pod("", 9))),
        events(event("DELETED", pod("a", 10)), open_=True),
    )
    heard, _ = await followed(server, 3)
    assert heard.told == [("LISTED",), ("ADDED", "a"), ("DELETED", "a")]
    assert [each.get("resourceVersion") for each in server.queries()] == [None, "1", "9"]


def as_an_answer(_: httpx.Request) -> httpx.Response:
    return status(410, "Expired")


def as_an_event(_: httpx.Request) -> httpx.Response:
    return events(event("ERROR", GONE))


@pytest.mark.parametrize(
    "expired",
    [as_an_answer, as_an_event],
)
async def test_what_has_expired_is_listed_again(expired: Callable[[httpx.Request], httpx.Response]) -> None:
    server = ScriptedServer(page(pod("a"), revision=1), expired, page(pod("b"), revision=50))
    heard, _ = await followed(server, 2, until_asked=4)
    assert heard.told == [("LISTED", "a"), ("LISTED", "b")]
    assert not heard.failures
    assert server.queries()[3]["resourceVersion"] == "50"


async def test_a_list_whose_pages_expire_is_asked_for_immediately() -> None:
    server = ScriptedServer(page(pod("a"), token="more"), status(410, "Expired"), page(pod("a"), pod("b"), revision=3))
    heard, _ = await followed(server, 1)
    assert heard.told == [("LISTED", "a", "b")]
    assert server.queries()[2] == {}


async def test_a_stream_that_breaks_is_gone_on_with() -> None:
    broken = httpx.ReadError("connection reset")
    server = ScriptedServer(
        page(revision=1),
        events(event("ADDED", pod("a", 2)), b'{"type": "ADDED", "obj', error=broken),
        httpx.ConnectError("connection refused"),
        status(429, "TooManyRequests"),
        events(event("ADDED", pod("b", 3)), open_=True),
    )
    heard, _ = await followed(server, 3)
    assert heard.told == [("LISTED",), ("ADDED", "a"), ("ADDED", "b")]
    assert [each.get("resourceVersion") for each in server.queries()] == [None, "1", "2", "2", "2"]
    assert [getattr(error, "code", None) for error in heard.failures] == [0, 0, 429]


async def test_other_failures_of_a_watch_list_again() -> None:
    server = ScriptedServer(page(revision=1), status(500, "InternalError"), page(pod("a"), revision=2))
    heard, _ = await followed(server, 2)
    assert heard.told == [("LISTED",), ("LISTED", "a")]
    assert "500" in str(heard.failures[0])


async def test_what_is_no_event_lists_again() -> None:
    server = ScriptedServer(page(revision=1), events(b"<html>\n"), page(pod("a"), revision=2))
    heard, _ = await followed(server, 2)
    assert heard.told == [("LISTED",), ("LISTED", "a")]


@pytest.mark.parametrize("late", [event("BOOKMARK", pod("", 40)), event("MODIFIED", pod("a", 40))])
async def test_a_server_that_was_put_back_is_listed_again(late: bytes) -> None:
    """So is one that says what it has said before: an object goes not back to what it was."""
    server = ScriptedServer(page(pod("a"), revision=90), events(late, open_=True), page(pod("b"), revision=41))
    heard, reflector = await followed(server, 2)
    assert heard.told == [("LISTED", "a"), ("LISTED", "b")]
    assert reflector.revision == "41"


@pytest.mark.parametrize("code", [403, 404])
async def test_what_is_not_served_or_not_allowed_is_looked_at_again(code: int) -> None:
    server = ScriptedServer(status(code), status(code), page(pod("a")))
    heard, _ = await followed(server, 1)
    assert heard.told == [("LISTED", "a")]
    assert len(heard.failures) == 2


async def test_what_cannot_be_watched_is_listed_now_and_then() -> None:
    server = ScriptedServer(page(pod("a")), status(405), page(pod("a"), pod("b")), status(405))
    heard, _ = await followed(server, 2)
    assert heard.told == [("LISTED", "a"), ("LISTED", "a", "b")]


async def test_a_server_that_is_gone_is_waited_for() -> None:
    server = ScriptedServer(httpx.ConnectError("refused"), httpx.ConnectTimeout("late"), page(pod("a")))
    heard, _ = await followed(server, 1)
    assert heard.told == [("LISTED", "a")]
    assert "refused" in str(heard.failures[0])


async def test_a_wire_that_breaks_after_something_was_heard_is_no_reason_to_wait_ever_longer() -> None:
    """Delays that double from a millisecond on would come to half a minute."""
    broken = [events(event("MODIFIED", pod("a", number)), error=httpx.ReadError("reset")) for number in range(2, 17)]
    heard, reflector = await followed(ScriptedServer(page(pod("a"), revision=1), *broken), 16, most_s=60.0)
    assert len(heard.told) == 16
    assert reflector.revision == "16"
