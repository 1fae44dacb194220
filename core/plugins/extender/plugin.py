# SPDX-License-Identifier: Apache-2.0
"""The plugin extender: a rule for each verb that the configuration names. Source: Volcano
`plugins/extender/extender.go`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from pumice.config.arguments import DURATION, SWITCH, TEXT, Argument, ArgumentKind, PluginArguments
from pumice.core.objects.metadata import Object, is_list, is_mapping, mapping, section
from pumice.core.outside import NOT_ASKED, NOT_RECORDED, SUPPOSED, question
from pumice.core.plugins.extender.bodies import Bodies
from pumice.core.plugins.plugin import BuiltInPlugin
from pumice.core.session.points.nodes import Reads, Volatility
from pumice.core.session.points.rules import ColumnRule, numbers, of_candidates
from pumice.core.session.points.votes import Vote, sign
from pumice.core.session.reasons import Code, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import numpy.typing as npt

    from pumice.config.schema import PluginOption
    from pumice.core.messages.questions import OutsideAnswer
    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.session.points.all_points import Handler
    from pumice.core.session.points.nodes import FloatArray, Rows
    from pumice.core.session.points.rules import Check, Score
    from pumice.core.session.reasons import IntArray
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

# --- Arguments

VERBS: Final = (
    "onSessionOpen",
    "onSessionClose",
    "predicate",
    "prioritize",
    "preemptable",
    "reclaimable",
    "queueOverused",
    "jobEnqueueable",
    "jobReady",
    "allocateFunc",
    "deallocateFunc",
)
URL_PREFIX: Final = Argument("extender.urlPrefix", TEXT, "", "Where the process is: `http://…` or `https://…`.")
TIMEOUT: Final = Argument("extender.httpTimeout", DURATION, 1.0, "How long an answer may take.", "1s")
IGNORABLE: Final = Argument(
    "extender.ignorable", SWITCH, False, "Whether a question without an answer counts as not asked; else as a no."
)
VERB_ARGUMENTS: Final = {
    verb: Argument(f"extender.{verb}Verb", TEXT, "", f"What is appended to the prefix for the question {verb}.")
    for verb in VERBS
}


def _listed(value: object) -> frozenset[str]:
    if not is_list(value):
        raise ValueError(value)
    return frozenset(map(str, value))


MANAGED: Final = Argument(
    "extender.managedResources",
    ArgumentKind("a list of texts", _listed),
    frozenset(),
    "A pod must ask for one of these resources.",
    "it is asked about every pod",
)
VERB_OF: Final = {
    "JobReady": "jobReady",
    "Preemptable": "preemptable",
    "Reclaimable": "reclaimable",
    "Predicate": "predicate",
    "NodeOrder": "prioritize",
    "JobEnqueued": "jobEnqueueable",
    "Overused": "queueOverused",
}
"""The verb for each extension point that has a flag."""


@dataclass(frozen=True, slots=True)
class ExtenderSettings:
    """The settings. `verbs`: the path of each question after `url_prefix`; an absent verb is not asked. `managed`: the
    extender is asked only about pods that request one of these resources; empty for all pods.
    """

    url_prefix: str
    timeout_s: float
    verbs: Mapping[str, str]
    ignorable: bool
    managed: frozenset[str]

    def url(self, verb: str) -> str:
        """Return the address of a verb."""
        # Volcano trims the slashes of the prefix alone (send), so a verb may begin with one.
        return f"{self.url_prefix.rstrip('/')}/{self.verbs[verb]}"

    def is_interested(self, task: Task) -> bool:
        """Return whether the extender is asked about the pod (`IsInterested`)."""
        if not self.managed:
            return True
        spec = task.template.spec
        containers: list[Object] = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        resources = [section(each, "resources") for each in containers]
        named = [resource for each in resources for part in ("requests", "limits") for resource in section(each, part)]
        return not self.managed.isdisjoint(named)


def read_settings(values: Object) -> ExtenderSettings:
    """Return the settings; a value of a wrong type counts as absent."""
    named = {verb: argument.of(values) for verb, argument in VERB_ARGUMENTS.items()}
    return ExtenderSettings(
        url_prefix=URL_PREFIX.of(values),
        timeout_s=TIMEOUT.of(values),
        verbs={verb: path for verb, path in named.items() if path},
        ignorable=IGNORABLE.of(values),
        managed=MANAGED.of(values),
    )


# --- Replies
# Go takes field names in any case, leaves out what it does not know and what is null, and reads no further than the
# end of the first value.

OK: Final = 200
BODY_LIMIT: Final = 10 << 20


class ExtenderError(Exception):
    """An exchange without a usable answer, in Go's words."""


