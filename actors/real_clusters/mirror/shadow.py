# SPDX-License-Identifier: Apache-2.0
"""The shadow: Pumice's decisions from the states in which the cluster's own scheduler decided, and their agreement.

It has a view of its own, of what the api here has heard. A cycle beside decisions that were seen takes, of equally good
nodes, those that were taken there; what is decided or written otherwise while nothing moves counts once it is found at
two looks in a row. Nothing of it is carried out.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from pumice.core.cycle import run_cycle
from pumice.core.fold.shown import Shown
from pumice.core.messages.commands import Append, Entry
from pumice.core.messages.decisions import Evict
from pumice.core.messages.events import ShadowCompared, ShadowDifference
from pumice.core.objects.metadata import Object
from pumice.core.objects.parts import WATCHED
from pumice.core.outside import Supposing
from pumice.core.session.carry import Carry, CycleClock
from pumice.core.shadow.guide import Guide
from pumice.core.shadow.standing import (
    DeedDifference,
    Persistence,
    WrittenThere,
    counted,
    differences,
    differing,
    of_group,
    said,
    standing_of,
    ties,
    wishes_of,
)
from pumice.core.state.view import View
from pumice.core.state.volumes import volume_rules
from pumice.storage import codec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pumice.actors.real_clusters.mirror.changes import RemoteChange
    from pumice.actors.real_clusters.mirror.cycles import Nominated
    from pumice.actors.real_clusters.mirror.settings import ShadowSettings
    from pumice.actors.runtime.clock import Clock
    from pumice.actors.scheduling.config_source import ConfigSource
    from pumice.actors.system.ports import MetricsPort, RecorderPort
    from pumice.core.messages.decisions import CycleResult, Decision

# --- Totals of a shadow

KEPT: Final = 100
"""Number of the newest that are kept for the summary."""
COUNTS: Final = ("decisions", "same", "ties", "other_node", "only_there", "only_here")
STANDING: Final = ("groups", "other_phases", "other_conditions", "waiting", "other_reasons")


@dataclass
class ShadowTotals:
    """All comparisons of this process together; of the present state, the newest."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    newest: ShadowCompared | None = None
    differences: deque[tuple[int, ShadowDifference]] = field(
        default_factory=lambda: deque[tuple[int, ShadowDifference]](maxlen=KEPT)
    )

    def note(self, found: ShadowCompared) -> None:
        """Add one comparison."""
        # Of all comparisons; the counts of the present state are those of the newest.
        for name in COUNTS:
            self.counts[name] += getattr(found, name)
        # A comparison beside decisions does not look at the present state, and has NOT_LOOKED here.
        if found.groups >= 0:
            self.newest = found
        self.differences += [(found.cycle, each) for each in found.differences]

    @property
    def share(self) -> float | None:
        """Return the share of equal decisions; None without decisions."""
        decisions = self.counts["decisions"]
        return self.counts["same"] / decisions if decisions else None

    def to_dict(self) -> Object:
        """Return plain data."""
        newest = self.newest
        stands = {} if newest is None else {name: getattr(newest, name) for name in STANDING}
        told = [{"cycle": cycle, **msgspec.to_builtins(each)} for cycle, each in self.differences]
        return {**self.counts, "share": self.share, **stands, "differences": told}


KINDS: Final = frozenset(WATCHED)
SAID: Final = 20
"""Number of differences of one comparison that are said; the journal has them all."""

log = logging.getLogger(__name__)


