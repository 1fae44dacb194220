"""Changes about whom others may be evicted for: queues that give nothing back, or deserve much, and actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from pumice.config.schema import SchedulerConfig
from pumice.core.objects.metadata import Object, section
from pumice.questions.explain.advice.changes import Change, ChangeFamily, Edit, Identity
from pumice.questions.explain.advice.groups import WaitingGroup
from pumice.questions.explain.advice.limits import what_deserves

RECLAIMING: Final = ("reclaim", "gangreclaim")
PREEMPTING: Final = ("preempt", "gangpreempt")
MOST: Final = 10
"""So many queues are tried by themselves, those with the most jobs first."""


def about_victims(group: WaitingGroup) -> Iterator[ChangeFamily]:
    """All there are."""
    if set(RECLAIMING) & set(group.actions):
        yield from _reclaimable(group)
        for who in _other_queues(group)[:MOST]:
            yield from what_deserves(group, who)
    for action, alike in (("preempt", PREEMPTING), ("reclaim", RECLAIMING)):
        if not set(alike) & set(group.actions):
            change = Change(f"action {action} in the configuration", config=_with_action(action), amount=1.0)
            yield ChangeFamily(4, 1, _always(change))


def _reclaimable(group: WaitingGroup) -> Iterator[ChangeFamily]:
    """Other queues that are said not to give back what they have: each by itself, then all."""
    closed = [who for who in _other_queues(group) if section(group.objects[who], "spec").get("reclaimable") is False]
    for who in closed[:MOST]:
        yield ChangeFamily(2, 1, _always(_giving(who)))
    if len(closed) > 1:
        names = ", ".join(who[2] for who in closed[:MOST])
        words = f"{len(closed)} queues ({names}{', …' * (len(closed) > MOST)}): reclaimable true"
        every = Change(words, tuple(Edit(who, _give) for who in closed))
        yield ChangeFamily(3, 1, _always(every))


def _other_queues(group: WaitingGroup) -> list[Identity]:
    """Those that have jobs, the one with the most first."""
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
    """Before backfill, as Volcano's own configurations have it."""

    def changed(before: SchedulerConfig) -> SchedulerConfig:
        actions = list(before.actions)
        actions.insert(actions.index("backfill") if "backfill" in actions else len(actions), action)
        return msgspec.structs.replace(before, actions=tuple(actions))

    return changed