class ReplyShape(NamedTuple):
    """A struct of the answer: its name, and the fields with their Go types. `agreed`: the answer without objections and
    wishes.
    """

    name: str
    fields: Mapping[str, str]
    agreed: Mapping[str, Any] = MappingProxyType({})


PREDICATE: Final = ReplyShape("PredicateResponse", {"status": "string", "code": "int"})
PRIORITIZE: Final = ReplyShape(
    "PrioritizeResponse", {"nodeScore": "map[string]float64", "errorMessage": "string"}, {"nodeScore": {}}
)
VICTIMS: Final = ReplyShape("PreemptableResponse", {"status": "int", "victims": "[]*api.TaskInfo"})
RECLAIMED: Final = ReplyShape("ReclaimableResponse", VICTIMS.fields)
ENQUEUEABLE: Final = ReplyShape("JobEnqueueableResponse", {"status": "int"})
OVERUSED: Final = ReplyShape("QueueOverusedResponse", {"overused": "bool"})
READY: Final = ReplyShape("JobReadyResponse", {"status": "bool"}, {"status": True})
EVENT: Final = ReplyShape("EventHandlerResponse", {"errorMessage": "string"})

_LITERAL: Final = {"f": "false", "n": "null", "t": "true"}
_NAMES: Final[dict[type, str]] = {str: "string", bool: "bool", int: "number", float: "number", list: "array"}
_TAKES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "int": (int,),
    "bool": (bool,),
    "map[string]float64": (dict,),
    "[]*api.TaskInfo": (list,),
}


def read_answer(answer: OutsideAnswer, verb: str, url: str, shape: ReplyShape | None) -> Object:
    """Return the fields of the answer, by their names in `shape` (None: the answer is not read). Raises
    ExtenderError.
    """
    if answer == SUPPOSED:
        return {} if shape is None else dict(shape.agreed)
    if answer.error:
        raise ExtenderError(answer.error)
    if answer.code != OK:
        raise ExtenderError(f"failed {verb} with extender at URL {url}, code {answer.code}")
    if shape is None:
        return {}
    if len(answer.body) > BODY_LIMIT:
        raise ExtenderError("http: request body too large")
    # What stands behind the first value is not read: Go's decoder stops there.
    value = _first_value(answer.body.decode("utf-8", "replace").lstrip(" \t\r\n"))
    if value is None:
        return {}
    if not is_mapping(value):
        raise ExtenderError(f"json: cannot unmarshal {_name(value)} into Go value of type extender.{shape.name}")
    found: Object = {}
    for said, given in value.items():
        field = _field(said, shape)
        if field is not None and given is not None:
            found[field] = _checked(given, shape, field)
    return found


def _field(said: str, shape: ReplyShape) -> str | None:
    if said in shape.fields:
        return said
    # Any case, once the exact name does not exist, as encoding/json matches fields.
    return next((field for field in shape.fields if field.lower() == said.lower()), None)


def _first_value(text: str) -> Any:
    if not text:
        raise ExtenderError("EOF")
    try:
        return json.JSONDecoder(parse_constant=_no_constant).raw_decode(text)[0]
    except (ValueError, RecursionError):
        raise ExtenderError(_words(text)) from None


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _words(text: str) -> str:
    """Return Go's error for a text that is not JSON, as far as its first character tells."""
    first = text[0]
    if first in _LITERAL or first in '{["-0123456789':
        return "unexpected EOF" if first not in _LITERAL or _LITERAL[first].startswith(text) else _inside(text)
    return f"invalid character {_quoted(first)} looking for beginning of value"


