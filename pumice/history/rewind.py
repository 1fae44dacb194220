"""A journal wound back to the moment before a cycle: what that cycle saw."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from config.errors import ConfigError
from core.messages.decisions import Bind, Decision, Evict
from core.messages.events import BindRefused, ConfigLoaded, CycleRecord, EvictRefused, Mutation, Outcome
from core.objects.metadata import section
from storage import codec
from storage.journal import API, CONFIG, CYCLE, DECISION, OUTCOME, Journal, Stored

Object = dict[str, Any]
BATCH = 5_000


@dataclass(slots=True)
class Rewound:
    """The objects as of the cycle's revision, in order of arrival; decisions that the API did not show yet; its clock.

    `config` is the text of the configuration in force.
    """

    record: CycleRecord
    objects: list[Object]
    binds: list[Bind]
    evicts: list[Evict]
    config: str


@dataclass(slots=True)
class _Past:
    """Everything before the record of the cycle."""

    mutations: list[Mutation] = field(default_factory=list[Mutation])
    decisions: dict[int, Decision] = field(default_factory=dict[int, Decision])
    configs: dict[str, str] = field(default_factory=dict[str, str])

    def note(self, stored: Stored) -> None:
        match stored.kind:
            case kind if kind == API:
                self.mutations.append(codec.decode(stored.payload, Mutation))
            case kind if kind == DECISION:
                self.decisions[stored.sequence] = codec.decode(stored.payload, Decision)
            case kind if kind == OUTCOME:
                if isinstance(codec.decode(stored.payload, Outcome), (BindRefused, EvictRefused)):
                    self.decisions.pop(stored.cause, None)
            case kind if kind == CONFIG:
                loaded = codec.decode(stored.payload, ConfigLoaded)
                self.configs[loaded.digest] = loaded.text
            case _:
                pass


async def rewind(journal: Journal, cycle: int, source: str) -> Rewound:
    """What the cycle of that number saw. ConfigError naming `source` when the journal has no such cycle."""
    past, after = _Past(), 0
    while batch := await journal.read(after, (API, CYCLE, DECISION, OUTCOME, CONFIG), BATCH):
        for stored in batch:
            if stored.kind == CYCLE:
                record = codec.decode(stored.payload, CycleRecord)
                if record.cycle == cycle:
                    return _rewound(past, record)
            past.note(stored)
        after = batch[-1].sequence
    raise ConfigError(f"the journal has no cycle {cycle}", source=source, path="--at")


def _rewound(past: _Past, record: CycleRecord) -> Rewound:
    objects = _as_of(past.mutations, record.revision)
    waiting = {str(section(pod, "metadata").get("uid")) for pod in objects if _waits(pod)}
    staying = {str(section(pod, "metadata").get("uid")) for pod in objects if _stays(pod)}
    decisions = list(past.decisions.values())
    return Rewound(
        record,
        objects,
        [one for one in decisions if isinstance(one, Bind) and one.uid in waiting],
        [one for one in decisions if isinstance(one, Evict) and one.uid in staying],
        past.configs.get(record.config_digest, ""),
    )


def _as_of(mutations: list[Mutation], revision: int) -> list[Object]:
    """The truth at a revision. An object that was deleted and made again arrives anew."""
    found: dict[tuple[str, str, str], bytes] = {}
    for mutation in mutations:
        key = (mutation.kind, mutation.namespace, mutation.name)
        if mutation.revision > revision:
            continue
        if mutation.type == "DELETED":
            found.pop(key, None)
        else:
            found[key] = mutation.blob
    return [codec.unpack(blob) for blob in found.values()]


def _waits(obj: Object) -> bool:
    return obj.get("kind") == "Pod" and not section(obj, "spec").get("nodeName")


def _stays(obj: Object) -> bool:
    return obj.get("kind") == "Pod" and not section(obj, "metadata").get("deletionTimestamp")
