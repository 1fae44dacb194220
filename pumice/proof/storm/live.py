# SPDX-License-Identifier: Apache-2.0
"""A storm's faults on the real clock, under `pumice run --faults`: the invariants are checked after every record, and
at the end of the run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio

from pumice.actors.api_server.faults.strikes import OUTSIDE, Faults, SeededFaults
from pumice.actors.scheduling.core_decider import core_decider
from pumice.actors.system.roles import CRASHABLE
from pumice.cluster.api.store import Store
from pumice.proof.storm.invariants.books import compare_view, lost_in_journal, without_reason
from pumice.proof.storm.invariants.monitor import Monitor
from pumice.proof.storm.invariants.soon import until_idle
from pumice.proof.storm.script.profile_file import Profile
from pumice.proof.storm.script.profiles import profile
from pumice.runtime.summary import BrokenInvariant, FaultsFound
from pumice.storage.recovery import recover

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from pumice.actors.scheduling.decider import Decider
    from pumice.actors.system.settings import SystemSettings
    from pumice.actors.system.system import System
    from pumice.storage.journal import ChainReport, Checkpoint, Head, Journal, Record, Stored
    from pumice.storage.retention import Retention

# --- The watched journal


class WatchedJournal:
    """The journal `inner`; `see` is called with the appended records.

    `faults` may make it slow, and nothing else: a write that fails ends the process.
    """

    def __init__(self, inner: Journal, see: Callable[[Sequence[Record]], None], faults: Faults) -> None:
        self._inner = inner
        self._see = see
        self._faults = faults

    async def append(self, records: Sequence[Record]) -> int:
        """Write, immediately or late, then show."""
        fault = self._faults.strike_append()
        if fault is not None:
            await anyio.sleep(fault.amount)
        last = await self._inner.append(records)
        self._see(records)
        return last

    async def read(self, after: int = 0, kinds: Collection[str] | None = None, limit: int = 10_000) -> Sequence[Stored]:
        """Read at most `limit` records (of these kinds) numbered above `after`, oldest first."""
        return await self._inner.read(after, kinds, limit)

    async def weigh(self, after: int, through: int) -> int:
        """Return the bytes of the records above `after`, up to `through`."""
        return await self._inner.weigh(after, through)

    async def last(self, kind: str) -> Stored | None:
        """Return the newest record of a kind."""
        return await self._inner.last(kind)

    async def head(self) -> Head:
        """Return both ends."""
        return await self._inner.head()

    async def check(self) -> ChainReport:
        """Read everything and verify the chain."""
        return await self._inner.check()

    async def save_checkpoint(self, checkpoint: Checkpoint) -> int:
        """Keep a checkpoint, and return the number of the newest record."""
        return await self._inner.save_checkpoint(checkpoint)

    async def checkpoints(self) -> Sequence[Checkpoint]:
        """Return the checkpoints there are, newest first."""
        return await self._inner.checkpoints()

    async def cut(self, through: int) -> int:
        """Forget the records up to `through`, and return the last forgotten one."""
        return await self._inner.cut(through)

    async def trim(self, retention: Retention, now: float) -> None:
        """Forget the records that no rule keeps."""
        await self._inner.trim(retention, now)

    async def confirm(self) -> None:
        """Make the appended records durable."""
        await self._inner.confirm()

    async def close(self) -> None:
        """Close `inner`."""
        await self._inner.close()


AHEAD: Final = ("node-agents", "arrivals")
"""Actors whose timers are for future events, not for retries."""
LONGEST_S: Final = 1.0
ANSWER_TIMEOUT_S: Final = 5.0
REST_S: Final = 120.0
"""Seconds in which the system must settle once the faults have stopped."""
INTERRUPTED_S: Final = 2.0
PERIOD_S: Final = 1.0
"""Volcano's time between two cycles."""
NOT_LIVE: Final = frozenset(("journal-failing", "journal-unsure", "journal-torn", *OUTSIDE))
"""They end the process, and a simulated one is started again; or strike an extender, which is a real one here."""

GIVEN_UP_S: Final = 3 * ANSWER_TIMEOUT_S - 1.0
"""Until then no outcome is given up."""
MOST: Final = 100
"""Number of violations of one invariant that are reported."""


