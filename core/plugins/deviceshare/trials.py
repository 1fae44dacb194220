"""The dry runs of topology-aware preemption: devices of victims that went are free for the preemptor.

Source: Volcano `plugins/predicates` (SimulatePredicate), `api/node_info.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.core.plugins.deviceshare.looking import NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.devices.family import Family
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session


class DeviceTrials:
    """The plugin's part in a trial: the trial's `state` has the node's devices as the trial leaves them."""

    def __init__(self, session: Session, families: Sequence[Family]) -> None:
        self._session, self._families = session, families

    def _devices(self, state: dict[str, Any], preemptor: Task, row: int) -> list[Family]:
        devices: list[Family] | None = state.get(NAME)
        if devices is None:
            concerned = [each for each in self._families if each.present[row] and each.concerns(preemptor)]
            devices = state[NAME] = [each.trial(row) for each in concerned]
        return devices

    def is_quiet(self, preemptor: Task) -> bool:
        """Whether the preemptor asks for no devices."""
        return not any(each.concerns(preemptor) for each in self._families)

    def add(self, state: dict[str, Any], preemptor: Task, task: Task, node: int) -> str | None:
        """The task is back on the node."""
        for each in self._devices(state, preemptor, node):
            each.add(0, task, self._session.snapshot.annotations_of(task))
        return None

    def remove(self, state: dict[str, Any], preemptor: Task, task: Task, node: int) -> str | None:
        """The task is gone from the node."""
        for each in self._devices(state, preemptor, node):
            each.remove(0, task, self._session.snapshot.annotations_of(task))
        return None

    def predicate(self, state: dict[str, Any], preemptor: Task, node: int) -> str | None:
        """Whether the node has what the preemptor asks for as the trial stands; a text says why not."""
        for each in self._devices(state, preemptor, node):
            if not each.fits(preemptor, 0):
                where, why = self._session.nodes.names[node], each.refusal(preemptor, 0).text
                return f"device {each.name} cannot fit task {preemptor.key} on node {where}: {why}"
        return None
