"""Many storms, spread over processes: each is a function of its seed, so the result does not depend on their number."""

from __future__ import annotations

import gc
import multiprocessing
import shlex
import signal
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from actors.api.chance import chance
from pumice.storm.profiles import Profile, profile
from pumice.storm.script import Script, write_script
from pumice.storm.shrink import shrink
from pumice.storm.simulation import GC_THRESHOLDS, Outcome, simulate
from pumice.storm.workload import Size, inputs, with_claims

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
    """What came of them. `interrupted`: by Ctrl-C, so these are not all."""

    seeds: int = 0
    events: int = 0
    struck: Counter[str] = field(default_factory=Counter[str])
    failures: list[tuple[Script, Outcome]] = field(default_factory=list[tuple[Script, Outcome]])
    interrupted: bool = False

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
    """All of them; `advance` is told how many more are done. Failures come in the order of their seeds.

    Ctrl-C ends the workers at once: what was done by then is the result.
    """
    tally = Tally()
    try:
        with closing(_parts(plan, workers)) as parts:
            for part in parts:
                tally.merge(part)
                advance(part.seeds)
    except KeyboardInterrupt:
        tally.interrupted = True
    tally.failures.sort(key=lambda failure: failure[0].seed)
    return tally


def _parts(plan: Plan, workers: int) -> Generator[Tally]:
    """Storm by storm, as they are done; a single worker is a process of its own too, for the sake of Ctrl-C."""
    with _pool(min(workers, plan.seeds)) as pool:
        for future in as_completed(_submitted(pool, plan)):
            yield future.result()


def _submitted(pool: ProcessPoolExecutor, plan: Plan) -> list[Future[Tally]]:
    """All seeds. Workers start in here and inherit that SIGINT is blocked: Ctrl-C is for this process to deal with."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        return [pool.submit(run_seeds, plan, (seed,)) for seed in range(plan.first, plan.first + plan.seeds)]
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _pool(workers: int) -> Generator[ProcessPoolExecutor]:
    """Who leaves before the end, for whatever reason, does not wait for storms under way: the workers are killed."""
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_begin_worker) as pool:
        try:
            yield pool
        except BaseException:
            for child in set(multiprocessing.active_children()) - others:
                child.kill()
            raise


def _begin_worker() -> None:
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)  # between storms too, see `rare_collections`


def report(tally: Tally, seconds: float, folder: Path) -> dict[str, Any]:
    """The JSON of `pumice stress`; failing storms are cut down and written into the folder.

    Ctrl-C ends the cutting down, not the report.
    """
    violations: list[dict[str, Any]] = []
    for number, failure in enumerate(tally.failures):
        cut = number < SHRUNK and not tally.interrupted
        try:
            violations.append(_violation(*failure, folder, cut=cut))
        except BaseException as error:
            if not _by_ctrl_c(error):
                raise
            tally.interrupted = True
            violations.append(_violation(*failure, folder, cut=False))
    return {
        "seeds": tally.seeds,
        "events": tally.events,
        "seeds_per_s": tally.seeds / seconds if seconds > 0 else 0.0,
        "seconds": seconds,
        "faults_injected": dict(sorted(tally.struck.items())),
        "violations": violations,
    }


def _by_ctrl_c(error: BaseException) -> bool:
    members: tuple[BaseException, ...] = getattr(error, "exceptions", ())  # of a task group's errors
    return isinstance(error, KeyboardInterrupt) or any(_by_ctrl_c(member) for member in members)


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
        "command": f"pumice stress --events {shlex.quote(str(path))}",
    }
