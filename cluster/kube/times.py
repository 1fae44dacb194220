"""Times as Kubernetes writes them."""

from __future__ import annotations

from functools import lru_cache

from pumice.core.objects.metadata import format_time


def timestamp(now: float) -> str:
    """RFC 3339 in UTC, whole seconds, as Kubernetes writes times."""
    return written_second(int(now))


@lru_cache(maxsize=256)
def written_second(seconds: int) -> str:
    """RFC 3339 in UTC, of whole seconds since the epoch."""
    return format_time(seconds)


def micro_timestamp(now: float) -> str:
    """RFC 3339 in UTC to the microsecond, as Kubernetes writes the times of a Lease."""
    seconds, micros = divmod(round(now * 1e6), 1_000_000)
    return f"{written_second(seconds)[:-1]}.{micros:06d}Z"
