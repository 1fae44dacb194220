# SPDX-License-Identifier: Apache-2.0
"""The status writer: it writes a cycle's statuses of pods, PodGroups and queues to the api.

Owns: what it last said about each PodGroup, and the statuses that it has just written.
Accepts: `WriteStatus`.
Sends: asks the api (`ReportStatus`, which says up to which revision the object is known; after a conflict, which says
where the object is by now, it tries again immediately); tells the recorder what could not be written, and the cache
(`LookLater`) that there may be something to be said once more: nothing in the view says so.
When full: the session runner waits, as it does for what it asks: until all of a cycle has been tried.
Stops: after what is queued. After a crash the next instance writes again what it was sent; the askers get an error.

A cycle is not held up for longer than one try takes. Without an answer it is unknown whether a status is written: the
watch shows it, or a later cycle says it anew. One that has not yet seen what was written for the one before says the
same again, and what was written after all that a cycle saw is not written for it once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from pumice.actors.runtime.actor import Actor
from pumice.cluster.kernel.effects import report_of
from pumice.cluster.kube.events import Sayings
from pumice.core.messages.commands import ApiRequest, Append, Entry, Get, LookLater, ReportStatus, WriteStatus
from pumice.core.messages.events import StatusRefused
from pumice.core.messages.replies import Accepted, Done, Refused
from pumice.storage import codec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pumice.actors.runtime.actor import Context
    from pumice.actors.runtime.envelope import Received
    from pumice.actors.system.ports import ApiPort, CachePort, RecorderPort, StatusPort
    from pumice.core.messages.decisions import PodCondition, PodGroupEvent, PodGroupStatus, QueueStatus

    Status = PodCondition | PodGroupStatus | QueueStatus

ATTEMPTS = 5
WAIT_S = 1.0
"""Timeout of an answer: Volcano's period. What arrives later is not laid over what is newer than what was
known of the object.
"""
SOURCE = "volcano"
Where = tuple[str, str, str]
"""Kind, namespace and name."""
REMEMBERED = 10_000
"""PodGroups with a known last status; for a forgotten one the same status may be written again."""
CONFLICT, GONE = 409, 404
AGAIN_S, LONGEST_AGAIN_S = 1.0, 64.0
"""When a cycle says anew what was given up, or not answered: Volcano's period, doubled each time in a row."""
_NOTHING = None, 0
GIVEN_UP = Refused(CONFLICT, "Conflict", f"another client kept writing the object, {ATTEMPTS} times")


