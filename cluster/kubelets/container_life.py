# SPDX-License-Identifier: Apache-2.0
"""The containers of a pod on its node: one after the other or together, ended and started again (source: the kubelet).

Pure, and on the clock that it is given. A container that ends is started again immediately the first time; after that
it waits from its end, 10 s the second time and twice as long each time, 5 min at most, and from 10 s again once it has
run for more than 10 min.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from pumice.cluster.kube.commands.plans import FOR_EVER, Plan
from pumice.core.life.cycle import LifeCycle

FIRST_BACKOFF_S: Final = 10.0
MOST_BACKOFF_S: Final = 300.0
FORGOTTEN_S: Final = 600.0
"""A back-off begins anew once so much has passed since the last start (twice the longest)."""
KILLED: Final = 137
"""The exit code of what the node stops itself."""
SERVER_STOPS_S: Final = 1.0
"""Seconds that a program which handles SIGTERM takes to end."""
ALWAYS, ON_FAILURE, NEVER = "Always", "OnFailure", "Never"


class ContainerState(StrEnum):
    """State of a container. A container that has ended and waits for its restart is in back-off."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"
    BACKOFF = "backoff"


class ContainerTrigger(StrEnum):
    """Trigger of a container's transition."""

    STARTED = "started"  # for the first time or again
    EXITED = "exited"  # by itself
    KILLED = "killed"  # the node stops it
    HELD_BACK = "held back"  # it is to be started again, but not immediately
    GIVEN_UP = "given up"  # its pod stops: it is not started again
    SEEN_RUNNING = "seen running"  # the api says so
    SEEN_ENDED = "seen ended"
    SEEN_WAITING = "seen waiting"  # it has run before


_S, _T = ContainerState, ContainerTrigger

CONTAINER_LIFE: Final = LifeCycle(
    {
        (_S.WAITING, _T.STARTED): _S.RUNNING,
        (_S.WAITING, _T.SEEN_RUNNING): _S.RUNNING,
        (_S.WAITING, _T.SEEN_ENDED): _S.ENDED,
        (_S.WAITING, _T.SEEN_WAITING): _S.BACKOFF,
        (_S.RUNNING, _T.EXITED): _S.ENDED,
        (_S.RUNNING, _T.KILLED): _S.ENDED,
        (_S.ENDED, _T.STARTED): _S.RUNNING,  # the first time it is started again immediately
        (_S.ENDED, _T.HELD_BACK): _S.BACKOFF,
        (_S.BACKOFF, _T.STARTED): _S.RUNNING,
        (_S.BACKOFF, _T.GIVEN_UP): _S.ENDED,
    }
)
"""A pair that is not here changes nothing: the end of a pod kills what runs."""


class AskedContainer(NamedTuple):
    """Request for a container. `again`: when it is restarted; `first`: before the others; `is_sidecar`: it keeps
    running beside them.

    `heeds`: it ends soon, and well, after SIGTERM.
    """

    name: str
    image: str
    plan: Plan
    again: str
    first: bool = False
    is_sidecar: bool = False
    heeds: bool = False


class ContainerEnd(NamedTuple):
    """End of a container. Times in seconds since the epoch."""

    exit_code: int
    started: float
    finished: float


class ContainerRun(Struct):
    """Run of a container. `ended` is the last end, of this run or of the one before it."""

    state: ContainerState = ContainerState.WAITING
    started: float = 0.0
    restarts: int = 0
    ended: ContainerEnd | None = None
    before: ContainerEnd | None = None
    backoff_s: float = 0.0


class Stop(NamedTuple):
    """The end of a deleted pod: when it was asked to stop, when running containers are killed, and its exit code.

    `own_ways`: containers may end before, by themselves or because they heed SIGTERM.
    """

    told: float
    by: float
    exit_code: int = KILLED
    own_ways: bool = True


