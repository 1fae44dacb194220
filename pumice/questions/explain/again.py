"""A Job that has ended because its pods could not be made, as if it were submitted again: what would have helped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object
from pumice.questions.oneshot.cycles import fill
from pumice.questions.oneshot.expand import expanded
from pumice.storage import codec
from pumice.storage.journal import API
from pumice.storage.sqlite import SqliteJournal

if TYPE_CHECKING:
    from pumice.questions.explain.scene import Scene

BATCH: Final = 5_000


async def last_job(file: Path, name: str) -> Object | None:
    """The Job "namespace/name" as a journal has it last; None when it never was, or is gone."""
    last, after = None, 0
    async with await SqliteJournal.open(file, read_only=True) as journal:
        while batch := await journal.read(after, (API,), BATCH):
            for stored in batch:
                change = codec.decode(stored.payload, Mutation)
                if change.kind == "Job" and f"{change.namespace}/{change.name}" == name:
                    last = None if change.type == "DELETED" else change.blob
            after = batch[-1].sequence
    return None if last is None else codec.unpack(last)


def submitted_again(scene: Scene, job: Object) -> Scene:
    """That moment, with the Job as it was submitted and what controllers make of it."""
    fresh = {part: value for part, value in job.items() if part != "status"}
    objects = expanded([*scene.objects(), fresh], scene.clock.now).objects
    return replace(scene, view=fill(objects, scene.in_flight), recorded=None, objects=lambda: objects)
