"""Many storms, spread over processes: each is a function of its seed, so the result does not depend on their number."""

from __future__ import annotations

import gc
import multiprocessing
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from actors.api.faults import chance
from pumice.storm.claims import with_claims
from pumice.storm.profiles import Profile, profile
from pumice.storm.script import Script, write_script
from pumice.storm.shrink import shrink
from pumice.storm.simulation import GC_THRESHOLDS, Outcome, simulate
from pumice.storm.workload import Size, inputs

SLICE: Final = 8
"""Seeds that a process takes at a time."""
SHRUNK: Final = 5
"""So many violations are cut down; the others are only named."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Seeds first .. first + seeds - 1 of a profile."""

    profile: str = "storm"
    seeds: int = 100
    first: int = 0
    size: Size = field(default_factory=Size)
    planted: str = ""


@dataclass(slots=True)
class Tally:
    """What came of them."""

    seeds: int = 0
    events: int = 0
    struck: Counter[str] = field(default_factory=Counter[str])
    failures: list[tuple[Script, Outcome]] = field(default_factory=list[tuple[Script, Outcome]])

    def add(self, script: Script, outcome: Outcome) -> None:
        """One more storm."""
        self.seeds += 1
        self.events += outcome.events
        self.struck.update(event.what for event in outcome.struck)
        disturbing = profile(script.profile).disturbances if script.profile else {}
        self.struck.update(event.what for event in script.events if event.what in disturbing)
        if outcome.violations:
            self.failures.append((script, outcome))

    def merge(self, other: Tally) -> None:
        """Those of another process."""
        self.seeds += other.seeds
        self.events += other.events
        self.struck.update(other.struck)
        self.failures += other.failures


def script_of(seed: int, plan: Plan, chosen: Profile | None = None) -> Script:
    """The storm of a seed."""
    chosen = chosen or profile(plan.profile)
    events = inputs(seed, plan.size, chosen.disturbances)
    if chosen.claims:
        events = list(with_claims(seed, events, chosen.claims))
    share = chance(seed, "share") if chosen.varied else 1.0
    rates = {what: rate * share for what, rate in chosen.rates.items()}
    return Script(seed, tuple(events), rates, profile=plan.profile, planted=plan.planted, config=chosen.config)


def run_seeds(plan: Plan, seeds: Sequence[int]) -> Tally:
    """One after the other, here."""
    tally = Tally()
    chosen = profile(plan.profile)
    with rare_collections():
        for seed in seeds:
            script = script_of(seed, plan, chosen)
            tally.add(script, simulate(script))
    return tally


@contextmanager
def rare_collections() -> Generator[None]:
    """Between storms too: who goes back to Python's thresholds after each looks through all that it leaves, at once."""
    thresholds = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def run_storms(plan: Plan, workers: int, advance: Callable[[int], None]) -> Tally:
    """All of them; `advance` is told how many more are done. Failures come in the order of their seeds."""
    seeds = range(plan.first, plan.first + plan.seeds)
    slices = [seeds[start : start + SLICE] for start in range(0, len(seeds), SLICE)]
    tally = Tally()
    for part in _parts(plan, slices, workers):
        tally.merge(part)
        advance(part.seeds)
    tally.failures.sort(key=lambda failure: failure[0].seed)
    return tally


def _parts(plan: Plan, slices: Sequence[Sequence[int]], workers: int) -> Iterator[Tally]:
    if workers <= 1 or len(slices) <= 1:
        for seeds in slices:
            yield run_seeds(plan, seeds)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(slices)), context, initializer=gc.freeze) as pool:
        for future in as_completed([pool.submit(run_seeds, plan, seeds) for seeds in slices]):
            yield future.result()


def report(tally: Tally, seconds: float, folder: Path) -> dict[str, Any]:
    """The JSON of `pumice stress`; failing storms are cut down and written into the folder."""
    violations = [_violation(*failure, folder, cut=number < SHRUNK) for number, failure in enumerate(tally.failures)]
    return {
        "seeds": tally.seeds,
        "events": tally.events,
        "seeds_per_s": tally.seeds / seconds if seconds > 0 else 0.0,
        "seconds": seconds,
        "faults_injected": dict(sorted(tally.struck.items())),
        "violations": violations,
    }


def _violation(script: Script, outcome: Outcome, folder: Path, *, cut: bool) -> dict[str, Any]:
    found = outcome.violations[0]
    small = shrink(script, outcome, runs=400 if cut else 0)
    path = folder / f"storm-{script.seed}.json"
    write_script(small, path)
    return {
        "seed": script.seed,
        "invariant": found.invariant,
        "message": found.words,
        "events": len(small.events),
        "events_file": str(path),
        "command": f"pumice stress --events {path}",
    }
