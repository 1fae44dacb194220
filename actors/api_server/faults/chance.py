"""Throws of dice that come out the same every time: a storm is a function of its seed."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b


def chance(seed: int, what: str) -> float:
    """A number in [0, 1) that depends on the arguments alone."""
    hashed = _begun(seed).copy()
    hashed.update(what.encode())
    return int.from_bytes(hashed.digest(), "big") / 2**56


@lru_cache(maxsize=16)
def _begun(seed: int) -> blake2b:
    """The hash of what all throws of a seed begin with: a copy of it costs less than another one."""
    return blake2b(f"{seed}\0".encode(), digest_size=7)
