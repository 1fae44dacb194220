# SPDX-License-Identifier: Apache-2.0
"""One storm for strangers: a served cluster, the subjects, the events of the script, and the judgement."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Event as Signal
from typing import Final

import msgspec
from msgspec import Struct, field

from pumice.cluster.faults.rules import AnswerLate, ArriveLate, CutWatch, DelayWatch, Expire, RestartServer, Stale
from pumice.core.objects.metadata import Object, section
from pumice.proof.storm.driver import objects_of
from pumice.proof.storm.script.events import Event
from pumice.proof.strangers.driving import FAULTS, ApiCall, ApiDriver, moments
from pumice.proof.strangers.history import ApiChange, ApiHistory, Broken, read_journal
from pumice.proof.strangers.judges.panel import judged, subject_profile
from pumice.proof.strangers.script import RESTART, StrangerScript, is_fault
from pumice.proof.strangers.server import StormServer
from pumice.proof.strangers.subject import Subject, SubjectError

LOOK_S: Final = 0.25
LAG_S: Final = 5.0
"""Without faults: a period of the scheduler, its decision, and a busy machine."""
LAG_MOMENTS: Final = 0.5
SLACK_S: Final = 1.0
ANY_AGE_S: Final = 1e9
RELIST_S: Final = 30.0
"""client-go's reflectors wait that long before they list again after several failures."""
SETTLE_S: Final = 5.0
"""In lockstep: for kubelets and controllers to do what a moment brought about."""
BEGUN_S: Final = 1.0
"""A subject that ends before was never at work."""
LIVES: Final = "subject-lives"
LAST_MOMENTS: Final = 12
"""In lockstep: moments after the last event, in which what was refused is tried again."""
PATIENT: Final = frozenset(("starts", "whole-gangs", "grows-whole", "job-counts", "nominations"))
"""Invariants that a subject which is only slow makes good."""


class Pace(Struct, frozen=True):
    """Waiting times of a storm. `quiet_s`: without a change of any pod all is quiet; `patience_s`: a subject has so
    long to make good what it owes; `most_s`: in this time all must be quiet; `answer_s`: for a subject in lockstep.
    """

    quiet_s: float = 4.0
    patience_s: float = 40.0
    most_s: float = 90.0
    answer_s: float = 20.0


class StoppedError(Exception):
    """The command was ordered to stop."""


class ShownViolation(Struct, frozen=True):
    """A broken invariant, and when it showed: seconds since the faults began, in lockstep the number of the moment."""

    invariant: str
    words: str
    moment: float


class StormJudgement(Struct):
    """Result of a storm. `broken`: the earliest first; `changes`: of the API; `bound`: pods that were bound;
    `restarts`: seconds that each restart of a subject took.
    """

    script: StrangerScript
    broken: list[ShownViolation] = field(default_factory=list[ShownViolation])
    changes: int = 0
    bound: int = 0
    struck: Counter[str] = field(default_factory=Counter[str])
    restarts: list[float] = field(default_factory=list[float])


class Rig(Struct, frozen=True):
    """Means of running storms. `subjects`: the words of their commands; `flags`: of the server; `stop` ends all."""

    subjects: Sequence[Sequence[str]]
    flags: Sequence[str] = ()
    pace: Pace = Pace()
    stop: Signal = field(default_factory=Signal)


def run_storm(script: StrangerScript, rig: Rig, folder: Path) -> StormJudgement:
    """Run a storm, with all its files in the folder. Raises SubjectError, ServerFailedError."""
    with ExitStack() as stack:
        nodes = folder / "nodes.json"
        nodes.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": _nodes(script)}))
        server = StormServer(folder, (*rig.flags, "--seed", str(script.seed), "-f", str(nodes)))
        stack.callback(server.stop)
        server.start()
        client = stack.enter_context(server.client())
        storm = _Storm(script, rig, server, ApiDriver(script, client))
        for words in rig.subjects:
            subject = Subject(list(words), server.kubeconfig, folder)
            stack.callback(subject.stop)
            storm.subjects.append(subject)
        return storm.run()


