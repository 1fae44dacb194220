"""What the Job controller says of Jobs in Event objects, in the words of Volcano's (`recordJobEvent` and others).

Nobody decides by them: they are said where somebody can look at them.
"""

from __future__ import annotations

from typing import Final

from pumice.cluster.controllers.jobs.life import Action
from pumice.cluster.controllers.jobs.policies import Resolved
from pumice.cluster.kube.events import Sayings
from pumice.config.durations import SECOND_NS, format_duration
from pumice.core.messages.commands import Create, Patch
from pumice.core.objects.metadata import Object

SOURCE: Final = "vc-controller-manager"
EXECUTE: Final = "ExecuteAction"
POLICY: Final = "PolicyApplied"
"""The reason of an event that Volcano does not have: its events name the action alone."""
_REFUSALS: Final = {
    "Pod": ("FailedCreate", "Error creating pods: [{}]"),
    "PodGroup": ("PodGroupError", "Failed to create PodGroup, err: {}"),
    "PersistentVolumeClaim": ("PVCError", "Failed to create PVC, err: {}"),
}
_PLUGIN: Final = ("PluginError", "Execute plugin when job add failed, err: {}")


class Announcements:
    """Events about Jobs, until they are taken. `aloud`: whether anybody listens."""

    def __init__(self, user: str, *, aloud: bool) -> None:
        self._sayings = Sayings(user)
        self._aloud = aloud
        self._requests: list[Create | Patch] = []

    def take(self) -> list[Create | Patch]:
        """What is to be asked of the api for them."""
        requests, self._requests = self._requests, []
        return requests

    def executed(self, job: Object, resolved: Resolved, now: float) -> None:
        """An action begins, or is put off."""
        if resolved.delay_s > 0:
            delay = format_duration(round(resolved.delay_s * SECOND_NS))
            self._say(job, EXECUTE, f"Execute action {resolved.action} after {delay}", now)
        elif resolved.action is not Action.SYNC_JOB:
            self._say(job, EXECUTE, f"Start to execute action {resolved.action} ", now)
            if because := resolved.because():
                self._say(job, POLICY, because, now)

    def commanded(self, job: Object, action: str, now: float) -> None:
        """A command has come, and is taken away."""
        message = f"Start to execute command {action}, and clean it up to make sure executed not more than once."
        self._say(job, "CommandIssued", message, now)

    def given_up(self, job: Object, now: float) -> None:
        """What was tried too often."""
        self._say(job, EXECUTE, f"Job failed on action {Action.SYNC_JOB} for retry limit reached", now)

    def refused(self, job: Object, kind: str, why: str, now: float) -> None:
        """The api will not have what the Job needs, or a plugin cannot make it."""
        reason, message = _REFUSALS.get(kind, _PLUGIN)
        self._say(job, reason, message.format(why), now, warning=True)

    def _say(self, job: Object, reason: str, message: str, now: float, *, warning: bool = False) -> None:
        if self._aloud:
            self._requests.append(self._sayings.say(job, reason, message, now, source=SOURCE, warning=warning))
