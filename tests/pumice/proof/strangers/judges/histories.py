"""Histories of the API, written by hand: a change a second."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from pumice.core.messages.events import Mutation
from pumice.proof.strangers.history import Acknowledged, ApiChange, ApiHistory, Broken
from pumice.proof.strangers.judges.panel import JUDGES
from pumice.storage import codec

Object = dict[str, Any]
STORM = "~pumice-stress"


class Told:
    """A history under way; every change has the next revision, one second later."""

    def __init__(self, *objects: Object) -> None:
        self.changes: list[ApiChange] = []
        self.acknowledged: list[Acknowledged] = []
        for obj in objects:
            self.add(obj)

    @property
    def revision(self) -> int:
        return len(self.changes)

    def add(self, obj: Object, type_: str = "ADDED", user: str = STORM) -> Told:
        meta = obj["metadata"]
        blob = codec.pack(obj)
        mutation = Mutation(self.revision + 1, type_, obj["kind"], meta.get("namespace", ""), meta["name"], blob, user)
        self.changes.append(ApiChange(float(self.revision + 1), mutation))
        return self

    def change(self, obj: Object, user: str = STORM, **parts: Any) -> Told:
        """`obj` from now on, with these parts of its spec, status and metadata."""
        for name, part in parts.items():
            obj[name] = {**obj.get(name, {}), **part}
        return self.add(obj, "MODIFIED", user)

    def bind(self, pod: Object, node: str) -> Told:
        return self.change(pod, "bind-worker", spec={"nodeName": node}, status={"phase": "Running"})

    def delete(self, obj: Object, user: str = STORM) -> Told:
        return self.add(obj, "DELETED", user)

    def wait(self, seconds: int) -> Told:
        """So many seconds in which something else changes."""
        for _ in range(seconds):
            self.add({"kind": "Lease", "metadata": {"namespace": "default", "name": "other"}}, "MODIFIED")
        return self

    def judged(self, judge: str, **options: Any) -> list[Broken]:
        given: dict[str, Any] = {"quiet": (self.revision,), "lag_s": 3.0, "acknowledged": self.acknowledged, **options}
        return [*JUDGES[judge].judge(ApiHistory(deepcopy(self.changes), **given))]

    def broken(self, judge: str, **options: Any) -> list[str]:
        """The names of the invariants."""
        return [each.invariant for each in self.judged(judge, **options)]
