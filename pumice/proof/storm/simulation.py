# SPDX-License-Identifier: Apache-2.0
"""One storm, from its script: the real system on virtual time, in an order that the seed decides."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from typing import Any, Final

import anyio

from pumice.actors.api_server.faults.strikes import Fault, Faults, ListedFaults, SeededFaults
from pumice.actors.errors import RecorderFailedError
from pumice.actors.scheduling.core_decider import core_decider
from pumice.actors.system.roles import CRASHABLE
from pumice.actors.system.settings import SystemSettings
from pumice.actors.system.system import System
from pumice.cluster.faults.decisions import chance
from pumice.proof.storm.driver import Driver, JumpingClock, PowerCutError
from pumice.proof.storm.extender import StormExtender
from pumice.proof.storm.invariants.books import final_problems
from pumice.proof.storm.invariants.monitor import Monitor
from pumice.proof.storm.invariants.soon import until_idle
from pumice.proof.storm.invariants.statuses import phases
from pumice.proof.storm.invariants.upheld import Violation, ViolationFoundError
from pumice.proof.storm.script.events import Event, Script
from pumice.runtime.determinism import deterministic, held
from pumice.runtime.leaping import Bell, LeapingClock
from pumice.storage import codec
from pumice.storage.journal import Record
from pumice.storage.memory import MemoryJournal
from pumice.storage.shared_objects import SharedObjects

# --- The disk
# What is on its way when the power goes gets there whole, in part, or not at all. What was synced stays. Of the
# append in flight any sectors may be on the disk, as after a power cut under SQLite's write-ahead file: the next life
# believes it when its checksum agrees, and as a whole.

SECTOR: Final = 512
"""Bytes that are written whole or not at all."""
SHARES: Final = (0.0, 0.5, 0.9, 1.0)
"""Shares of sectors that reach the disk, all equally likely: a lost write, two torn ones, a whole one."""
_SUM: Final = 16


class StormDisk:
    """A disk with one append in flight; the seed alone decides which of its sectors get there."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._on_its_way = b""
        self._cuts = 0

    def write(self, records: Sequence[Record]) -> None:
        """Hand an append to the disk, which may hold it back until `sync`."""
        body = codec.pack([(each.kind, each.payload, each.cause, each.at) for each in records])
        self._on_its_way = _sum(body) + body

    def sync(self) -> None:
        """Note that the append is on the disk and cannot be lost."""
        self._on_its_way = b""

    def lose_power(self) -> list[Record]:
        """Return the records of the append in flight, if all of it got there; the next append is written over
        the rest.
        """
        written, self._on_its_way = self._torn(self._on_its_way), b""
        told, body = written[:_SUM], written[_SUM:]
        if not body or told != _sum(body):
            return []
        return [Record(kind, payload, cause, at) for kind, payload, cause, at in codec.unpack(body)]

    def _torn(self, data: bytes) -> bytes:
        """Return the bytes after a power cut: lost sectors read as zeros, and are missing at the end."""
        self._cuts += 1
        share = SHARES[int(chance(self._seed, f"power cut #{self._cuts}") * len(SHARES))]
        sectors = [data[at : at + SECTOR] for at in range(0, len(data), SECTOR)]
        kept = [
            sector if chance(self._seed, f"power cut #{self._cuts}, sector {number}") < share else bytes(len(sector))
            for number, sector in enumerate(sectors)
        ]
        while kept and not any(kept[-1]):
            kept.pop()
        return b"".join(kept)


def _sum(body: bytes) -> bytes:
    return blake2b(body, digest_size=_SUM).digest()


# --- The journal


class JournalLostError(OSError):
    """An injected failure of the disk."""


class StormJournal(MemoryJournal):
    """A journal of a storm. `see` gets every batch of records once it is written; `faults` may be set for each life of
    a system.
    """

    def __init__(self, see: Callable[[Sequence[Record]], None], disk: StormDisk | None = None) -> None:
        super().__init__()
        self._disk = disk or StormDisk(0)
        self.faults: Faults | None = None
        self._see = see

    async def append(self, records: Sequence[Record]) -> int:
        """Write immediately, late, in part, not at all, or without an answer. A power cut strikes during a slow
        write.
        """
        fault = self.faults.strike_append() if self.faults is not None else None
        match fault.what if fault is not None else "":
            case "journal-slow":
                self._disk.write(records)
                await anyio.sleep(fault.amount if fault is not None else 0.0)
                self._disk.sync()
            case "journal-torn":
                self._disk.write(records)
                raise JournalLostError("injected: the power failed while the disk was at it")
            case "journal-failing":
                raise JournalLostError("injected: the disk is full")
            case "journal-unsure":
                await self._write(records)
                raise JournalLostError("injected: the disk failed after writing")
            case _:
                pass
        return await self._write(records)

    async def begin_again(self) -> None:
        """Begin another process with the content of the disk, and with the whole records of the append in flight."""
        if records := self._disk.lose_power():
            await self._write(records)

    async def _write(self, records: Sequence[Record]) -> int:
        last = await super().append(records)
        self._see(records)
        return last


