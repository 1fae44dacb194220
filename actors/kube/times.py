"""Times as Kubernetes writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


def timestamp(now: float) -> str:
    """RFC 3339 in UTC, whole seconds, as Kubernetes writes times."""
    return written_second(int(now))


@lru_cache(maxsize=256)
def written_second(seconds: int) -> str:
    """RFC 3339 in UTC, of whole seconds since the epoch."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
