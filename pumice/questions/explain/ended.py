# SPDX-License-Identifier: Apache-2.0
"""Reason why a Job that no cycle knows has ended, or why it has no pods: the last words of its controller."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypedDict

from pumice.cluster.controllers.jobs.status import CREATION_REFUSED
from pumice.core.objects.metadata import Object, section
from pumice.questions.history.entries import NameFilter, StoryEntry, as_entries
from pumice.questions.history.naming import open_naming
from pumice.questions.history.objects import cause_of, state_of
from pumice.questions.oneshot.identity import stored_as
from pumice.storage.journal import API

ENDS: Final = {
    "Completed": "as many of its tasks as it needs have succeeded",
    "Failed": "its tasks have failed more often than it allows",
    "Aborting": "it is being aborted, by a command or by one of its policies",
    "Aborted": "it was aborted, by a command or by one of its policies; it can be resumed",
    "Terminating": "it is being terminated, by a command or by one of its policies",
    "Terminated": "it was terminated, by a command or by one of its policies",
    "Completing": "it is being completed, by a command or by one of its policies",
}


class JobEnd(TypedDict):
    """The state of a Job that has ended or cannot make its pods, and why: a word, and a sentence."""

    state: str
    reason: str
    message: str


def end_of(name: str, story: Iterable[StoryEntry]) -> JobEnd | None:
    """Return state, reason and message of the Job "namespace/name" at the end of the story: when it has ended, or its
    pods cannot be made; None otherwise, or when it is gone.
    """
    last: Object = {}
    for entry in story:
        if entry.data.get("object") == f"Job {name}":
            last = entry.data
    if not last or last["type"] == "DELETED":
        return None
    return _end(str(last["state"]), str(last.get("reason") or ""), str(last.get("message") or ""))


def end_among(name: str, objects: Iterable[Object]) -> JobEnd | None:
    """Return the same as `end_of`, from the objects of a cluster as they are now."""
    namespace, _, bare = name.partition("/")
    for obj in objects:
        metadata = section(obj, "metadata")
        if stored_as(obj) == "Job" and (metadata.get("namespace") or "default", metadata.get("name")) == (
            namespace,
            bare,
        ):
            return _end(state_of(obj), *cause_of(obj))
    return None


def _end(state_and_counts: str, reason: str, why: str) -> JobEnd | None:
    state, _, rest = state_and_counts.partition(", ")
    if state not in ENDS and reason != CREATION_REFUSED:
        return None
    counts = rest.removesuffix(why).rstrip(", ")
    sentence = why or f"{ENDS[state]}{f' ({counts})' if counts else ''}"
    return {"state": state, "reason": reason or state, "message": sentence}


async def end_in(file: Path, name: str) -> JobEnd | None:
    """Return the same as `end_of`, from a journal, which is only read."""
    named = NameFilter(name)
    async with open_naming(file, named) as naming:
        return end_of(name, [entry async for entry in as_entries(naming.read((API,)))])
