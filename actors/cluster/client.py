"""Reading from a real API server and writing to it, no more often than it may be asked.

Each write can be made twice without harm (a bind of the same pod to the same node, a patch of one resourceVersion, an
event of its own name), so what got no answer is tried again, with delays that grow, until its time is up.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import httpx
import msgspec

from actors.cluster.settings import ClusterSettings
from actors.cluster.throttle import TokenBucket
from actors.errors import RemoteError
from actors.remote.api import ANSWER_S, INTERNAL, READ, TOO_MANY, Query, RemoteApi, RemoteCall
from actors.remote.backoff import Backoff

Object = dict[str, Any]

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

    @asynccontextmanager
    async def _asked(
        self, path: str, query: Query | None, silence_s: float, call: RemoteCall = READ
    ) -> AsyncGenerator[httpx.Response]:
        await self._bucket.take()
        async with super()._asked(path, query, silence_s, call) as answer:
            yield answer

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
