"""From the record to virtual time: a journal that a system can go on from at the moment of the parting.

What was in flight then and landed, as the record says, lands at that moment; what ran then ends when it ended, or when
it would have. Both are changes that user `replay` makes, in the journal like any other.
"""

from __future__ import annotations

from typing import Any, Final

from actors.agents.pod_life import PodState
from actors.agents.pod_runs import DEFAULT_DURATION_S, DURATION, TERMINATION, PodRun, read_run
from actors.api.store import Store
from core.messages.commands import BindPod, EvictPod, Patch, StoreRequest
from core.messages.decisions import Bind, Decision
from core.messages.events import Mutation
from core.messages.replies import Listing
from core.objects.metadata import section
from pumice.replay.remainder import Remainder
from storage import codec
from storage.journal import API, Journal, Record
from storage.recovery import recover

Object = dict[str, Any]
USER: Final = "replay"
SHORTEST_S: Final = 0.001


class Beginnings:
    """By uid, as the journal's times have it: when pods began to run, and when they were told to go.

    `default_duration_s`: how long one ran that does not say so itself.
    """

    def __init__(self) -> None:
        self.running: dict[str, float] = {}
        self.leaving: dict[str, float] = {}
        self.default_duration_s = DEFAULT_DURATION_S

    def note(self, mutation: Mutation, at: float) -> None:
        """The next change."""
        if mutation.kind == "Pod":
            pod: Object = codec.unpack(mutation.blob)
            metadata = section(pod, "metadata")
            uid = metadata.get("uid") or ""
            phase = section(pod, "status").get("phase")
            if phase == "Running":
                self.running.setdefault(uid, at)
            by_itself = phase == "Succeeded" and not metadata.get("deletionTimestamp")
            if by_itself and uid in self.running and DURATION not in section(metadata, "annotations"):
                self.default_duration_s = round(at - self.running.pop(uid), 3)
            if metadata.get("deletionTimestamp"):
                self.leaving.setdefault(uid, at)


async def hand_over(journal: Journal, remainder: Remainder, beginnings: Beginnings, at: float, seed: int) -> None:
    """Append to the journal what has to be known at that moment."""
    store = Store(seed=seed + 1)
    recovered = await recover(journal, store.restore, store.load)
    records: list[Record] = []
    for sequence, (cycle, decision) in sorted(recovered.unresolved.items()):
        if sequence in remainder.done:
            store.apply(_landing(cycle, sequence, decision), at)
            records += _written(store, at, sequence)
    listing = store.list("Pod")
    for blob in listing.blobs if isinstance(listing, Listing) else ():
        request = _given_its_end(codec.unpack(blob), remainder, beginnings, at)
        if request is not None:
            store.apply(request, at)
    await journal.append([*records, *_written(store, at)])


def _written(store: Store, at: float, cause: int = 0) -> list[Record]:
    return [Record(API, codec.encode(mutation), cause, at) for mutation in store.drain()]


def _landing(cycle: int, sequence: int, decision: Decision) -> StoreRequest:
    cause = f"{cycle}/{decision.uid}"
    whose = (decision.namespace, decision.name, decision.uid)
    if isinstance(decision, Bind):
        return BindPod(*whose, decision.node, cause, sequence, decision.annotations)
    return EvictPod(*whose, cause=cause, sequence=sequence)


def _given_its_end(pod: Object, remainder: Remainder, beginnings: Beginnings, at: float) -> Patch | None:
    """A node agent that starts reckons from whole seconds, and a pod that is leaving anew: it is told what is left."""
    run = read_run(pod, 0, beginnings.default_duration_s)
    if run is None:
        return None
    if run.delete_by:
        told = beginnings.leaving.get(run.uid, at)
        gone = remainder.gone.get(run.uid) or told + run.termination_s
        return _annotated(run, TERMINATION, gone - at)
    if run.state is not PodState.RUNNING:
        return None
    end = remainder.ended.get(run.uid)
    if end is None and run.duration_s:
        end = beginnings.running.get(run.uid, run.started) + run.duration_s
    return None if end is None else _annotated(run, DURATION, end - run.started)


def _annotated(run: PodRun, key: str, seconds: float) -> Patch:
    blob = codec.pack({"metadata": {"annotations": {key: f"{max(seconds, SHORTEST_S):.6f}s"}}})
    return Patch("Pod", run.namespace, run.name, blob, user=USER)