def _inside(text: str) -> str:
    word = _LITERAL[text[0]]
    place = next(i for i, (said, meant) in enumerate(zip(text, word, strict=False)) if said != meant)
    return f"invalid character {_quoted(text[place])} in literal {word} (expecting {_quoted(word[place])})"


def _quoted(character: str) -> str:
    return f"'{character}'" if character not in "'\\" else f"'\\{character}'"


def _name(value: object) -> str:
    return _NAMES.get(type(value), "object")


def _checked(value: object, shape: ReplyShape, field: str) -> Any:
    kind = shape.fields[field]
    misplaced = isinstance(value, bool) and kind != "bool"
    if misplaced or not isinstance(value, _TAKES[kind]):
        raise _mismatch(value, shape, field, kind)
    # Go reads into 64 bits; a larger number is an error there, not a large number.
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise _mismatch(value, shape, field, kind)
    if is_mapping(value):
        return {name: _score(each, shape, field) for name, each in value.items() if each is not None}
    return value


def _score(value: object, shape: ReplyShape, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _mismatch(value, shape, field, "float64")
    try:
        score = float(value)
    except OverflowError:
        score = float("inf")
    # Infinity and NaN, which no JSON number can be in Go.
    if score - score != 0.0:
        raise ExtenderError(f"json: cannot unmarshal number into Go struct field {shape.name}.{field} of type float64")
    return score


def _mismatch(value: object, shape: ReplyShape, field: str, kind: str) -> ExtenderError:
    said = _name(value)
    if said == "number" and kind == "int":
        said = f"number {value}"
    return ExtenderError(f"json: cannot unmarshal {said} into Go struct field {shape.name}.{field} of type {kind}")


# --- Calls

NAME: Final = "extender"
UNASKED: Final = (NOT_ASKED, NOT_RECORDED, SUPPOSED)
"""Answers where no extender is asked."""
Reply = Object | ExtenderError


class Calls:
    """The calls of one session."""

    def __init__(self, session: Session, settings: ExtenderSettings) -> None:
        self._session, self._settings = session, settings
        self._asked = self._failed = 0

    def ask_all(self, verb: str, bodies: Sequence[Object], shape: ReplyShape | None) -> list[Reply]:
        """Return the answer to each question, or why it is missing."""
        settings = self._settings
        url, path = settings.url(verb), settings.verbs[verb]
        answers = self._session.ask([question(url, body, settings.timeout_s) for body in bodies])
        replies: list[Reply] = []
        self._asked += len(answers)
        for answer in answers:
            try:
                replies.append(read_answer(answer, path, url, shape))
            except ExtenderError as error:
                replies.append(error)
                # A supposed answer (of a replay or a prediction) does not count as a failure of the process.
                if answer not in UNASKED:
                    self._failed += 1
                    self._tell(error)
        return replies

    def _tell(self, error: ExtenderError) -> None:
        """Note that the extender keeps the cycle waiting: when it is ignorable no decision names it."""
        settings = self._settings
        went_on = "the cycle went on without" if settings.ignorable else "what it was asked about is refused"
        waits = f", after up to {settings.timeout_s:g} s each" if settings.timeout_s else ""
        self._session.fit.troubles[NAME] = (
            f"extender {settings.url_prefix}: {self._failed} of {self._asked} questions of the cycle got no answer "
            f"that can be used{waits}; the last: {error}; {went_on}"
        )

    def ask(self, verb: str, body: Object, shape: ReplyShape | None) -> Object:
        """Return the answer. Raises ExtenderError."""
        (reply,) = self.ask_all(verb, [body], shape)
        if isinstance(reply, ExtenderError):
            raise reply
        return reply


# --- Filter and scorer

_KNOWN: Final = {code.value for code in Code}


def _reads(settings: ExtenderSettings) -> Reads:
    """Return a new value every time: the inputs of an extender's answer are unknown, so each pod is asked about
    anew.
    """

    def kind(task: Task) -> Hashable:
        # An object equals itself alone, so such a task shares its answers with no other.
        return object() if settings.is_interested(task) else None

    return Reads(kind=kind)


class ExtenderFilter:
    """The verb `predicate`."""

    name = NAME

    def __init__(self, settings: ExtenderSettings, bodies: Bodies, calls: Calls) -> None:
        self.reads = _reads(settings)
        self.settings, self.bodies, self.calls = settings, bodies, calls

    def prepare(self, session: Session, task: Task) -> Check | None:
        """Return the filter's answers for one task; None when the extender is not interested."""
        if not self.settings.is_interested(task):
            return None
        return ColumnRule(ExtenderCodes(self, session, task), Volatility.MOMENT)


class ExtenderCodes:
    """The filter's answers for one task."""

    def __init__(self, owner: ExtenderFilter, session: Session, task: Task) -> None:
        self._owner, self._session, self._task = owner, session, task

    def __call__(self, rows: Rows, /) -> IntArray:
        """Return reason numbers, 0 where the extender agrees: int32 [len(rows)]."""
        owner, task = self._owner, self._owner.bodies.task(self._task)
        asked = [{"task": task, "node": owner.bodies.node(row)} for row in numbers(self._session.nodes.count, rows)]
        replies = owner.calls.ask_all("predicate", asked, PREDICATE)
        return np.array(list(map(self._code, replies)), dtype=np.int32)

    def _code(self, reply: Reply) -> int:
        if isinstance(reply, ExtenderError):
            return 0 if self._owner.settings.ignorable else self._refusal(Code.ERROR, str(reply))
        text, code = reply.get("status", ""), reply.get("code", 0)
        if not text:
            return 0
        # A message without a code is an error, not a success: Volcano keeps to what old extenders meant.
        return self._refusal(Code(code) if code in _KNOWN and code else Code.ERROR, text)

    def _refusal(self, code: Code, text: str) -> int:
        return self._session.reasons.intern(Reason(NAME, code, text))


class ExtenderScorer:
    """The verb `prioritize`."""

    name = NAME

    def __init__(self, settings: ExtenderSettings, bodies: Bodies, calls: Calls) -> None:
        self.reads = _reads(settings)
        self.settings, self.bodies, self.calls = settings, bodies, calls

    def prepare(self, session: Session, task: Task) -> Score | None:
        """Return the scorer's answers for one task; None when the extender is not interested."""
        if not self.settings.is_interested(task):
            return None
        return of_candidates(session.nodes.count, ExtenderScores(self, session, task), Volatility.MOMENT)


class ExtenderScores:
    """The scorer's answers for one task. The extender gets the candidates only."""

    def __init__(self, owner: ExtenderScorer, session: Session, task: Task) -> None:
        self._owner, self._session, self._task = owner, session, task
        self._told: tuple[tuple[int, bytes], FloatArray] | None = None

    def __call__(self, rows: npt.NDArray[np.intp]) -> FloatArray:
        """Return the extender's scores; -inf everywhere without any: then no node is the best. A report gets the
        answers that the choice got.
        """
        state = len(self._session.nodes.touched), rows.tobytes()
        if self._told is None or self._told[0] != state:
            self._told = state, self._ask(rows.tolist())
        return self._told[1].copy()

    def _ask(self, rows: list[int]) -> FloatArray:
        owner = self._owner
        body = {"task": owner.bodies.task(self._task), "nodes": [owner.bodies.node(row) for row in rows]}
        try:
            reply = owner.calls.ask("prioritize", body, PRIORITIZE)
        except ExtenderError:
            # Ignorable: Volcano returns no scores and no error, so that the node order goes on with the other plugins.
            return np.full(len(rows), 0.0 if owner.settings.ignorable else -np.inf)
        # An answer without scores and without an error is an error, too (extender.go).
        if reply.get("errorMessage") or "nodeScore" not in reply:
            return np.full(len(rows), -np.inf)
        scores: dict[str, float] = reply["nodeScore"]
        return np.array([scores.get(self._session.nodes.names[row], 0.0) for row in rows])


JOB_READY: Final = "extender-job-ready"


class Extender(BuiltInPlugin):
    """Asks `extender.urlPrefix` + "/" + a verb. With `extender.ignorable` a question without an answer counts as not
    asked; otherwise as a refusal.
    """

    name = NAME
    says = "asks a process of one's own over HTTP, for each verb that is named"
    listens = tuple(VERB_OF)
    asks_outside = True
    arguments = (URL_PREFIX, TIMEOUT, *VERB_ARGUMENTS.values(), IGNORABLE, MANAGED)

    @classmethod
    def is_asked_at(cls, point: str, option: PluginOption) -> bool:
        """Return whether the verb of the point is named."""
        return point in VERB_OF and bool(VERB_ARGUMENTS[VERB_OF[point]].of(option.arguments))

    def __init__(self, arguments: PluginArguments) -> None:
        self._settings = read_settings(arguments)
        self._calls: Calls | None = None

    def on_session_open(self, session: Session) -> None:
        """Send the extender the whole session; one that does not answer and is not ignorable is not asked any more."""
        settings, verbs = self._settings, self._settings.verbs
        calls = self._calls = Calls(session, settings)
        bodies = Bodies(session)
        if "onSessionOpen" in verbs:
            try:
                calls.ask("onSessionOpen", bodies.session(), None)
            except ExtenderError:
                if not settings.ignorable:
                    # Volcano registers nothing then: the session goes on as if the plugin were not configured.
                    return
        ExtenderRules(session, self, calls, bodies).register()

    def on_session_close(self, session: Session) -> None:
        """Tell the extender that it is over."""
        if self._calls is not None and "onSessionClose" in self._settings.verbs:
            self._calls.ask_all("onSessionClose", [{}], None)

    @property
    def settings(self) -> ExtenderSettings:
        """Return the settings of the configuration."""
        return self._settings


class ExtenderRules:
    """The extender's rules at the extension points."""

    def __init__(self, session: Session, owner: Extender, calls: Calls, bodies: Bodies) -> None:
        self._session, self._settings, self._calls, self._bodies = session, owner.settings, calls, bodies
        # Volcano has it the wrong way round: a job whose extender does not answer is ready unless that is ignorable.
        self._ready_instead = self._settings.ignorable == (JOB_READY in session.config.pumice.fix)

    def register(self) -> None:
        """Register a rule for each configured verb."""
        points, verbs = self._session.points, self._settings.verbs
        shared = (self._settings, self._bodies, self._calls)
        points.unforeseeable = points.shows_devices = True
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
        """Return the rule for the tasks that may go, as far as the answer names candidates."""

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
                # An empty list ends the tier either way: this vote decides nothing.
                return [], Vote.PERMIT if self._settings.ignorable else Vote.REJECT
            by_uid = {candidate.uid: candidate for candidate in candidates}
            # Only candidates can be evicted here, so a named task that was none is dropped.
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
            # Without an answer the queue is overused, unless the extender is ignorable (extender.go).
            return not self._settings.ignorable
        return bool(reply.get("overused", False))

    def _job_ready(self, job: Job) -> bool:
        try:
            reply = self._calls.ask("jobReady", {"job": self._bodies.job(job)}, READY)
        except ExtenderError:
            return self._ready_instead
        return bool(reply.get("status", False))

    def _told_of(self, verb: str) -> Handler:
        """Send a placement, or its end; the extender's objection appears under its name."""

        def tell(task: Task, _node: int) -> str | None:
            if not self._settings.is_interested(task):
                return None
            try:
                reply = self._calls.ask(verb, {"task": self._bodies.task(task)}, EVENT)
            except ExtenderError as error:
                return None if self._settings.ignorable else f"{NAME}: {error}"
            return f"{NAME}: {reply['errorMessage']}" if reply.get("errorMessage") else None

        return tell


def _uid(victim: object) -> str:
    """Return the uid of a victim in the answer, whatever the case of its field names."""
    return next((str(value) for name, value in mapping(victim).items() if name.lower() == "uid"), "")
