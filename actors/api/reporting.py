"""What the scheduler says of pods, PodGroups and queues, laid over the statuses they have by then.

As with a patch, nobody reads an object before: it is the newest that is changed, and what is there already is not
written again.
"""

from __future__ import annotations

from actors.api import refusals
from actors.api.changes import Changes
from actors.api.registry import Registry
from actors.api.requests import Moment
from actors.statuses import reported
from core.messages.commands import ReportStatus
from core.messages.replies import Accepted, Refused


class Reporting:
    """Writes reported statuses."""

    def __init__(self, registry: Registry, changes: Changes) -> None:
        self._registry = registry
        self._changes = changes

    def report(self, request: ReportStatus, moment: Moment) -> Accepted | Refused:
        """Lay it over the newest status; 409 when that has changed since the revision that the reporter knew."""
        found = self._registry.for_status(request.kind, request.namespace, request.name)
        if isinstance(found, Refused):
            return found
        if int(found.obj["metadata"]["resourceVersion"]) > request.as_of:
            return refusals.modified(found.kind, request.name)
        after = reported(found.obj, request.wanted, moment.text, request.cycle)
        if after is None:
            return self._registry.unchanged(found.key)
        return self._changes.write_status(found, after, moment)
