"""Plugin extender: registers a rule for each verb that the configuration names. Source: Volcano
`plugins/extender/extender.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from pumice.core.plugins.extender.bodies import Bodies
from pumice.core.plugins.extender.calls import NAME, Calls
from pumice.core.plugins.extender.nodes import ExtenderFilter, ExtenderScorer
from pumice.core.plugins.extender.replies import (
    ENQUEUEABLE,
    EVENT,
    OVERUSED,
    READY,
    RECLAIMED,
    VICTIMS,
    ExtenderError,
    ReplyShape,
)
from pumice.core.plugins.extender.settings import read_settings
from pumice.core.session.points.votes import Vote, sign

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.plugins.extender.settings import ExtenderSettings
    from pumice.core.session.points.binding import Handler
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

JOB_READY: Final = "extender-job-ready"


class Extender:
    """Asks `extender.urlPrefix` + "/" + a verb. With `extender.ignorable` a question without an answer counts as not
    asked; else as a no.
    """

    name = NAME

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._settings = read_settings(arguments)
        self._calls: Calls | None = None

    def on_session_open(self, session: Session) -> None:
        """Tell the extender all there is; when it does not hear it and is not ignorable, it is not asked any more."""
        settings, verbs = self._settings, self._settings.verbs
        calls = self._calls = Calls(session, settings)
        bodies = Bodies(session)
        if "onSessionOpen" in verbs:
            try:
                calls.ask("onSessionOpen", bodies.session(), None)
            except ExtenderError:
                if not settings.ignorable:
                    return
        ExtenderRules(session, self, calls, bodies).register()

    def on_session_close(self, session: Session) -> None:
        """Tell the extender that it is over."""
        del session
        if self._calls is not None and "onSessionClose" in self._settings.verbs:
            self._calls.ask_all("onSessionClose", [{}], None)

    @property
    def settings(self) -> ExtenderSettings:
        """What was configured."""
        return self._settings


class ExtenderRules:
    """What the extender says at the extension points."""

    def __init__(self, session: Session, owner: Extender, calls: Calls, bodies: Bodies) -> None:
        self._session, self._settings, self._calls, self._bodies = session, owner.settings, calls, bodies
        # Volcano has it the wrong way round: a job whose extender does not answer is ready unless that is ignorable.
        self._ready_instead = self._settings.ignorable == (JOB_READY in session.config.pumice.fix)

    def register(self) -> None:
        """A rule for each verb that is to be asked."""
        points, verbs = self._session.points, self._settings.verbs
        shared = (self._settings, self._bodies, self._calls)
        points.unforeseeable = True
        if "predicate" in verbs:
            points.predicate.add(NAME, [ExtenderFilter(*shared)])
        if "prioritize" in verbs:
            points.batch_node_order.add(NAME, [ExtenderScorer(*shared)])
        if "preemptable" in verbs:
            points.preemptable.add(NAME, self._victims("preemptable", VICTIMS))
        if "reclaimable" in verbs:
            points.reclaimable.add(NAME, self._victims("reclaimable", RECLAIMED))
        if "jobEnqueueable" in verbs:
            points.job_enqueueable.add(NAME, self._job_enqueueable)
        if "queueOverused" in verbs:
            points.overused.add(NAME, self._overused)
        if "jobReady" in verbs:
            points.job_ready.add(NAME, self._job_ready)
        points.handle(
            self._told_of("allocateFunc") if "allocateFunc" in verbs else None,
            self._told_of("deallocateFunc") if "deallocateFunc" in verbs else None,
        )

    def _victims(self, verb: str, shape: ReplyShape) -> Callable[[Task, Sequence[Task]], tuple[list[Task], Vote]]:
        """Who may go, as far as the answer names candidates."""

        def ask(evictor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
            if not self._settings.is_interested(evictor):
                return [], Vote.ABSTAIN
            body = {
                "evictor": self._bodies.task(evictor),
                "evictees": [self._bodies.task(candidate) for candidate in candidates],
            }
            try:
                reply = self._calls.ask(verb, body, shape)
            except ExtenderError:
                return [], Vote.PERMIT if self._settings.ignorable else Vote.REJECT
            by_uid = {candidate.uid: candidate for candidate in candidates}
            named = [by_uid.get(_uid(victim)) for victim in reply.get("victims", [])]
            return [task for task in named if task is not None], Vote(sign(reply.get("status", 0)))

        return ask

    def _job_enqueueable(self, job: Job) -> Vote:
        try:
            reply = self._calls.ask("jobEnqueueable", {"job": self._bodies.job(job)}, ENQUEUEABLE)
        except ExtenderError:
            return Vote.PERMIT if self._settings.ignorable else Vote.REJECT
        return Vote(sign(reply.get("status", 0)))

    def _overused(self, queue: Queue) -> bool:
        try:
            reply = self._calls.ask("queueOverused", {"queue": self._bodies.queue(queue)}, OVERUSED)
        except ExtenderError:
            return not self._settings.ignorable
        return bool(reply.get("overused", False))

    def _job_ready(self, job: Job) -> bool:
        try:
            reply = self._calls.ask("jobReady", {"job": self._bodies.job(job)}, READY)
        except ExtenderError:
            return self._ready_instead
        return bool(reply.get("status", False))

    def _told_of(self, verb: str) -> Handler:
        """Of a placement, or of its end; its objection is told under its name."""

        def tell(task: Task, node: int) -> str | None:
            del node
            if not self._settings.is_interested(task):
                return None
            try:
                reply = self._calls.ask(verb, {"task": self._bodies.task(task)}, EVENT)
            except ExtenderError as error:
                return None if self._settings.ignorable else f"{NAME}: {error}"
            return f"{NAME}: {reply['errorMessage']}" if reply.get("errorMessage") else None

        return tell


def _uid(victim: object) -> str:
    """Of a victim as the answer has it, whatever the case of its field names."""
    if not isinstance(victim, dict):
        return ""
    fields = cast("dict[str, Any]", victim)
    return next((str(value) for name, value in fields.items() if name.lower() == "uid"), "")