# --- The limit of a storm that goes in circles

AGAIN_S: Final = 0.5
"""Others may go in circles too, and are met one after the other."""


class TooLongError(BaseException):
    """Time is up. Not an Exception: no handler may take it for the crash of an actor."""


class WallAlarm:
    """The alarm of a storm. `rang`: time was up, even if the error was caught since."""

    def __init__(self) -> None:
        self.rang = False

    def ring(self, *_: object) -> None:
        """Handle the signal: stop the storm."""
        self.rang = True
        raise TooLongError


@contextmanager
def at_most(seconds: float) -> Generator[WallAlarm]:
    """Raise TooLongError in the block after so many seconds of the processor.

    Only where a timer can be set: in the main thread, where no other timer is set.
    """
    alarm = WallAlarm()
    if threading.current_thread() is not threading.main_thread() or signal.getitimer(signal.ITIMER_VIRTUAL)[0]:
        yield alarm
        return
    before = signal.signal(signal.SIGVTALRM, alarm.ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, AGAIN_S)
    try:
        yield alarm
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


CALM_S: Final = 4000.0
"""Virtual seconds that a system may take to settle once faults have stopped (the longest backoff is 1000 s), and before
that for all its requests.
"""
LIVES: Final = 20
"""Most restarts of a process in one storm."""


ROOMS: Final = (256, 256, 16, 2)
"""Capacities of mailboxes to draw from."""
GC_THRESHOLDS: Final = (500_000, 20, 100)
"""Those that a system asks for while it runs: a storm of usual size is over before, and is collected then."""
LONGEST_S: Final = 300.0
"""Seconds of the processor that a storm may take; it needs less than one."""


@dataclass(slots=True)
class StormOutcome:
    """Outcome of a storm. `digest` is a hash over everything that was written, in order, if requested; `struck`:
    faults, as events; `pods`: node and phase of each pod at the end; `groups`: the phase of each PodGroup.
    """

    violations: list[Violation] = field(default_factory=list[Violation])
    digest: str = ""
    events: int = 0
    cycles: int = 0
    lives: int = 0
    struck: list[Event] = field(default_factory=list[Event])
    virtual_s: float = 0.0
    pods: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    groups: dict[str, str] = field(default_factory=dict[str, str])


def simulate(script: Script, longest_s: float = LONGEST_S, *, digest: bool = False) -> StormOutcome:
    """Run a script to its end, or to the first violation. To keep the processor busy for `longest_s` seconds is one."""
    logger = logging.getLogger("pumice.actors")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)  # crashes are what is wanted here
    clock = LeapingClock(stuck_s=0.0)  # one that got stuck is found out by its use of the processor
    alarm = WallAlarm()
    try:
        with deterministic(script.order_seed), at_most(longest_s) as alarm:
            storm = Storm(script, clock, digest=digest)
            outcome = anyio.run(storm.run, backend="trio", backend_options={"clock": clock})
    except BaseException:
        if not alarm.rang:
            raise
        outcome = StormOutcome()
    finally:
        logger.setLevel(level)
    if alarm.rang:
        words = f"no end within {longest_s:g} s of the processor: something goes in circles"
        outcome.violations = [Violation("quiesces", words)]
    return outcome