def _nodes(script: StrangerScript) -> list[Object]:
    """Return the nodes that are there from the beginning: without any the server would make some."""
    return [obj for event in script.events if _is_first_node(event) for obj in objects_of(event)]


def _is_first_node(event: Event) -> bool:
    return event.what == "node" and event.at == 0.0


class _Storm:
    """A storm that is under way."""

    def __init__(self, script: StrangerScript, rig: Rig, server: StormServer, driver: ApiDriver) -> None:
        self.subjects: list[Subject] = []
        self._script = script
        self._pace = rig.pace
        self._stop = rig.stop
        self._server = server
        self._driver = driver
        self._moment = 0
        self._marks: list[int] = []
        self._began = 0.0

    def run(self) -> StormJudgement:
        """Run it to its end. Raises SubjectError for a subject that never got to work, ServerFailedError."""
        rest = self._begin()
        try:
            return self._go_on(rest)
        except SubjectError as error:  # it was at work: that it ended is a finding
            outcome = self._judged(quiet=False, moving=False)
            moment = float(self._moment) if self._script.lockstep else round(time.time() - self._began, 1)
            outcome.broken.insert(0, ShownViolation(LIVES, str(error), moment))
            return outcome

    def _begin(self) -> list[Event]:
        """Begin, and return the events that are to come."""
        rules = [msgspec.to_builtins(rule) for rule in self._script.rules]
        events = [event for event in self._script.events if not is_fault(event) and not _is_first_node(event)]
        self._happen([event for event in events if event.at == 0.0])
        self._driver.ask(ApiCall("POST", FAULTS, {"seed": self._script.seed, "rules": rules}))
        self._began = time.time()
        for subject in self.subjects:
            subject.start()
        self._step()
        self._pass_until(BEGUN_S)
        return [event for event in events if event.at > 0.0]

    def _go_on(self, events: Sequence[Event]) -> StormJudgement:
        for at, together in moments(events):
            self._pass_until(at)
            self._happen(together)
            self._step()
        self._driver.ask(ApiCall("DELETE", FAULTS))
        return self._end_in_lockstep() if self._script.lockstep else self._end()

    def _happen(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.what == RESTART:
                for subject in self.subjects:
                    subject.restart()
            else:
                self._driver.happen(event)

    def _pass_until(self, at: float) -> None:
        while not self._script.lockstep and (left := self._began + at - time.time()) > 0:
            time.sleep(min(left, LOOK_S))
        self._demand_alive()

    def _demand_alive(self) -> None:
        if self._stop.is_set():
            raise StoppedError
        for subject in self.subjects:
            subject.demand_alive()

    # --- moments

    def _step(self) -> None:
        """In lockstep: let the cluster settle, tell the subjects the next moment, and wait until they are done."""
        if not self._script.lockstep:
            return
        self._settle()
        self._marks.append(self._driver.revision())  # what the subjects can see at this moment
        self._moment += 1
        for subject in self.subjects:
            subject.tell(self._moment, self._pace.answer_s)
        self._settle()
        self._marks.append(self._driver.revision())

    def _settle(self) -> None:
        """Wait until kubelets and controllers have done what this moment brought about."""
        self._demand_alive()
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline:
            nodes = {node["metadata"]["name"] for node in self._driver.nodes()}
            if not any(_is_moving(pod, nodes) for pod in self._driver.pods()):
                return
            time.sleep(LOOK_S / 20)

    def _end_in_lockstep(self) -> StormJudgement:
        """Tell moments until nothing moves and no fault is pending."""
        outcome, still = StormJudgement(self._script), 0
        for _ in range(LAST_MOMENTS):
            before = _standing(self._driver.pods())
            self._step()
            still = still + 1 if _standing(self._driver.pods()) == before else 0
            if still > 1:
                outcome = self._judged(quiet=True)
                if not _owes(outcome):
                    return outcome
        return outcome if still > 1 else self._judged(quiet=False)

    # --- seconds

    def _end(self) -> StormJudgement:
        """Wait until all is quiet and nothing is owed any more, or a subject has had enough time for it."""
        until, began = time.monotonic() + self._pace.most_s, time.monotonic()
        while True:
            quiet = self._wait_quiet(until)
            outcome = self._judged(quiet=quiet)
            if not quiet or not _owes(outcome) or time.monotonic() - began > self._pace.patience_s:
                return outcome

    def _wait_quiet(self, until: float) -> bool:
        """Return whether no pod has changed for `quiet_s`; False at `until`."""
        before, since = _standing(self._driver.pods()), time.monotonic()
        while time.monotonic() - since < self._pace.quiet_s:
            if time.monotonic() > until:
                return False
            time.sleep(LOOK_S)
            self._demand_alive()
            now = _standing(self._driver.pods())
            if now != before:
                before, since = now, time.monotonic()
        return True

    # --- judgement

    def _judged(self, *, quiet: bool, moving: bool = True) -> StormJudgement:
        revision = self._driver.revision()
        changes, struck = read_journal(self._server.db)
        profile = subject_profile(self._script.judges)
        history = ApiHistory(
            changes=[self._timed(change) for change in changes if change.mutation.revision <= revision],
            acknowledged=self._driver.acknowledged,
            quiet=(revision,) if quiet else (),
            scheduler=profile.scheduler,
            lag_s=lag_of(self._script),
            slack_s=LAG_MOMENTS if self._script.lockstep else SLACK_S,
            struck=struck,
        )
        broken = judged(history, profile.judges)
        if not quiet and moving:
            broken.append(Broken("quiesces", "pods still change, long after the last fault", revision))
        return StormJudgement(
            self._script,
            [ShownViolation(each.invariant, each.words, self._moment_of(each, history)) for each in broken],
            len(history.changes),
            sum(1 for pod in self._driver.pods() if section(pod, "spec").get("nodeName")),
            struck,
            [seconds for subject in self.subjects for seconds in subject.restarts],
        )

    def _timed(self, change: ApiChange) -> ApiChange:
        """Return a change whose time counts, in lockstep, half moments: what subjects see, and what they do then."""
        if not self._script.lockstep:
            return change
        return ApiChange(float(bisect_left(self._marks, change.mutation.revision) + 1), change.mutation)

    def _moment_of(self, broken: Broken, history: ApiHistory) -> float:
        if self._script.lockstep:
            return float(bisect_left(self._marks, broken.revision) // 2 + 1)
        at = next((each.at for each in history.changes if each.mutation.revision == broken.revision), self._began)
        return round(max(at - self._began, 0.0), 1)


def lag_of(script: StrangerScript) -> float:
    """Return the age of the oldest state that a subject may decide on under these faults; in lockstep it sees in each
    moment what there is, except where lists are stale.
    """
    lag = LAG_S if not script.lockstep else LAG_MOMENTS
    for rule in script.rules:
        if isinstance(rule, Stale):
            return ANY_AGE_S
        if isinstance(rule, (AnswerLate, ArriveLate, DelayWatch)):
            lag += rule.delay_s
        elif isinstance(rule, (CutWatch, Expire, RestartServer)):
            lag = max(lag, RELIST_S)
    return lag


def _owes(outcome: StormJudgement) -> bool:
    return any(each.invariant in PATIENT for each in outcome.broken)


def _standing(pods: Sequence[Object]) -> list[tuple[str, str, str, bool]]:
    """Return what of pods is compared to see whether all is quiet."""
    return sorted(
        (
            pod["metadata"]["uid"],
            section(pod, "spec").get("nodeName") or "",
            section(pod, "status").get("phase") or "",
            "deletionTimestamp" in pod["metadata"],
        )
        for pod in pods
    )


def _is_moving(pod: Object, nodes: set[str]) -> bool:
    """Return whether a kubelet or a controller has yet to do something about a pod."""
    node, phase = section(pod, "spec").get("nodeName"), section(pod, "status").get("phase")
    return "deletionTimestamp" in pod["metadata"] or bool(node and (phase == "Pending" or node not in nodes))
