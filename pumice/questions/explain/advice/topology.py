"""Changes about the network topology that a job, or a group of its pods, asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from pumice.core.objects.metadata import Object, section
from pumice.questions.explain.advice.changes import Change, ChangeFamily, Edit, single
from pumice.questions.explain.advice.groups import WaitingGroup

Place = Callable[[Object], dict[str, Any]]
"""Finds what is asked for in a PodGroup."""
ALLOWED: Final = "highestTierAllowed"
BY_NAME: Final = "highestTierName"


def about_topology(group: WaitingGroup) -> Iterator[ChangeFamily]:
    """A wider tier, or none that has to be; of each that is asked for."""
    specs = [section(obj, "spec") for who, obj in group.objects.items() if who[0] == "HyperNode"]
    tiers = {int(spec.get("tier") or 0): str(spec.get("tierName") or "") for spec in specs}
    by_name = {name: tier for tier, name in tiers.items() if name}
    for who, place in _places(group):
        asked = place(group.pod_group)
        if asked.get("mode") == "soft":
            continue
        highest = asked.get(ALLOWED, by_name.get(str(asked.get(BY_NAME))))
        wider = sorted(tier for tier in tiers if highest is not None and tier > int(highest))
        if highest is not None and wider:
            yield _wider(group, who, place, [int(highest), *wider])
        yield single(1, f"network topology {who}soft instead of hard", Edit(group.who, _softened(place)))


def _places(group: WaitingGroup) -> Iterator[tuple[str, Place]]:
    spec = section(group.pod_group, "spec")
    if spec.get("networkTopology"):
        yield "", lambda obj: obj["spec"]["networkTopology"]
    for number, policy in enumerate(spec.get("subGroupPolicy") or ()):
        if policy.get("networkTopology"):
            yield f"of group {policy.get('name') or number} ", _of_policy(number)


def _of_policy(number: int) -> Place:
    return lambda obj: obj["spec"]["subGroupPolicy"][number]["networkTopology"]


def _wider(group: WaitingGroup, who: str, place: Place, tiers: list[int]) -> ChangeFamily:
    """`tiers`: the one that is allowed, and those above."""

    def of(size: int) -> Change:
        def change(obj: Object) -> None:
            asked = place(obj)
            asked[ALLOWED] = tiers[size]
            asked.pop(BY_NAME, None)

        words = f"network topology {who}{ALLOWED} {tiers[size]} instead of {tiers[0]}"
        return Change(words, (Edit(group.who, change),))

    return ChangeFamily(1, len(tiers) - 1, of)


def _softened(place: Place) -> Callable[[Object], None]:
    def change(obj: Object) -> None:
        asked = place(obj)
        asked["mode"] = "soft"
        for name in (ALLOWED, BY_NAME):
            asked.pop(name, None)

    return change
