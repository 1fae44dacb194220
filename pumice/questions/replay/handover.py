# SPDX-License-Identifier: Apache-2.0
"""From the record to virtual time: a journal from which a system can go on at the moment of the parting.

What was in flight then and landed, as the record says, lands at that moment; what ran then ends when it ended, or when
it would have. Both are changes that user `replay` makes, in the journal like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import floor
from types import MappingProxyType
from typing import Final

from pumice.cluster.api.store import Store
from pumice.cluster.kubelets.pod_life import PodState
from pumice.cluster.kubelets.pod_runs import DEFAULT_DURATION_S, DURATION, EXIT_CODE, TERMINATION, PodRun, read_run
from pumice.core.messages.commands import BindPod, Delete, EvictPod, Patch, StoreRequest
from pumice.core.messages.decisions import Bind, Decision
from pumice.core.messages.events import ConfigLoaded, CycleRecord, Mutation
from pumice.core.messages.replies import Listing
from pumice.core.objects.metadata import Object, section
from pumice.questions.replay.remainder import Remainder
from pumice.storage import codec
from pumice.storage.journal import API, Journal, Record
from pumice.storage.recovery import recover

USER: Final = "replay"
SHORTEST_S: Final = 0.001


class Beginnings:
    """Times of pods by uid, as the journal has them: when they began to run, and when they were asked to stop.

    `default_duration_s`: how long one runs that does not say so itself: as the journal says (`known`), else as the last
    one did; where another cluster was mirrored, whose nodes no kubelet here plays, for ever (0) until one was seen to
    end.
    """

    def __init__(self) -> None:
        self.running: dict[str, float] = {}
        self.leaving: dict[str, float] = {}
        self.default_duration_s = DEFAULT_DURATION_S
        self.known = self._seen = False

    def told(self, config: ConfigLoaded | None) -> None:
        """Note the settings of the run that the journal states."""
        if config is not None and config.default_duration_s is not None:
            self.default_duration_s, self.known = config.default_duration_s, True

    def decided(self, record: CycleRecord) -> None:
        """Note the holder of an eviction."""
        if record.observed and not self.known and not self._seen:
            self.default_duration_s = 0.0

    def restarted(self) -> None:
        """Note a restarted node agent, which counts from whole seconds."""
        self.running = {uid: float(floor(at)) for uid, at in self.running.items()}

    def note(self, mutation: Mutation, at: float) -> None:
        """Note the next change."""
        if mutation.kind == "Pod":
            pod: Object = codec.unpack(mutation.blob)
            metadata = section(pod, "metadata")
            uid = metadata.get("uid") or ""
            phase = section(pod, "status").get("phase")
            if phase == "Running":
                self.running.setdefault(uid, at)
            by_itself = phase == "Succeeded" and not metadata.get("deletionTimestamp")
            if (
                by_itself
                and not self.known
                and uid in self.running
                and DURATION not in section(metadata, "annotations")
            ):
                self.default_duration_s, self._seen = round(at - self.running.pop(uid), 3), True
            if metadata.get("deletionTimestamp"):
                self.leaving.setdefault(uid, at)


async def hand_over(
    journal: Journal, remainder: Remainder, beginnings: Beginnings, at: float, seed: int
) -> dict[str, float]:
    """Append the required state of that moment to the journal, and return by uid when leaving pods will be gone."""
    store = Store(seed=seed + 1)
    recovered = await recover(journal, store.restore, store.load)
    records: list[Record] = []
    for sequence, (cycle, decision) in sorted(recovered.unresolved.items()):
        if sequence in remainder.done:
            store.apply(_landing(cycle, sequence, decision), at)
            records += _written(store, at, sequence)
    leaving: dict[str, float] = {}
    for pod in _pods(store):
        run = read_run(pod, 0, beginnings.default_duration_s)
        if run is None:
            continue
        if run.delete_by:
            leaving[run.uid] = _gone(run, remainder, beginnings, at)
            code = remainder.stopped.get(run.uid)
            how = {} if code is None else {EXIT_CODE: str(code)}
            store.apply(_annotated(run, TERMINATION, leaving[run.uid] - at, how), at)
        elif run.state is PodState.RUNNING and (end := _end(run, remainder, beginnings)) is not None:
            store.apply(_annotated(run, DURATION, end - run.started, _exit_code(run)), at)
    await journal.append([*records, *_written(store, at)])
    return leaving


async def hand_over_again(journal: Journal, leaving: dict[str, float], at: float, seed: int) -> None:
    """Correct a restart after that: node agents count the time of leaving pods anew."""
    store = Store(seed=seed + 1)
    await recover(journal, store.restore, store.load)
    for pod in _pods(store):
        run = read_run(pod, 0)
        if run is None or not run.delete_by or run.uid not in leaving:
            continue
        if leaving[run.uid] - at < SHORTEST_S:  # it had gone by then, and who comes next may make it anew
            store.apply(Delete("Pod", run.namespace, run.name, uid=run.uid, grace_period_s=0, user=USER), at)
        else:
            store.apply(_annotated(run, TERMINATION, leaving[run.uid] - at), at)
    await journal.append(_written(store, at))


def _pods(store: Store) -> list[Object]:
    listing = store.list("Pod")
    return [codec.unpack(blob) for blob in listing.blobs] if isinstance(listing, Listing) else []


def _gone(run: PodRun, remainder: Remainder, beginnings: Beginnings, at: float) -> float:
    """Return the end of a leaving pod, which would be given all its time anew."""
    told = beginnings.leaving.get(run.uid, at)
    return remainder.gone.get(run.uid) or run.stops_at(told)


def _end(run: PodRun, remainder: Remainder, beginnings: Beginnings) -> float | None:
    """Return the end of a running pod: a node agent that starts counts from whole seconds."""
    end = remainder.ended.get(run.uid)
    if end is None and run.duration_s:
        end = beginnings.running.get(run.uid, run.started) + run.duration_s
    return end


def _written(store: Store, at: float, cause: int = 0) -> list[Record]:
    return [Record(API, codec.encode(mutation), cause, at) for mutation in store.drain()]


def _landing(cycle: int, sequence: int, decision: Decision) -> StoreRequest:
    cause = f"{cycle}/{decision.uid}"
    whose = (decision.namespace, decision.name, decision.uid)
    if isinstance(decision, Bind):
        return BindPod(*whose, decision.node, cause, sequence, decision.annotations)
    return EvictPod(*whose, cause=cause, sequence=sequence)


def _exit_code(run: PodRun) -> dict[str, str]:
    """Return the annotation of the exit code. A pod with an end of its own no longer follows its containers'
    commands."""
    return {EXIT_CODE: str(run.exit_code)} if run.life is not None and run.exit_code else {}


def _annotated(run: PodRun, key: str, seconds: float, more: Mapping[str, str] = MappingProxyType({})) -> Patch:
    blob = codec.pack({"metadata": {"annotations": {key: f"{max(seconds, SHORTEST_S):.6f}s", **more}}})
    return Patch("Pod", run.namespace, run.name, blob, user=USER)
