"""Sums of amounts by name, and what of them is too much."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from pumice.proof.storm.invariants.pod_book import Amounts

Sums = defaultdict[str, defaultdict[str, int]]


def no_sums() -> Sums:
    """Nothing of anything."""
    return defaultdict(lambda: defaultdict(int))


def add_up(sums: Sums, name: str, requests: Amounts, sign: int) -> None:
    """More of these (1), or less (-1)."""
    totals = sums[name]
    for resource, amount in requests.items():
        totals[resource] += sign * amount


def what_is_over(totals: Amounts, allowed: Amounts, unnamed: int | None) -> Iterator[tuple[str, str]]:
    """What is too much, and in words. `unnamed`: the limit of what `allowed` does not name; None: there is none."""
    for resource, amount in totals.items():
        limit = allowed.get(resource, unnamed)
        if limit is not None and amount > limit:
            yield resource, f"{resource} {amount / 1000:g} of {limit / 1000:g}"


def greatest(all_of: list[Amounts]) -> Amounts:
    """Of each amount the greatest."""
    if len(all_of) == 1:
        return all_of[0]
    names = {name for each in all_of for name in each}
    return {name: max(each.get(name, 0) for each in all_of) for name in sorted(names)}
