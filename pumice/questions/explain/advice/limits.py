# SPDX-License-Identifier: Apache-2.0
"""Changes of a job's limits: its queue, those above, quotas, and victims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, gcd
from typing import Final

import msgspec

from pumice.config.schema import SchedulerConfig
from pumice.core.objects.metadata import Object, section
from pumice.core.quantity import quantity_of
from pumice.questions.explain.advice.changes import Change, ChangeFamily, Edit, Group, Identity
from pumice.questions.explain.advice.groups import WaitingGroup
from pumice.units import short_quantity

OTHERS: Final = 4
"""A limit is raised by up to so many times what the job asks for: others that wait come first."""
HEAVIEST: Final = 100
"""People set no greater weight than this."""
DESERVED: Final = "deserved"
PARTS: Final = ("capability", DESERVED)


@dataclass(frozen=True)
class LimitTable:
    """One object's limits (resource -> text) on requested resources: `paths` are their places in it, `what` its name
    for people. `asked` and `grain`: see `WaitingGroup`.
    """

    who: Identity
    paths: Sequence[tuple[str, str]]
    listed: Mapping[str, str]
    what: str
    asked: Mapping[str, float]
    grain: Mapping[str, int]

    def family(self, name: str) -> ChangeFamily:
        """Return changes that give more of one resource."""
        return self._family(2, name, 1, OTHERS * self.asked[name])

    def lower(self, name: str) -> ChangeFamily:
        """Return changes that lower a limit, not to 0, which would mean that it does not count."""
        return self._family(3, name, -1, _count(name, self.listed[name]) - self._grain(name))

    def _grain(self, name: str) -> int:
        """Return the least step of a limit that anything could depend on."""
        return max(1, gcd(self.grain.get(name, 0), _count(name, self.listed[name])))

    def _family(self, rank: int, name: str, sign: int, most: float) -> ChangeFamily:
        grain = self._grain(name)

        def of(size: int) -> Change:
            after = quantity_of(self.listed[name]).plus(quantity_of(_text(name, sign * grain * size))).canonical()

            def change(obj: Object) -> None:
                for part, field in self.paths:
                    held = obj.setdefault(part, {})
                    held[field] = {**(held.get(field) or {}), name: after}

            words = f"{self.what} {name} {short_quantity(after)} instead of {self.listed[name]}"
            part = grain * size / self.asked[name]
            return Change(words, (Edit(self.who, change),), amount=part, subject=f"{self.what} ")

        return ChangeFamily(rank, ceil(most / grain), of)


def about_limits(group: WaitingGroup) -> Iterator[ChangeFamily]:
    """Yield each limit by itself."""
    for table in _tables(group):
        yield from map(table.family, table.listed)
    yield from _weights(group)


def joint_limits(group: WaitingGroup) -> Iterator[Group]:
    """Yield all limits of one table together, although some may turn out to be wide enough."""
    for table in _tables(group):
        if len(table.listed) > 1:
            yield tuple(replace(table.family(name), least=0) for name in table.listed)


def _tables(group: WaitingGroup) -> Iterator[LimitTable]:
    for who in _upwards(group):
        spec = section(group.objects[who], "spec")
        for field in PARTS:
            if listed := _raisable(group.asked, spec.get(field)):
                yield _of_queue(group, who, field, listed)
    yield from _quotas(group)


def _of_queue(group: WaitingGroup, who: Identity, field: str, listed: Mapping[str, str]) -> LimitTable:
    return LimitTable(who, (("spec", field),), listed, f"queue {who[2]}: {field}", group.asked, group.grain)


def what_deserves(group: WaitingGroup, who: Identity) -> Iterator[ChangeFamily]:
    """Yield another queue with a lower deserved amount of the requested resources."""
    listed = _raisable(group.asked, section(group.objects[who], "spec").get(DESERVED))
    families = map(_of_queue(group, who, DESERVED, listed).lower, listed)
    yield from (family for family in families if family.most > 0)


def _upwards(group: WaitingGroup) -> Iterator[Identity]:
    """Yield its queue and those above."""
    seen = set[Identity]()
    who = group.queue
    while who in group.objects and who not in seen:
        yield who
        seen.add(who)
        who = ("Queue", "", str(section(group.objects[who], "spec").get("parent") or ""))


def _weights(group: WaitingGroup) -> Iterator[ChangeFamily]:
    queue = group.objects.get(group.queue)
    weight = int(section(queue or {}, "spec").get("weight") or 1)
    if queue is None or weight >= HEAVIEST:
        return

    def heavier(size: int) -> Change:
        words = f"queue {group.queue[2]}: weight {weight + size} instead of {weight}"
        edit = Edit(group.queue, lambda obj: obj["spec"].update(weight=weight + size))
        return Change(words, (edit,), amount=size / weight)

    yield ChangeFamily(3, HEAVIEST - weight, heavier)


def _quotas(group: WaitingGroup) -> Iterator[LimitTable]:
    """Yield the quotas of its namespace that limit the job's minimum, by the names that quotas have for resources."""
    minimum: dict[str, str] = section(section(group.pod_group, "spec"), "minResources")
    asked = {name: float(_count(name, text)) for name, text in minimum.items()}
    minima = _grain_of_minima(group)
    for who, quota in group.objects.items():
        if who[:2] != ("ResourceQuota", group.who[1]):
            continue
        hard = section(section(quota, "status"), "hard") or section(section(quota, "spec"), "hard")
        used: dict[str, str] = section(section(quota, "status"), "used")
        if listed := _raisable(asked, hard):
            grain = {name: gcd(minima.get(name, 0), _count(name, used.get(name, "0"))) for name in listed}
            yield LimitTable(who, (("spec", "hard"), ("status", "hard")), listed, f"quota {who[2]}: hard", asked, grain)


