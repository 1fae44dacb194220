"""Whatever may happen on the way to a cluster, drawn from a seed: to lists, to watches, and to what is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import anyio
import httpx

EXPIRED: dict[str, Any] = {
    "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "too old", "reason": "Expired", "code": 410,
}  # fmt: skip
ANY = ("late", "lost", "throttled", "failing")
WATCHES = (*ANY, "expired", "expired later", "reset", "truncated", "ended", "slow", "repeated")
WRITES = (*ANY, "unanswered", "answered late", "twice")
LATE_S = 3.0
OF_WATCHES = 0.8
"""There are few of them, and they last."""


class Events(httpx.AsyncByteStream):
    """A watch with this fault: it ends after so many parts, or each part comes late or twice."""

    def __init__(self, inner: httpx.Response, fault: str, chance: Random) -> None:
        self._inner, self._fault, self._chance = inner, fault, chance
        self._left = chance.randint(1, 12)
        assert isinstance(inner.stream, AsyncIterator)
        self._parts: AsyncIterator[bytes] = inner.stream

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self._left:
            raise httpx.ReadError("the connection was reset") if self._fault == "reset" else StopAsyncIteration
        part = await self._parts.__anext__()
        match self._fault:
            case "slow":
                await anyio.sleep(self._chance.uniform(0.0, LATE_S))
            case "repeated":
                return part + part
            case _:
                self._left -= 1
        return part[: len(part) // 2] if self._fault == "truncated" and not self._left else part

    async def aclose(self) -> None:
        await self._inner.aclose()


class StormyWay(httpx.AsyncBaseTransport):
    """`share` of the requests, and most watches, meet a fault until `calm`; `struck` counts which, `writes` what was
    tried to write.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport, seed: int, share: float) -> None:
        self._inner, self._chance, self._share = inner, Random(seed), share
        self.struck, self.writes = Counter[str](), list[str]()
        self.calm = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        watches, writes = "watch" in request.url.params, request.method != "GET"
        if writes:
            self.writes.append(f"{request.method} {request.url.path}")
        kinds = WATCHES if watches else WRITES if writes else ANY
        share = OF_WATCHES if watches else self._share
        fault = self._chance.choice(kinds) if not self.calm and self._chance.random() < share else ""
        if fault:
            self.struck[fault] += 1
        return await self._answered(request, fault, watches=watches)

    async def _answered(self, request: httpx.Request, fault: str, *, watches: bool) -> httpx.Response:
        match fault:
            case "lost":
                raise httpx.ConnectError("nobody answers")
            case "throttled":
                return httpx.Response(429, headers={"Retry-After": "1"}, json={"message": "slow down"})
            case "failing":
                return httpx.Response(self._chance.choice((500, 502, 503, 504)), text="<html>oops</html>")
            case "expired":
                return httpx.Response(410, json=EXPIRED)
            case "expired later":
                return httpx.Response(200, json={"type": "ERROR", "object": EXPIRED})
            case "late":
                await anyio.sleep(self._chance.uniform(0.0, LATE_S))
            case "twice":
                await (await self._inner.handle_async_request(request)).aclose()
            case _:
                pass
        answer = await self._inner.handle_async_request(request)
        if watches and fault and fault != "late":
            return httpx.Response(answer.status_code, stream=Events(answer, fault, self._chance))
        if fault == "unanswered":
            await answer.aclose()
            raise httpx.ReadError("the answer was lost")
        if fault == "answered late":
            try:
                await anyio.sleep(self._chance.uniform(0.0, LATE_S))
            except BaseException:
                await answer.aclose()
                raise
        return answer

    async def aclose(self) -> None:
        """More than one client goes this way."""
