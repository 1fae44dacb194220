# SPDX-License-Identifier: Apache-2.0
"""Reason why the object of a story still waits at its end: the newest cycle is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypedDict

from pumice.config.errors import PumiceError
from pumice.questions.explain.account import account_of
from pumice.questions.explain.refused import refused_in
from pumice.questions.explain.scene import scene_of
from pumice.questions.history.entries import StoryEntry
from pumice.questions.history.rewind import newest_cycle, rewind_file
from pumice.questions.replay.plugins import demand_plugins

KINDS: Final = {"Pod": "pod", "PodGroup": "podgroup", "Job": "job"}
WAITING: Final = ("", "Pending", "Inqueue", "Unknown")
"""First words of the state of an object that waits."""


def waiting_kind(name: str, story: Sequence[StoryEntry]) -> str | None:
    """Return the kind of the waiting object of this name: pod, podgroup or job. None when it runs, has ended, was
    deleted or is of another kind."""
    for word, kind in KINDS.items():
        last = next((one for one in reversed(story) if one.data.get("object") == f"{word} {name}"), None)
        if last is None:
            continue
        state = str(last.data["state"])
        if last.data["type"] != "DELETED" and state.split(",", maxsplit=1)[0] in WAITING and ", on " not in state:
            return kind
    return None


class WaitsNow(TypedDict):
    """Reason for waiting in the newest cycle."""

    cycle: int
    state: str
    reason: str
    message: str


async def why_it_waits(file: Path, kind: str, name: str) -> WaitsNow | None:
    """Return cycle, reason and message; None when the journal has no cycle or the newest one does not know the
    object.
    """
    try:
        number = await newest_cycle(file)
        await demand_plugins(file, None, lambda sentence: None)
        scene = replace(scene_of(await rewind_file(file, number)), refused=await refused_in(file, None))
        account = account_of(scene, kind, name)
    except PumiceError:
        return None
    return {"cycle": number, "state": account.state, "reason": account.reason, "message": account.message}
