"""Requests a second, in the long run and at once (source: client-go's `flowcontrol.NewTokenBucketRateLimiter`)."""

from __future__ import annotations

import anyio


class TokenBucket:
    """`burst` tokens at first and at most, `qps` more each second; without a `qps` there are always enough."""

    def __init__(self, qps: float, burst: int) -> None:
        self._qps = qps
        self._burst = float(max(burst, 1))
        self._left = self._burst
        self._at: float | None = None

    def delay_s(self, now: float) -> float:
        """Take one at `now` (seconds of a clock that only goes on); how long to wait for it."""
        if self._qps <= 0:
            return 0.0
        since = 0.0 if self._at is None else now - self._at
        self._at = now
        self._left = min(self._left + since * self._qps, self._burst) - 1.0
        return max(-self._left / self._qps, 0.0)

    async def take(self) -> None:
        """Return when it is there. Who comes first has it first."""
        delay = self.delay_s(anyio.current_time())
        if delay:
            await anyio.sleep(delay)