class Shadow:
    """Decides as a shadow. It writes through the recorder, and informs the metrics."""

    def __init__(
        self,
        settings: ShadowSettings,
        source: ConfigSource,
        clock: Clock,
        recorder: RecorderPort,
        metrics: MetricsPort,
        totals: ShadowTotals,
    ) -> None:
        self._settings, self._source, self._clock = settings, source, clock
        self._recorder, self._metrics, self.totals = recorder, metrics, totals
        self._shown = Shown(View)
        self._persistence = Persistence()
        self._looked_at = 0.0
        self._seen = -1
        self._unsettled = True

    @property
    def agreeing(self) -> bool:
        """Return whether the shadow decides by the cluster's own configuration, so that both should agree."""
        return self._settings.other is None

    @property
    def unsettled(self) -> bool:
        """Return whether a look at the present state is still to come."""
        return self._unsettled or self._shown.view.version != self._seen

    # --- what there is

    def see(self, change: RemoteChange) -> None:
        """Take in what the api here has from now on."""
        if change.kind in KINDS:
            self._shown.see("DELETED" if change.gone or change.obj is None else "MODIFIED", _object(change))

    def know(self, kind: str, obj: Object) -> None:
        """Note an object that existed before."""
        if kind in KINDS:
            self._shown.see("ADDED", obj)

    # --- comparing

    def beside(
        self, cycle: int, decisions: list[Decision], nominated: Mapping[str, Sequence[Nominated]]
    ) -> ShadowCompared:
        """Compare decisions that were made on the state so far. `nominated`: by node, the pods that wait for room
        there.
        """
        # Under another configuration it follows no choice: the question is what that would do by itself.
        guide = Guide(wishes_of(decisions), follows=self.agreeing)
        there, result = self._decide(cycle, lambda _: guide)
        # What is decided only here may come a moment later there: `look` counts that once it stands.
        found = [each for each in differing(decisions, result, guide) if each.there is not None]
        moved = sum(each.here is not None for each in found)
        return msgspec.structs.replace(
            self._compared(cycle),
            decisions=len(decisions),
            same=len(decisions) - len(found),
            ties=ties(decisions, result, guide),
            other_node=moved,
            only_there=len(found) - moved,
            differences=tuple([_told(each, there, guide, result, nominated) for each in found]),
        )

    async def compared(self, found: ShadowCompared) -> None:
        """Record the comparison of a cycle that is in the journal."""
        self._unsettled = True
        await self._tell(found)

    async def look(self, cycle: int, now: float) -> None:
        """Decide now and then on the state as it is: as long as something changes, and once more after that."""
        version = self._shown.view.version
        if now - self._looked_at < self._settings.look_s or not self.unsettled:
            return
        # The start of the look: a long one must not be followed by the next at once.
        self._looked_at = now
        there, result = self._decide(cycle, lambda there: Guide(there.held, follows=False))
        confirmed = self._persistence.confirmed(differences(there, result))
        # One more look after the last change: a difference counts only at the second look in a row.
        self._unsettled, self._seen = version != self._seen, self._shown.view.version
        new = self._persistence.new(confirmed)
        names, fresh = counted(confirmed), counted(new)
        compared = msgspec.structs.replace(
            self._compared(cycle),
            only_here=fresh.get("bind", 0) + fresh.get("evict", 0),
            groups=len(there.phases),
            other_phases=names.get("phase", 0),
            other_conditions=names.get("condition", 0),
            waiting=len(there.waiting),
            other_reasons=names.get("reason", 0),
            differences=tuple(new),
        )
        await self._tell(compared)

    def _decide(self, cycle: int, beside: Callable[[WrittenThere], Guide]) -> tuple[WrittenThere, CycleResult]:
        config = self._settings.other or self._source.loaded.config
        snapshot = self._shown.view.snapshot(volume_rules(config))
        there = standing_of(snapshot)
        clock = CycleClock(cycle, self._clock.now())
        # An empty Carry, since what the other scheduler remembers cannot be seen; and extenders are not asked twice.
        return there, run_cycle(snapshot, config, clock, Carry(), ask=Supposing(), trail=beside(there))

    def _compared(self, cycle: int) -> ShadowCompared:
        settings, loaded = self._settings, self._source.loaded
        other = settings.other is not None
        source, digest = (settings.source, settings.digest) if other else (loaded.source, loaded.digest)
        return ShadowCompared(cycle, self._clock.now(), digest, source, other)

    # --- telling

    async def _tell(self, compared: ShadowCompared) -> None:
        told = compared.differences
        self.totals.note(compared)
        await self._recorder.ask(Append((Entry("shadow", codec.encode(compared)),)), through=True)
        await self._metrics.tell(compared)
        whose = compared.source if compared.other else "Pumice"
        for each in told[:SAID]:
            log.warning("cycle %d: %s", compared.cycle, sentence(each, whose))
        if len(told) > SAID:
            log.warning("cycle %d: %d more differences, all in the journal", compared.cycle, len(told) - SAID)
        if compared.decisions:
            share = self.totals.share
            log.info(
                "cycle %d: %d decisions of the cluster's, %d the same here (%d of equally good nodes); so far %s",
                compared.cycle, compared.decisions, compared.same, compared.ties,
                "nothing" if share is None else f"{share:.1%}",
            )  # fmt: skip


def sentence(each: ShadowDifference, whose: str) -> str:
    """Return a difference in words."""
    there = f"{each.there or 'nothing'}{_because(each.why_there)}"
    here = f"{each.here or 'nothing'}{_because(each.why_here)}"
    return f"{each.what} of {each.name}: there {there}; {whose}: {here}"


def _because(why: str) -> str:
    return f" ({why})" if why else ""


def _told(
    each: DeedDifference,
    there: WrittenThere,
    guide: Guide,
    result: CycleResult,
    nominated: Mapping[str, Sequence[Nominated]],
) -> ShadowDifference:
    pod = each.pod
    if isinstance(pod, Evict):
        return _not_evicted(pod, there, guide, result, nominated.get(pod.node, ()))
    name = f"{pod.namespace}/{pod.name}"
    wrote = said(there.waiting.get(name, ("", ""))) or of_group(there, pod.job)
    if each.here is not None:
        here = each.choice.node if each.choice is not None else each.here.node
        return ShadowDifference("bind", name, pod.node, here, wrote, "" if each.choice is None else each.choice.words())
    return ShadowDifference("bind", name, pod.node, "", wrote, _why_waiting(name, pod.uid, pod.job, guide, result))


def _not_evicted(
    victim: Evict, there: WrittenThere, guide: Guide, result: CycleResult, nominated: Sequence[Nominated]
) -> ShadowDifference:
    """Return why the victim is not evicted here: the reason for which the pods that got its room there need none of it
    here.
    """
    wrote, why = [victim.reason], list[str]()
    for each in nominated:
        wrote.append(f"for {each.key}")
        others = [f"{one.namespace}/{one.name}" for one in result.evicts if one.preemptor == each.key]
        bound = next((one.node for one in result.binds if one.uid == each.uid), "")
        if others:
            why.append(f"{each.key} takes the room of {', '.join(others)}")
        elif bound:
            why.append(f"{each.key} is bound to {bound}")
        else:
            waits = _why_waiting(each.key, each.uid, each.job, guide, result)
            why.append(f"{each.key}: {waits or said(there.waiting.get(each.key, ('', '')))}")
    name = f"{victim.namespace}/{victim.name}"
    return ShadowDifference("evict", name, victim.node, "", " ".join(filter(None, wrote)), "; ".join(why))


def _why_waiting(name: str, uid: str, job: str, guide: Guide, result: CycleResult) -> str:
    found = [said((one.reason, one.message)) for one in result.pod_conditions if one.uid == uid]
    return "; ".join(filter(None, [guide.endings.get(name) or guide.endings.get(job, ""), *found]))


def _object(change: RemoteChange) -> Object:
    if change.obj is not None:
        return change.obj
    return {"kind": change.kind, "metadata": {"namespace": change.namespace, "name": change.name}}
