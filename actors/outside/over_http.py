# SPDX-License-Identifier: Apache-2.0
"""Requests over HTTP, as Go's client sends them; failures are reported in its words."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

from pumice.core.messages.questions import OutsideAnswer
from pumice.core.outside import SUPPOSED

if TYPE_CHECKING:
    import httpx

MOST_CONCURRENT: Final = 16
"""As many questions are asked at a time: as many nodes Volcano looks at."""
MOST_BYTES: Final = (10 << 20) + 1
"""No answer is read further: a longer one is refused."""
OK: Final = 200
LATE: Final = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


class ExtenderRequest(NamedTuple):
    """A POST of JSON; `timeout_s`: until the whole answer has come, 0.0 for no limit."""

    url: str
    content: bytes
    timeout_s: float


Post = Callable[[Sequence[ExtenderRequest]], Awaitable[Sequence[OutsideAnswer]]]


async def over_http(requests: Sequence[ExtenderRequest]) -> Sequence[OutsideAnswer]:
    """Return the answers in the order of the requests; errors of the other side are answers too."""
    import httpx  # noqa: PLC0415 - a twentieth of a start, and few configurations have an extender

    answers: list[OutsideAnswer] = [OutsideAnswer()] * len(requests)
    # Reversed, since `pop` takes from the end: the first question goes first.
    left = list(enumerate(requests))[::-1]

    async def some(client: httpx.AsyncClient) -> None:
        while left:
            place, request = left.pop()
            answers[place] = await _one(client, request)

    async with (
        # As Go's `http.Client`: it follows redirects, and only the extender's own timeout ends a request (`_one`).
        httpx.AsyncClient(verify=_trusted(), timeout=None, follow_redirects=True) as client,  # nosec B113
        anyio.create_task_group() as group,
    ):
        for _ in range(min(MOST_CONCURRENT, len(requests))):
            group.start_soon(some, client)
    return answers


async def standing_still(requests: Sequence[ExtenderRequest]) -> Sequence[OutsideAnswer]:
    """Return `over_http` for a run on virtual time: no time passes meanwhile."""
    return ask_now(requests)


async def supposing(requests: Sequence[ExtenderRequest]) -> Sequence[OutsideAnswer]:
    """Ask no extender: a supposed cluster must not reach a real process."""
    return [SUPPOSED] * len(requests)


def ask_now(requests: Sequence[ExtenderRequest]) -> Sequence[OutsideAnswer]:
    """Return `over_http` for a caller that only waits."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(anyio.run, over_http, requests).result()


@cache
def _trusted() -> ssl.SSLContext:
    # Cached: to load the system's certificates takes longer than most questions.
    return ssl.create_default_context()


async def _one(client: httpx.AsyncClient, request: ExtenderRequest) -> OutsideAnswer:
    import httpx  # noqa: PLC0415

    if not request.url.startswith(("http://", "https://")):
        scheme = request.url.partition(":")[0] if "://" in request.url else ""
        return _none(request, f'unsupported protocol scheme "{scheme}"')
    try:
        with anyio.fail_after(request.timeout_s or None):
            return await _answer(client, request)
    except TimeoutError:
        return _none(request, LATE)
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        return _none(request, _words(request, error))


async def _answer(client: httpx.AsyncClient, request: ExtenderRequest) -> OutsideAnswer:
    headers = {"Content-Type": "application/json"}
    async with client.stream("POST", request.url, content=request.content, headers=headers) as response:
        body = bytearray()
        if response.status_code == OK:
            async for part in response.aiter_bytes():
                body += part
                if len(body) >= MOST_BYTES:
                    break
        return OutsideAnswer(response.status_code, bytes(body[:MOST_BYTES]))


def _none(request: ExtenderRequest, words: str) -> OutsideAnswer:
    return OutsideAnswer(error=f'Post "{request.url}": {words}')


def _words(request: ExtenderRequest, error: BaseException) -> str:
    import httpx  # noqa: PLC0415

    seen: BaseException | None = error
    while seen is not None:
        for each in [seen, *getattr(seen, "exceptions", ())]:
            if isinstance(each, ConnectionRefusedError):
                url = httpx.URL(request.url)
                port = url.port or (443 if url.scheme == "https" else 80)
                return f"dial tcp {url.host}:{port}: connect: connection refused"
        seen = seen.__cause__ or seen.__context__
    return "EOF" if isinstance(error, httpx.RemoteProtocolError) else str(error) or type(error).__name__