class Storm:
    """The lives of one system on one journal."""

    def __init__(self, script: Script, time: LeapingClock, *, digest: bool = False) -> None:
        self.script = script
        self.digest = digest
        self.alarm = partial(Bell, time)
        self.clock = JumpingClock()
        self.objects = SharedObjects()
        self.monitor = Monitor(objects=self.objects)
        self.journal = StormJournal(self.monitor.see, StormDisk(script.seed))
        self.faults = faults_of(script)
        self.driver = Driver(script, self.clock, self.alarm(), self.monitor)
        self.lives = 0
        self._views: list[Any] = []

    async def run(self) -> StormOutcome:
        """Run until everything has happened and the system is at rest, or something broke."""
        with held(self.faults.strike_turn) if self.faults.holds else nullcontext():
            return await self._run()

    async def _run(self) -> StormOutcome:
        began = anyio.current_time()
        violations: list[Violation] = []
        try:
            while not await self._live():
                if self.monitor.found is not None:  # who noticed it died of it
                    raise ViolationFoundError(self.monitor.found)
                if self.lives == LIVES:
                    self.monitor.violated("process-lives", f"{LIVES} lives were not enough")
        except ViolationFoundError as found:
            violations = [found.violation]
        except Exception as error:  # noqa: BLE001 (whatever ends the process is a finding)
            violations = [Violation("process-lives", repr(error), anyio.current_time())]
        struck = [event_of(fault) for fault in self.faults.struck]
        return StormOutcome(
            violations=violations,
            digest=await self._trace(struck) if self.digest else "",
            events=self.monitor.events + len(struck),
            cycles=self.monitor.cycles,
            lives=self.lives,
            struck=struck,
            virtual_s=anyio.current_time() - began,
            pods={key: (pod.node, pod.phase) for key, pod in sorted(self.monitor.truth.pods.items())},
            groups=phases(self.monitor.truth),
        )

    async def _trace(self, struck: Sequence[Event]) -> str:
        head = await self.journal.head()
        trace = blake2b(head.hash, digest_size=16)
        trace.update(repr(struck).encode())
        return trace.hexdigest()

    async def _live(self) -> bool:
        """Run one life of the process; False when it ended before its time."""
        self.lives += 1
        await self.journal.begin_again()
        self.monitor.born()
        self.journal.faults = self.faults
        real = core_decider(report=False)
        self._views.clear()
        decider = replace(real, new_view=partial(self._new_view, real.new_view))
        system = System(self._settings(), self.journal, self.clock, decider=decider, objects=self.objects)
        try:
            async with system.running():
                await self._through(system)
        except (PowerCutError, RecorderFailedError, JournalLostError):
            return False
        finally:
            for mailbox in system.switchboard.mailboxes.values():
                mailbox.abort()  # one that failed to start never got so far
            vars(system).clear()  # its parts refer to each other: a thousand storms would wait for the collector
        return True

    async def _through(self, system: System) -> None:
        with anyio.move_on_after(CALM_S) as driving:
            await self.driver.drive(system)
        if driving.cancelled_caught:
            self.monitor.violated("quiesces", f"what was asked of the api was not answered in {CALM_S:g} s")
        self.faults.stop()
        self.monitor.faults_stopped()
        disagreements: list[str] = []
        with anyio.move_on_after(CALM_S) as scope:
            await until_idle(system, self.monitor, lambda: self._views[-1], self.script.period_s, disagreements)
        for words in disagreements:
            self.monitor.violated("books-agree", words)
        if scope.cancelled_caught:
            self.monitor.violated("quiesces", "; ".join(system.context.activity.reasons()))
        for invariant, words in final_problems(system, self.monitor, self._views[-1]):
            self.monitor.violated(invariant, words)

    def _new_view(self, make: Callable[[], Any]) -> Any:
        """Return the cache's view, remembered; a restart of the cache makes another one."""
        self._views.append(make())
        return self._views[-1]

    def _room(self) -> int:
        """Return the capacity of mailboxes: in some storms so few messages that senders wait."""
        drawn = chance(self.script.seed, "room") * len(ROOMS)
        return ROOMS[int(drawn)]

    def _settings(self) -> SystemSettings:
        return SystemSettings(
            config_text=self.script.config,
            seed=self.script.order_seed,
            schedule_period_s=self.script.period_s,
            check_view=True,
            faults=self.faults,
            news_delay_s=self.script.news_delay_s,
            gc_thresholds=GC_THRESHOLDS,
            mailbox_capacity=self._room(),
            stopwatch=_no_time,
            alarm=self.alarm,
            budgets=any(event.what == "budget" for event in self.script.events),
            post=StormExtender(self.faults, anyio.sleep),
        )


def faults_of(script: Script) -> Faults:
    """Return the faults by rates, or those that are listed."""
    if script.rates:
        return SeededFaults(script.seed, script.rates, crashable=CRASHABLE)
    listed = [event for event in script.events if event.on]
    return ListedFaults(Fault(event.what, event.on, event.amount, event.target) for event in listed)


def event_of(fault: Fault) -> Event:
    """Return a fault as an event of a script."""
    return Event(fault.what, on=fault.on, amount=fault.amount, target=fault.target)


def _no_time() -> float:
    return 0.0