def _grain_of_minima(group: WaitingGroup) -> dict[str, int]:
    """Return the greatest common divisor of all minimums of the namespace's jobs, by the quotas' names."""
    grain: dict[str, int] = {}
    for who, obj in group.objects.items():
        if who[:2] == group.who[:2]:
            minimum: dict[str, str] = section(section(obj, "spec"), "minResources")
            for name, text in minimum.items():
                grain[name] = gcd(grain.get(name, 0), _count(name, text))
    return grain


def _raisable(asked: Mapping[str, float], limits: Mapping[str, str] | None) -> dict[str, str]:
    """Return the entries that limit what the job asks for."""
    return {name: str(text) for name, text in (limits or {}).items() if asked.get(name)}


def _whole(name: str) -> bool:
    return name.endswith("memory") or name == "pods"


def _count(name: str, text: str) -> int:
    """Return memory in bytes, pods whole, all others in thousandths."""
    quantity = quantity_of(text)
    return quantity.value() if _whole(name) else quantity.milli_value()


def _text(name: str, count: int) -> str:
    return f"{count}" if _whole(name) else f"{count}m"


# --- Victims

RECLAIMING: Final = ("reclaim", "gangreclaim")
PREEMPTING: Final = ("preempt", "gangpreempt")
MOST: Final = 10
"""Number of queues that are tried by themselves, those with the most jobs first."""


def about_victims(group: WaitingGroup) -> Iterator[ChangeFamily]:
    """Yield all changes about victims."""
    if set(RECLAIMING) & set(group.actions):
        yield from _reclaimable(group)
        for who in _other_queues(group)[:MOST]:
            yield from what_deserves(group, who)
    for action, alike in (("preempt", PREEMPTING), ("reclaim", RECLAIMING)):
        if not set(alike) & set(group.actions):
            change = Change(f"action {action} in the configuration", config=_with_action(action), amount=1.0)
            yield ChangeFamily(4, 1, _always(change))


def _reclaimable(group: WaitingGroup) -> Iterator[ChangeFamily]:
    """Yield other queues that do not allow reclaim: each by itself, then all."""
    closed = [who for who in _other_queues(group) if section(group.objects[who], "spec").get("reclaimable") is False]
    for who in closed[:MOST]:
        yield ChangeFamily(2, 1, _always(_giving(who)))
    if len(closed) > 1:
        names = ", ".join(who[2] for who in closed[:MOST])
        words = f"{len(closed)} queues ({names}{', …' * (len(closed) > MOST)}): reclaimable true"
        every = Change(words, tuple(Edit(who, _give) for who in closed))
        yield ChangeFamily(3, 1, _always(every))


def _other_queues(group: WaitingGroup) -> list[Identity]:
    """Return the queues that have jobs, the one with the most first."""
    groups = (obj for who, obj in group.objects.items() if who[0] == "PodGroup")
    jobs = Counter(str(section(obj, "spec").get("queue")) for obj in groups)
    others = [who for who in group.objects if who[0] == "Queue" and who != group.queue and jobs[who[2]]]
    return sorted(others, key=lambda who: (-jobs[who[2]], who[2]))


def _giving(who: Identity) -> Change:
    return Change(f"queue {who[2]}: reclaimable true instead of false", (Edit(who, _give),))


def _give(queue: Object) -> None:
    queue["spec"]["reclaimable"] = True


def _always(change: Change) -> Callable[[int], Change]:
    return lambda _: change


def _with_action(action: str) -> Callable[[SchedulerConfig], SchedulerConfig]:
    """Return the actions with one more before backfill, as in Volcano's own configurations."""

    def changed(before: SchedulerConfig) -> SchedulerConfig:
        actions = list(before.actions)
        actions.insert(actions.index("backfill") if "backfill" in actions else len(actions), action)
        return msgspec.structs.replace(before, actions=tuple(actions))

    return changed
