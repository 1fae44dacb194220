# SPDX-License-Identifier: Apache-2.0
"""Many storms, spread over processes: each is a function of its seed, so the result does not depend on their number."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pumice.cluster.faults.decisions import chance
from pumice.executors import Executors, as_ended, died
from pumice.proof.storm.script.events import Script
from pumice.proof.storm.script.profile_file import Profile
from pumice.proof.storm.script.profiles import profile
from pumice.proof.storm.script.sharing import with_shares
from pumice.proof.storm.script.workload import DISTURBANCES, Size, inputs, with_claims
from pumice.proof.storm.simulation import GC_THRESHOLDS, StormOutcome, simulate


@dataclass(frozen=True, slots=True)
class StressPlan:
    """Seeds first .. first + seeds - 1 of a profile. `chosen`: its content; None for a packaged one."""

    profile: str = "storm"
    seeds: int = 100
    first: int = 0
    size: Size = field(default_factory=Size)
    chosen: Profile | None = None


@dataclass(slots=True)
class Tally:
    """Sums over the storms. `interrupted`: by Ctrl-C, so these are not all; `first_left`: the first seed that was not
    done then. `lost`: seeds whose process died.
    """

    seeds: int = 0
    events: int = 0
    struck: Counter[str] = field(default_factory=Counter[str])
    failures: list[tuple[Script, StormOutcome]] = field(default_factory=list[tuple[Script, StormOutcome]])
    interrupted: bool = False
    first_left: int | None = None
    lost: list[int] = field(default_factory=list[int])

    def add(self, script: Script, outcome: StormOutcome) -> None:
        """Add one more storm."""
        self.seeds += 1
        self.events += outcome.events
        self.struck.update(event.what for event in outcome.struck)
        self.struck.update(event.what for event in script.events if event.what in DISTURBANCES)
        if outcome.violations:
            self.failures.append((script, outcome))

    def merge(self, other: Tally) -> None:
        """Add the sums of another process."""
        self.seeds += other.seeds
        self.events += other.events
        self.struck.update(other.struck)
        self.failures += other.failures


def script_of(seed: int, plan: StressPlan) -> Script:
    """Return the storm of a seed."""
    chosen = plan.chosen or profile(plan.profile)
    events = inputs(seed, plan.size, chosen.disturbances)
    if chosen.claims:
        events = list(with_claims(seed, events, chosen.claims))
    if chosen.shares:
        events = list(with_shares(seed, events, chosen.shares, chosen.config))
    share = chance(seed, "share") if chosen.varied else 1.0
    rates = {what: rate * share for what, rate in chosen.rates.items()}
    return Script(seed, tuple(events), rates, profile=plan.profile, config=chosen.config)


def run_seeds(plan: StressPlan, seeds: Sequence[int]) -> Tally:
    """Run the seeds one after the other, in this process."""
    tally = Tally()
    plan = replace(plan, chosen=plan.chosen or profile(plan.profile))
    with rare_collections():
        for seed in seeds:
            script = script_of(seed, plan)
            tally.add(script, simulate(script))
            gc.collect(0)  # immediately, so that the next storm has this one's memory, still at the processor's hand
    return tally


def run_seed(plan: StressPlan, seed: int) -> Tally:
    """Run one seed."""
    return run_seeds(plan, (seed,))


@contextmanager
def rare_collections() -> Generator[None]:
    """Collect rarely between storms too: Python's thresholds after each would search all earlier objects."""
    thresholds = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def between_storms() -> None:
    """Collect rarely in a process that does nothing else, as in `rare_collections`."""
    gc.set_threshold(*GC_THRESHOLDS)


def run_storms(plan: StressPlan, executors: Executors, advance: Callable[[int], None]) -> Tally:
    """Run all storms; `advance` receives the number of newly ended ones. Failures come in the order of their seeds.

    Ctrl-C ends the workers immediately: what was done by then is the result. A single worker is a process of its own
    too, for the sake of Ctrl-C.
    """
    tally = Tally()
    left = {seed: (plan, seed) for seed in range(plan.first, plan.first + plan.seeds)}
    try:
        with executors() as executor:
            for seed, future in as_ended(run_seed, dict(left), executor):
                left.pop(seed)
                if died(future.exception()):
                    tally.lost.append(seed)
                else:
                    tally.merge(future.result())
                advance(1)
    except KeyboardInterrupt:
        tally.interrupted = True
    tally.failures.sort(key=lambda failure: failure[0].seed)
    tally.lost.sort()
    tally.first_left = next(iter(left), None)
    return tally
