# SPDX-License-Identifier: Apache-2.0
"""Actions of the cluster's own scheduler, as the journal keeps them: cycles, decisions, outcomes, its configuration."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pumice.actors.real_clusters.mirror.shadow import ShadowTotals
from pumice.config import rules
from pumice.config.errors import ConfigError
from pumice.config.unwrap import conf_keys
from pumice.core.messages.commands import Append, Entry
from pumice.core.messages.decisions import Bind, Decision
from pumice.core.messages.events import Bound, ConfigLoaded, CycleRecord, Evicted
from pumice.core.objects.metadata import Object, section
from pumice.storage import codec

if TYPE_CHECKING:
    from pumice.actors.real_clusters.mirror.cycles import ObservedCycle
    from pumice.actors.runtime.clock import Clock
    from pumice.actors.scheduling.config_source import ConfigSource
    from pumice.actors.system.ports import RecorderPort
    from pumice.config.settings import ConfigMapName


log = logging.getLogger(__name__)


@dataclass
class ObservedCycles:
    """State of the mirror. `newest`: the number of the newest cycle in the journal; `shadow`: the results of
    comparisons; `seen`: whether the cluster was seen as a whole since the start. One writer, the mirror; it outlives
    its restarts: numbers go on.
    """

    newest: int = 0
    seen: bool = False
    shadow: ShadowTotals = field(default_factory=ShadowTotals)


class Observed:
    """Writes through the recorder."""

    def __init__(self, recorder: RecorderPort, clock: Clock, source: ConfigSource, memory: ObservedCycles) -> None:
        self._recorder = recorder
        self._clock = clock
        self._source = source
        self._memory = memory

    @property
    def newest(self) -> int:
        """Return the number of the newest cycle."""
        return self._memory.newest

    async def record(self, cycle: ObservedCycle, revision: int) -> int:
        """Record a cycle that saw everything up to `revision` of the api here, and return the journal number of its
        first decision.
        """
        number = self._memory.newest + 1
        record = CycleRecord(
            cycle=number,
            now=self._clock.now(),
            seed=0,
            revision=revision,
            version=revision,
            config_digest=self._source.loaded.digest,
            digest="",
            decisions=len(cycle.decided),
            rules=rules.VERSION,
            observed=True,
        )
        first, *decided = codec.encode_many((record, *cycle.decided))
        # -1 names the first entry of the same Append, the cycle, as the cause (`Recorder.handle_batch`).
        entries = (Entry("cycle", first), *(Entry("decision", each, -1) for each in decided))
        appended = await self._recorder.ask(Append(entries), through=True)
        self._memory.newest = number
        # The first record is the cycle's own.
        return appended.first + 1

    async def outcomes(self, cycle: ObservedCycle, first: int) -> None:
        """Record that decisions were carried out, since otherwise they would not have been seen."""
        number = self._memory.newest
        outcomes = [_outcome(number, first + place, each) for place, each in enumerate(cycle.decided)]
        entries = [Entry("outcome", codec.encode(each), each.sequence) for each in outcomes]
        await self._recorder.ask(Append(tuple(entries)), through=True)

    async def configure(self, config_map: Object, name: ConfigMapName) -> None:
        """Record the configuration that explains the following cycles; an unusable one is reported, and the old one
        kept.
        """
        meta, data = section(config_map, "metadata"), section(config_map, "data")
        keys = conf_keys(data)
        if (meta.get("namespace"), meta.get("name")) != (name.namespace, name.name) or len(keys) != 1:
            return
        try:
            self._source.offer(str(data[keys[0]]), name.said)
            loaded = self._source.look()
        except ConfigError as error:
            log.error("the configuration of the cluster was not taken, the old one stays: %s", error)
            await self._config(ConfigLoaded("", "", name.said, str(error)))
        else:
            if loaded is not None:
                await self._config(loaded.told())

    async def _config(self, told: ConfigLoaded) -> None:
        await self._recorder.ask(Append((Entry("config", codec.encode(told)),)), through=True)


def _outcome(cycle: int, sequence: int, decision: Decision) -> Bound | Evicted:
    cause = f"{cycle}/{decision.uid}"
    if isinstance(decision, Bind):
        return Bound(cause, sequence, decision.namespace, decision.name, decision.uid, decision.node)
    return Evicted(cause, sequence, decision.namespace, decision.name, decision.uid)