class LiveMonitor(Monitor):
    """Notes violations, and lets the run go on."""

    def __init__(self) -> None:
        super().__init__(patience_s=GIVEN_UP_S, most_records=10**12, exact=False)
        self.violations: list[tuple[str, str]] = []
        self._told = Counter[str]()

    def violated(self, invariant: str, words: str) -> None:
        """Note one more violation."""
        self._told[invariant] += 1
        if self._told[invariant] <= MOST:
            self.violations.append((invariant, words))


def live_rates(chosen: Profile) -> dict[str, float]:
    """Return the rates of the faults that can strike on the real clock."""
    return {what: rate for what, rate in chosen.rates.items() if rate and what not in NOT_LIVE}


def simulated_only(chosen: Profile) -> list[str]:
    """Return the names of what else the profile asks for: it happens under `pumice stress` only."""
    names = [what for what in chosen.rates if what in NOT_LIVE]
    names += chosen.disturbances
    names += [name for name in ("claims", "shares") if getattr(chosen, name)]
    return names + (["its scheduler configuration"] if chosen.config else [])


@dataclass
class LiveStorm:
    """Faults from a profile (`chosen`: its content, None for a packaged one); `views` are those the cache has had, the
    present one last.
    """

    names: str
    seed: int
    views: list[Any] = field(default_factory=list[Any])
    monitor: LiveMonitor = field(default_factory=LiveMonitor)
    chosen: Profile | None = None

    def __post_init__(self) -> None:
        rates = live_rates(self.chosen or profile(self.names))
        self.faults: Faults = SeededFaults(self.seed, rates, longest_s=LONGEST_S, crashable=CRASHABLE)

    async def watch(self, journal: Journal) -> Journal:
        """Return a journal all of whose later records are checked."""
        store = Store()
        recovered = await recover(journal, store.restore, store.load)
        self.monitor.begin(store)
        if recovered.config is not None:  # not written again when it is still in force
            self.monitor.configured(recovered.config)
        self.monitor.born()
        return WatchedJournal(journal, self.monitor.see, self.faults)

    def settings(self, settings: SystemSettings) -> SystemSettings:
        """Return the settings with the faults, and answers given up sooner."""
        return replace(settings, faults=self.faults, answer_timeout_s=ANSWER_TIMEOUT_S)

    def decider(self) -> Decider:
        """Return the real core; its views are remembered."""
        real = core_decider()
        return replace(real, new_view=partial(self._new_view, real.new_view))

    def _new_view(self, make: Any) -> Any:
        self.views.append(make())
        return self.views[-1]

    async def rest(self, system: System, journal: Journal, *, interrupted: bool, cut: bool = False) -> None:
        """Stop the faults, let the system settle, compare the books.

        After Ctrl-C the wait is short: what is not at rest by then is not a violation. A run that is
        `cut` off has work ahead: pods that run, others that are to come.
        """
        self.faults.stop()
        if cut or interrupted:
            system.context.activity.cut_off(*AHEAD)
        disagreements: list[str] = []
        with anyio.move_on_after(INTERRUPTED_S if interrupted else REST_S) as scope:
            await until_idle(system, self.monitor, lambda: self.views[-1], PERIOD_S, disagreements)
        problems = [("books-agree", words) for words in disagreements]
        if not scope.cancelled_caught:
            problems += [("books-agree", words) for words in compare_view(self.views[-1], system.store)]
            problems += await lost_in_journal(system.store, journal)
            problems += [("reasons", words) for words in without_reason(system.store, self.monitor)]
        elif not interrupted and (left := system.context.activity.reasons(timers=not cut)):
            problems.append(("quiesces", "; ".join(left)))
        for problem in problems:  # all in one step: it may be interrupted, and asked again
            self.monitor.violated(*problem)

    def found(self) -> FaultsFound:
        """Return the results so far."""
        struck = Counter(fault.what for fault in self.faults.struck)
        broken = [BrokenInvariant(invariant, words) for invariant, words in self.monitor.violations]
        return FaultsFound(dict(sorted(struck.items())), broken)