class StatusWriter(Actor[WriteStatus, Done]):
    """Writes the statuses of cycles in batches: of several about one object only the newest, and none that already
    stands.
    """

    cap = 8
    redeliver = True

    def __init__(
        self,
        name: str,
        mailbox: StatusPort,
        context: Context,
        *,
        api: ApiPort,
        cache: CachePort,
        recorder: RecorderPort,
        wait_s: float = WAIT_S,
    ) -> None:
        super().__init__(name, mailbox, context)
        self._wait_s = wait_s
        self._api = api
        self.waits_for = (api,)
        self._cache = cache
        self._recorder = recorder
        self._objects = context.objects
        self._said: dict[tuple[str, str], str] = {}
        self._sayings = Sayings("")
        self._written: dict[Where, tuple[Status, int]] = {}  # by rising revision
        self._in_a_row = 0

    def delivers_inline(self, message: WriteStatus) -> bool:
        """Return True for every message."""
        return True

    async def handle_batch(self, batch: Sequence[Received[WriteStatus, Done]]) -> None:
        """Write only the newest of several statuses for one object. No asker waits for events."""
        # Of two reports about one object the later one stays: it was made with more knowledge.
        newest = {_where(each): each for item in batch for each in _reports(item.message)}
        self._forget(min((item.message.seen for item in batch if item.message.seen), default=0))
        if newest:
            await self._write([report for where, report in newest.items() if not self._stands(where, report)])
        # Before the events: the session runner waits for the statuses alone.
        for item in batch:
            if item.asked:
                item.reply(Done())
        await self._announce([event for item in batch for event in item.message.events])

    def _forget(self, seen: int) -> None:
        """Forget the writes up to that revision: all later cycles have seen them."""
        # In the order of revisions, so the oldest come first and nothing is searched.
        while self._written and next(iter(self._written.values()))[1] <= seen:
            del self._written[next(iter(self._written))]

    def _stands(self, where: Where, report: ReportStatus) -> bool:
        """Return whether exactly this was written after what the cycle saw. A change by another writer since is seen by
        a later cycle.
        """
        written, revision = self._written.get(where, _NOTHING)
        return 0 < report.as_of < revision and written == report.wanted

    def _after_what_is_known(self, report: ReportStatus) -> ReportStatus:
        """Return the report as of the last write from here, which is then no conflict. That write is forgotten: until
        the answer comes, the state is unknown.
        """
        _, revision = self._written.pop(_where(report), _NOTHING)
        return replace(report, as_of=revision) if revision > report.as_of else report

    async def _write(self, left: Sequence[ReportStatus]) -> None:
        """Write statuses. One that is in conflict again and again is given up: a later cycle writes it anew."""
        unheard = 0
        for _ in range(ATTEMPTS):
            if not left:
                break
            left, unanswered = await self._try(left)
            unheard += unanswered
        await self._refused([(report, GIVEN_UP) for report in left])
        if left or unheard:
            await self._cache.tell(LookLater(min(AGAIN_S * 2.0**self._in_a_row, LONGEST_AGAIN_S)))
        # At 60 the delay has long reached its limit; without this bound 2.0 ** n would overflow in the end.
        self._in_a_row = min(self._in_a_row + 1, 60) if left or unheard else 0

    async def _announce(self, events: Sequence[PodGroupEvent]) -> None:
        """Write events about PodGroups that differ from their last one."""
        news = {(event.namespace, event.name): event for event in events if self._is_news(event)}
        found = await self._api.ask_many([Get("PodGroup", *where) for where in news], within_s=self._wait_s)
        requests: list[ApiRequest] = []
        for said, reply in zip(news.values(), found, strict=True):
            if isinstance(reply, Accepted):
                about = self._objects.unpack(reply.blob)
                now = self.clock.now()
                requests.append(self._sayings.say(about, said.reason, said.message, now, source=SOURCE))
        await self._api.ask_many(requests, within_s=self._wait_s)
        # Whatever came of the requests: an event is not worth a second try.
        self._said.update({where: said.message for where, said in news.items()})
        while len(self._said) > REMEMBERED:
            del self._said[next(iter(self._said))]

    def _is_news(self, event: PodGroupEvent) -> bool:
        return self._said.get((event.namespace, event.name)) != event.message

    async def _try(self, reports: Sequence[ReportStatus]) -> tuple[list[ReportStatus], int]:
        """Return the reports to be tried again after a conflict, and the number with an unknown result."""
        again: list[ReportStatus] = []
        refused: list[tuple[ReportStatus, Refused]] = []
        reports = [self._after_what_is_known(report) for report in reports]
        replies = await self._api.ask_many(reports, within_s=self._wait_s)
        for report, reply in zip(reports, replies, strict=True):
            if isinstance(reply, Refused) and reply.code == CONFLICT:
                # The refusal says at which revision the object is, so the next try needs no read.
                again.append(replace(report, as_of=reply.revision))
            # An object that is gone needs no status.
            elif isinstance(reply, Refused) and reply.code != GONE:
                refused.append((report, reply))
            elif isinstance(reply, Accepted):
                self._written[_where(report)] = report.wanted, reply.revision
        await self._refused(refused)
        return again, replies.count(None)

    async def _refused(self, refused: Sequence[tuple[ReportStatus, Refused]]) -> None:
        events = [
            StatusRefused(said.cycle, said.kind, said.namespace, said.name, reply.code, reply.reason, reply.message)
            for said, reply in refused
        ]
        if events:
            await self._recorder.tell(Append(tuple(Entry("outcome", codec.encode(event)) for event in events)))


def _where(report: ReportStatus) -> Where:
    return report.kind, report.namespace, report.name


def _reports(message: WriteStatus) -> Iterator[ReportStatus]:
    cycle, seen = message.cycle, message.seen
    said: list[Status] = [*message.pod_conditions, *message.pod_groups, *message.queues]
    return (report_of(each, cycle, seen) for each in said)
