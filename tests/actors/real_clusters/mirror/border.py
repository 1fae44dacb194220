"""The way to a cluster, with faults drawn from a seed: what is late, lost, refused, expired, cut off or broken off."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from random import Random
from typing import Any

import anyio
import httpx

from tests.actors.real_clusters.mirror.rig import ReadingOnly

EXPIRED: dict[str, Any] = {
    "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "too old", "reason": "Expired", "code": 410,
}  # fmt: skip
ENDINGS = ("reset", "truncated", "whole")


class Broken(httpx.AsyncByteStream):
    """An answer that ends after so many bytes: with a reset, or as if it were over in the middle of a line."""

    def __init__(self, inner: httpx.Response, budget: int, ending: str) -> None:
        self._inner, self._budget, self._ending = inner, budget, ending

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts = self._inner.aiter_raw()
        async for part in parts:
            yield part[: self._budget]
            self._budget -= len(part)
            if self._budget <= 0:
                break
        with anyio.CancelScope() as scope, suppress(httpx.HTTPError):  # httpx's own generators end in order
            scope.cancel()
            async for _ in parts:
                pass
        if self._budget <= 0 and self._ending == "reset":
            raise httpx.ReadError("the connection was reset")

    async def aclose(self) -> None:
        await self._inner.aclose()


class FaultyWay(ReadingOnly):
    """`share` of the requests meet a fault; `struck` counts which. Whatever it does, nobody may write this way."""

    def __init__(self, seed: int, share: float = 0.35) -> None:
        super().__init__()
        self.struck: Counter[str] = Counter()
        self._chance = Random(seed)
        self.share = share

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        watches = "watch" in request.url.params
        fault = self._drawn(watches)
        if fault is not None:
            self.struck[fault] += 1
        match fault:
            case "late":
                await anyio.sleep(self._chance.uniform(0.0, 0.05))
            case "lost":
                self.reads.append(request.url.path)
                raise httpx.ConnectError("nobody answers")
            case "throttled":
                return httpx.Response(429, headers={"Retry-After": "0"}, json={"message": "slow down"})
            case "failing":
                return httpx.Response(self._chance.choice((500, 502, 503)), text="<html>oops</html>")
            case "expired":
                return httpx.Response(410, json=EXPIRED)
            case "expired later":
                return httpx.Response(
                    200, content=httpx.Response(200, json={"type": "ERROR", "object": EXPIRED}).content
                )
            case _:
                pass
        answer = await super().handle_async_request(request)
        if fault in ENDINGS and watches:
            broken = Broken(answer, self._chance.randint(1, 4_000), fault)
            return httpx.Response(answer.status_code, headers={"content-type": "application/json"}, stream=broken)
        return answer

    def _drawn(self, watches: bool) -> str | None:
        if self._chance.random() >= self.share:
            return None
        usual = ["late", "lost", "throttled", "failing"]
        return self._chance.choice([*usual, "expired", "expired later", "reset", "truncated"] if watches else usual)
