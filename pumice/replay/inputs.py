"""The inputs of a recorded run: what people asked of the api, and when, without anything the system did by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from actors.agents.pod_runs import DURATION
from actors.system.roles import LINKS
from core.messages.commands import ApiRequest, Create, Delete, Update, UpdateStatus
from core.messages.events import Mutation
from core.objects.metadata import section
from storage import codec
from storage.journal import API, CONFIG, Journal, Stored

Object = dict[str, Any]
BATCH: Final = 5_000

ITSELF: Final = frozenset(LINKS) | {"scheduler", ""}
"""Users of the api that are parts of the system; some add, after a blank, for whom they ask."""

OURS: Final = ("uid", "resourceVersion", "creationTimestamp", "generation", "deletionTimestamp")
"""What the api writes into an object's metadata."""


@dataclass(frozen=True, slots=True)
class Input:
    """A request at a time (seconds since the epoch)."""

    at: float
    request: ApiRequest


@dataclass
class Inputs:
    """In order; `config`: the text of the last configuration in force, `started` the time of the first record."""

    requests: list[Input]
    config: str = ""
    started: float = 0.0
    ended: float = 0.0
    events: int = 0


class InputReader:
    """Takes the journal record by record."""

    def __init__(self) -> None:
        self.inputs = Inputs([])
        self._runs: dict[str, float] = {}
        self._began: dict[str, float] = {}

    def note(self, stored: Stored) -> None:
        """The next record."""
        inputs = self.inputs
        inputs.started = inputs.started or stored.at
        inputs.ended, inputs.events = stored.at, inputs.events + 1
        if stored.kind == CONFIG:
            loaded: Object = codec.unpack(stored.payload)
            inputs.config = inputs.config if loaded.get("error") else loaded["text"]
        elif stored.kind == API:
            mutation = codec.decode(stored.payload, Mutation)
            if mutation.kind == "Pod":
                self._time(mutation, stored.at)
            if mutation.user.partition(" ")[0] not in ITSELF and not stored.cause:
                inputs.requests.extend(Input(stored.at, request) for request in requests_of(mutation))

    def _time(self, mutation: Mutation, at: float) -> None:
        """How long each pod ran, as the node agents had it."""
        name = f"{mutation.namespace}/{mutation.name}"
        phase = section(codec.unpack(mutation.blob), "status").get("phase")
        if phase == "Running":
            self._began.setdefault(name, at)
        elif phase in ("Succeeded", "Failed") and name in self._began:
            self._runs.setdefault(name, at - self._began[name])

    def whole(self) -> Inputs:
        """All of them; a pod that was handed in without a duration runs as long as it did."""
        self.inputs.requests = [Input(one.at, self._timed(one.request)) for one in self.inputs.requests]
        return self.inputs

    def _timed(self, request: ApiRequest) -> ApiRequest:
        if not isinstance(request, Create):
            return request
        obj: Object = codec.unpack(request.blob)
        metadata = section(obj, "metadata")
        ran = self._runs.get(f"{metadata.get('namespace')}/{metadata.get('name')}")
        annotations = metadata.setdefault("annotations", {})
        if obj.get("kind") != "Pod" or ran is None or DURATION in annotations:
            return request
        annotations[DURATION] = f"{ran:.3f}s"
        return Create(codec.pack(obj), user=request.user)


def requests_of(mutation: Mutation) -> list[ApiRequest]:
    """What leads to this change again."""
    obj: Object = codec.unpack(mutation.blob)
    where = (mutation.kind, mutation.namespace, mutation.name)
    if mutation.type == "DELETED" or section(obj, "metadata").get("deletionTimestamp"):
        return [Delete(*where, user=mutation.user)]
    metadata = {key: value for key, value in section(obj, "metadata").items() if key not in OURS}
    blob = codec.pack({**obj, "metadata": metadata})
    if mutation.type == "ADDED":
        return [Create(blob, user=mutation.user)]
    status = codec.pack(section(obj, "status"))
    return [Update(blob, user=mutation.user), UpdateStatus(*where, status, user=mutation.user)]


async def read_inputs(journal: Journal) -> Inputs:
    """Of the whole journal."""
    reader, after = InputReader(), 0
    while batch := await journal.read(after, limit=BATCH):
        for stored in batch:
            reader.note(stored)
        after = batch[-1].sequence
    return reader.whole()
