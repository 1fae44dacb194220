"""What the scheduler says of pods, PodGroups and queues, laid over the statuses they have by then.

As with a patch, nobody reads an object before: it is the newest that is changed, and what is there already is not
written again.
"""

from __future__ import annotations

from msgspec.structs import replace

from pumice.cluster.api import refusals
from pumice.cluster.api.registry import Registry
from pumice.cluster.api.verbs.changes import Changes
from pumice.cluster.api.verbs.requests import RequestMoment
from pumice.cluster.kube.statuses import reported
from pumice.core.messages.commands import ReportStatus
from pumice.core.messages.replies import Accepted, Refused


class Reporting:
    """Writes reported statuses."""

    def __init__(self, registry: Registry, changes: Changes) -> None:
        self._registry = registry
        self._changes = changes

    def report(self, request: ReportStatus, moment: RequestMoment) -> Accepted | Refused:
        """Lay it over the newest status; 409, and its revision, when that has changed since what the reporter knew.

        The answer does not bring the object along: reports are many, and who reports watches.
        """
        found = self._registry.for_status(request.kind, request.namespace, request.name)
        if isinstance(found, Refused):
            return found
        revision = found.record.revision
        if revision > request.as_of:
            return replace(refusals.modified(found.kind, request.name), revision=revision)
        after = reported(found.obj, request.wanted, moment.text, request.cycle)
        written = self._changes.write_status(found, after, moment, typed=True) if after is not None else b""
        return written if isinstance(written, Refused) else Accepted(self._registry.tables.revision)