class PodContainers(Struct):
    """The containers of one pod, init containers in front. `deadline_s`: seconds from its begin, or for ever.

    `stop`: the end of the pod when it is deleted.
    """

    containers: tuple[AskedContainer, ...]
    runs: list[ContainerRun]
    deadline_s: float = FOR_EVER
    begun: float = 0.0
    over: bool = False
    too_long: bool = False
    stop: Stop | None = None

    def both(self) -> Iterable[tuple[AskedContainer, ContainerRun]]:
        """Return the containers with their runs."""
        return zip(self.containers, self.runs, strict=True)

    def next_due(self) -> float:
        """Return when `advance` has work; infinity for never."""
        if self.over:
            return FOR_EVER
        if self.stop is not None:
            runs = [_stops_at(container, run, self.stop) for container, run in self.both() if _runs(run)]
            return min(self.stop.by, max(runs, default=self.stop.told))
        return min([self.begun + self.deadline_s, *[_due(container, run) for container, run in self.both()]])

    def advance(self, now: float) -> None:
        """Carry out the due steps; the first call begins the pod."""
        if self.stop is not None:
            self._stopping(self.stop, now)
            return
        self.begun = self.begun or now
        for container, run in self.both():
            if _due(container, run) <= now:
                if run.state is ContainerState.RUNNING:
                    _end(container, run, now)
                else:
                    _start(run, now)
        if now >= self.begun + self.deadline_s:
            self.too_long = True
            self._stop(now)
        elif self._first_are_done(now):
            self._proceed(now)

    def _stopping(self, stop: Stop, now: float) -> None:
        """Stop the pod: no container is started any more; each ends in its way, and the pod ends with the last."""
        if now < self.next_due():
            return
        self.over = True
        for container, run in self.both():
            if _runs(run):
                at = _stops_at(container, run, stop)
                # one that heeds SIGTERM ends well
                by_itself = container.plan.exit_code if at == _due(container, run) else 0
                run.ended = ContainerEnd(stop.exit_code if at == stop.by else by_itself, run.started, at)
            run.state = CONTAINER_LIFE.after(run.state, ContainerTrigger.GIVEN_UP)
            run.state = CONTAINER_LIFE.after(run.state, ContainerTrigger.KILLED)

    def _first_are_done(self, now: float) -> bool:
        """Start init containers in order; the final failure of one ends the pod."""
        for container, run in self.both():
            if not container.first:
                break
            if run.state is ContainerState.WAITING:
                _start(run, now)
            # a sidecar does not hold up the containers after it
            if container.is_sidecar:
                continue
            if run.state is not ContainerState.ENDED:
                return False
            if failed(run):
                self._stop(now)
                return False
        return True

    def _proceed(self, now: float) -> None:
        main = [run for container, run in self.both() if not container.first]
        for run in main:
            if run.state is ContainerState.WAITING:
                _start(run, now)
        if all(run.state is ContainerState.ENDED for run in main):
            self._stop(now)

    def _stop(self, now: float) -> None:
        self.over = True
        for run in self.runs:
            if _runs(run):
                run.ended = ContainerEnd(KILLED, run.started, now)
                run.state = CONTAINER_LIFE.after(run.state, ContainerTrigger.KILLED)

    def restart(self, names: Collection[str], now: float) -> bool:
        """Stop and restart the running ones of these containers immediately, whatever `again` says. Return whether any
        did.
        """
        running = [(each, run) for each, run in self.both() if each.name in names and _runs(run)]
        for container, run in running:
            run.ended = ContainerEnd(0 if container.heeds else KILLED, run.started, now)
            run.state = CONTAINER_LIFE.after(run.state, ContainerTrigger.KILLED)
            _start(run, now)
        return bool(running)

    def phase(self) -> str:
        """Return the phase of the pod (source: the kubelet's `getPhase`)."""
        if self.over:
            wrong = self.too_long or any(failed(run) for container, run in self.both() if not container.is_sidecar)
            # a pod that was stopped before all its containers had run has not succeeded
            return "Failed" if wrong or self._waits(any) else "Succeeded"
        return "Pending" if self._waits(all) else "Running"

    def _waits(self, of: Callable[[Iterable[bool]], bool]) -> bool:
        """Return whether any or all of what comes last has never run."""
        return of(run.state is ContainerState.WAITING for container, run in self.both() if not container.first)

    def restarts(self) -> int:
        """Return the restarts of all containers."""
        return sum(run.restarts for run in self.runs)


def failed(run: ContainerRun) -> bool:
    """Return whether the container has ended with a failure."""
    return run.state is ContainerState.ENDED and run.ended is not None and run.ended.exit_code != 0


def _runs(run: ContainerRun) -> bool:
    return run.state is ContainerState.RUNNING


def _stops_at(container: AskedContainer, run: ContainerRun, stop: Stop) -> float:
    if not stop.own_ways:
        return stop.by
    return min(_due(container, run), stop.told + SERVER_STOPS_S if container.heeds else FOR_EVER, stop.by)


def _due(container: AskedContainer, run: ContainerRun) -> float:
    if run.state is ContainerState.RUNNING:
        return run.started + container.plan.lasts_s
    if run.state is ContainerState.BACKOFF and run.ended is not None:
        return run.ended.finished + run.backoff_s
    return FOR_EVER


def _start(run: ContainerRun, now: float) -> None:
    if run.ended is not None:
        run.before, run.ended = run.ended, None
        run.restarts += 1
        run.backoff_s = min(run.backoff_s * 2, MOST_BACKOFF_S) if run.backoff_s else FIRST_BACKOFF_S
    run.state, run.started = CONTAINER_LIFE.after(run.state, ContainerTrigger.STARTED), now


def _end(container: AskedContainer, run: ContainerRun, now: float) -> None:
    run.ended = ContainerEnd(container.plan.exit_code, run.started, now)
    run.state = CONTAINER_LIFE.after(run.state, ContainerTrigger.EXITED)
    if container.again == ALWAYS or (container.again == ON_FAILURE and run.ended.exit_code):
        # it ran long enough for the kubelet to forget the back-off
        if now - run.started > FORGOTTEN_S:
            run.backoff_s = 0.0
        if run.backoff_s:
            run.state = CONTAINER_LIFE.after(run.state, ContainerTrigger.HELD_BACK)
        else:
            _start(run, now)


def backoff_after(restarts: int) -> float:
    """Return the back-off before the next start, as far as the count of restarts determines it."""
    # ten doublings are past the longest wait; an uncapped exponent could overflow
    return min(FIRST_BACKOFF_S * 2.0 ** min(restarts - 1, 10), MOST_BACKOFF_S) if restarts else 0.0
