"""Reading from a real API server and writing to it, no more often than it may be asked.

Each write can be made twice without harm (a bind of the same pod to the same node, a patch of one resourceVersion, an
event of its own name), so what got no answer is tried again, with delays that grow, until its time is up.
"""

from __future__ import annotations

import random
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import anyio
import httpx
import msgspec

from pumice.actors.errors import RemoteError
from pumice.actors.real_clusters.cluster.settings import ClusterSettings
from pumice.actors.real_clusters.cluster.throttle import TokenBucket
from pumice.actors.real_clusters.cluster.wire import BROKEN, WireAnswer, WireRequest, WriteLanes
from pumice.actors.real_clusters.remote.access import proxy_of, trust_of
from pumice.actors.real_clusters.remote.api import (
    ANSWER_S,
    INTERNAL,
    READ,
    TOO_MANY,
    UNAUTHORIZED,
    Query,
    RemoteApi,
    RemoteCall,
)
from pumice.actors.real_clusters.remote.backoff import Backoff
from pumice.actors.real_clusters.remote.credentials import Credential
from pumice.core.objects.metadata import Object

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
FIRST_S: Final = 0.05
LONGEST_S: Final = 5.0


class ClusterClient(RemoteApi):
    """To be used as `async with`."""

    kept_open = 256

    def __init__(self, settings: ClusterSettings, *, throttled: bool = True) -> None:
        super().__init__(settings.access, transport=settings.transport)
        self._bucket = TokenBucket(settings.qps if throttled else 0.0, settings.burst)
        self._reached = settings.access
        self._wires: dict[tuple[bytes, bytes], WriteLanes] = {}
        self._direct = settings.transport is None and proxy_of(settings.access) is None

    async def __aexit__(self, *raised: object) -> None:
        with anyio.CancelScope(shield=True):
            for wire in self._wires.values():
                await wire.aclose()
        await super().__aexit__(*raised)

    @asynccontextmanager
    async def _asked(
        self, path: str, query: Query | None, silence_s: float, call: RemoteCall = READ
    ) -> AsyncGenerator[httpx.Response]:
        await self._bucket.take()
        if self._direct and call is not READ:
            yield await self._sent(path, call, silence_s)
            return
        async with super()._asked(path, query, silence_s, call) as answer:
            yield answer

    async def _sent(self, path: str, call: RemoteCall, silence_s: float) -> httpx.Response:
        """The answer to a write, as a whole; asked once more with another credential when that was the matter."""
        shown = await self._credentials.current()
        answer = await self._over_wire(shown, path, call, silence_s)
        if answer.code == UNAUTHORIZED:
            self._credentials.refused()
            answer = await self._over_wire(await self._credentials.current(), path, call, silence_s)
            if answer.code == UNAUTHORIZED:
                self._credentials.refused()
        kept = {name: answer.headers[name] for name in ("retry-after",) if name in answer.headers}
        return httpx.Response(answer.code, headers=kept, content=answer.content)

    async def _over_wire(self, shown: Credential, path: str, call: RemoteCall, silence_s: float) -> WireAnswer:
        url = httpx.URL(self.server)
        host = url.netloc.decode("ascii")
        headers = [("Host", host), ("Accept", JSON), ("User-Agent", "pumice"), ("Content-Type", call.content_type)]
        if shown.header:
            headers.append(("Authorization", shown.header))
        headers += self._reached.impersonation
        request = WireRequest(call.method, url.path.rstrip("/") + path, headers, call.content)
        try:
            with anyio.fail_after(silence_s):
                return await self._wire(shown, url).send(request)
        except (TimeoutError, *BROKEN) as error:
            raise RemoteError(f"{self.server}: no answer: {str(error) or type(error).__name__}") from error

    def _wire(self, shown: Credential, url: httpx.URL) -> WriteLanes:
        """One for each certificate that is shown."""
        key = (shown.certificate, shown.key)
        found = self._wires.get(key)
        if found is None:
            trust = trust_of(self._reached, shown)
            context = trust if isinstance(trust, ssl.SSLContext) else None
            port = url.port or (443 if context else 80)
            found = self._wires[key] = WriteLanes(url.host, port, context, self._reached.server_name)
        return found

    async def create(self, path: str, obj: Object, until: float) -> Object:
        """POST. `until`: event-loop time, seconds. Raises RemoteError, CredentialsError."""
        return await self._write("POST", path, obj, JSON, until)

    async def replace(self, path: str, obj: Object, until: float) -> Object:
        """PUT."""
        return await self._write("PUT", path, obj, JSON, until)

    async def patch(self, path: str, patch: Object, until: float) -> Object:
        """PATCH, as a JSON merge patch."""
        return await self._write("PATCH", path, patch, MERGE_PATCH, until)

    async def delete(self, path: str, options: Object, until: float) -> Object:
        """DELETE."""
        return await self._write("DELETE", path, options, JSON, until)

    async def _write(self, method: str, path: str, obj: Object, type_: str, until: float) -> Object:
        call = RemoteCall(method, msgspec.json.encode(obj), type_)
        backoff = Backoff(random.random, FIRST_S, LONGEST_S)
        problem = RemoteError(f"{method} {path}: its time was up before it was sent")
        with anyio.CancelScope(deadline=until):
            while True:
                try:
                    return await self._answer(path, None, call, ANSWER_S)
                except RemoteError as error:
                    if error.code and error.code != TOO_MANY and error.code < INTERNAL:
                        raise
                    problem = error
                await anyio.sleep(backoff.delay_s(anyio.current_time()))
        raise problem
