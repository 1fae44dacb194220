# SPDX-License-Identifier: Apache-2.0
"""Rules of a fault profile: one class a fault, which says whom it strikes, when, and what it does.

A fault makes a client meet what Kubernetes allows and seldom does: no rule breaks what Kubernetes promises.
docs/reference/faults.md names for each fault the document that allows it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta, Struct

# A profile may come from anyone, and a day of waiting would look like a hang.
LONGEST_S: Final = 3600.0
MOST: Final = 1_000_000

Share = Annotated[float, Meta(ge=0, le=1, description="a share from 0 to 1")]
Seconds = Annotated[float, Meta(ge=0, le=LONGEST_S, description=f"seconds from 0 to {LONGEST_S:g}")]
Count = Annotated[int, Meta(ge=0, le=MOST, description=f"an integer from 0 to {MOST}")]
Number = Annotated[int, Meta(ge=1, le=MOST, description=f"an integer from 1 to {MOST}")]
Pattern = Annotated[str, Meta(min_length=1, max_length=512, description="a name, or a pattern with * ? [ ]")]
KindName = Annotated[
    str, Meta(pattern=r"^[A-Z][A-Za-z0-9]*(\.[a-z0-9.-]+)?$", description="a kind such as Pod, or Job.batch")
]
RuleName = Annotated[
    str, Meta(pattern=r"^[\w][\w.-]{0,62}$", description="a name of at most 63 letters, digits, - _ and .")
]
Verb = Literal["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
VerbName = Annotated[Verb, Meta(description="get, list, watch, create, update, patch, delete or deletecollection")]
WRITES: Final[tuple[Verb, ...]] = ("create", "update", "patch", "delete", "deletecollection")
ANSWERED: Final[tuple[Verb, ...]] = ("get", "list", *WRITES)
EVERY: Final[tuple[Verb, ...]] = ("get", "list", "watch", *WRITES)


# Unknown keys are refused: a rule with a typo would strike nothing, unnoticed.
class FaultRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="fault"):
    """A rule. `rule`: its name in the journal. `probability` of a strike where all else fits, drawn from the seed.
    `from_s` to `until_s`: the seconds, since the profile began, in which it strikes.
    """

    rule: RuleName = ""
    probability: Share = 1.0
    from_s: Seconds = 0.0
    until_s: Seconds | None = None

    @property
    def fault(self) -> str:
        """Return the name of the fault."""
        return str(self.__struct_config__.tag)


class RequestRule(FaultRule, frozen=True, kw_only=True):
    """A rule about requests. `client`: a pattern for the User-Agent, or for its part before the slash; `user`: for
    the user's name, "" where users are not distinguished. `verb` and `kind`: none means all that the fault fits.
    `subresource`: "" for the object itself, "*" for any. `labels`: a selector that the object matches; lists and
    watches have no labels. `nth`: which of the same requests (of one client, verb, kind and name). Of the requests of
    one client that fit, `skip` are spared first, and at most `times` are struck.
    """

    client: Pattern = "*"
    user: Pattern = "*"
    verb: tuple[VerbName, ...] = ()
    kind: tuple[KindName, ...] = ()
    subresource: str = ""
    namespace: Pattern = "*"
    name: Pattern = "*"
    labels: str = ""
    nth: tuple[Number, ...] = ()
    skip: Count = 0
    times: Number | None = None

    # Of a class, not a field: what Kubernetes allows does not change with the profile.
    fits: ClassVar[tuple[Verb, ...]] = ANSWERED
    """Verbs that the fault can strike."""

    @property
    def verbs(self) -> tuple[Verb, ...]:
        """Return the verbs that it strikes."""
        return self.verb or self.fits


class Refuse(RequestRule, frozen=True, kw_only=True, tag="refuse"):
    """The request is refused, and not carried out. `retry_after_s`: the header Retry-After; without it, 1 with 429 and
    none with others. 409 strikes writes only.
    """

    code: Annotated[Literal[409, 429, 500, 503, 504], Meta(description="409, 429, 500, 503 or 504")] = 503
    retry_after_s: Number | None = None

    fits: ClassVar[tuple[Verb, ...]] = EVERY

    @property
    def verbs(self) -> tuple[Verb, ...]:
        """Return the verbs that it strikes: of those not named, a conflict strikes what changes an object."""
        # A create meets 409 only as AlreadyExists, for a name that is taken: versions do not conflict there.
        return self.verb or (("update", "patch", "delete") if self.code == 409 else EVERY)


class ArriveLate(RequestRule, frozen=True, kw_only=True, tag="arrive-late"):
    """The request is carried out `delay_s` later."""

    delay_s: Seconds = 1.0

    fits: ClassVar[tuple[Verb, ...]] = EVERY


class AnswerLate(RequestRule, frozen=True, kw_only=True, tag="answer-late"):
    """The request is carried out, and answered `delay_s` later."""

    delay_s: Seconds = 1.0


class LoseAnswer(RequestRule, frozen=True, kw_only=True, tag="lose-answer"):
    """The request is carried out, and its answer is lost: the connection ends (`cut`), or 500 or 504 comes instead."""

    answer: Annotated[Literal["cut", 500, 504], Meta(description="cut, 500 or 504")] = "cut"


class Repeat(RequestRule, frozen=True, kw_only=True, tag="repeat"):
    """The request is carried out twice, as by a proxy that got no answer and asked again; the second answer comes.

    A create without a name is spared: it would make two objects.
    """

    fits: ClassVar[tuple[Verb, ...]] = WRITES


class CutAnswer(RequestRule, frozen=True, kw_only=True, tag="cut-answer"):
    """The request is carried out, and the connection ends after so many bytes of the answer's body."""

    bytes: Count = 1


class CutWatch(RequestRule, frozen=True, kw_only=True, tag="cut-watch"):
    """The connection of a watch ends after so many events, `within` the next one or before it."""

    events: Count = 1
    within: bool = False

    fits: ClassVar[tuple[Verb, ...]] = ("watch",)


class DelayWatch(RequestRule, frozen=True, kw_only=True, tag="delay-watch"):
    """The events of a watch come `delay_s` later, in their order. `behind`: they come sooner if the client's watch of
    this kind has sent a newer event meanwhile.
    """

    delay_s: Seconds = 1.0
    behind: KindName | None = None

    fits: ClassVar[tuple[Verb, ...]] = ("watch",)


class Expire(RequestRule, frozen=True, kw_only=True, tag="expire"):
    """A watch ends with 410 after so many events; a list at an exact revision, or that goes on, is refused with it."""

    events: Count = 0

    fits: ClassVar[tuple[Verb, ...]] = ("watch", "list")


class Stale(RequestRule, frozen=True, kw_only=True, tag="stale"):
    """A list at resourceVersion=0 shows the state of so many changes of the kind ago."""

    changes: Number = 1

    fits: ClassVar[tuple[Verb, ...]] = ("list",)


class RestartServer(RequestRule, frozen=True, kw_only=True, tag="restart"):
    """The server goes down with every connection, and is back after `down_s` with nothing in its watch cache.
    `carried_out`: after the request was carried out, and not before.
    """

    down_s: Seconds = 1.0
    carried_out: bool = False

    fits: ClassVar[tuple[Verb, ...]] = EVERY


class LateWebhook(RequestRule, frozen=True, kw_only=True, tag="late-webhook"):
    """An admission webhook, `webhook` by its name, gets its question `delay_s` later; the time counts for its timeout,
    after which its failurePolicy decides. A patch is an update to a webhook. `client` is empty: who sent the request is
    not known by its User-Agent there.
    """

    delay_s: Seconds = 1.0
    webhook: Pattern = "*"

    fits: ClassVar[tuple[Verb, ...]] = ("create", "update", "delete")


class NodeRule(FaultRule, frozen=True, kw_only=True):
    """A rule about nodes: from `from_s` to `until_s` it strikes those whose `name` and `labels` fit. `probability`: the
    share of them.
    """

    name: Pattern = "*"
    labels: str = ""


class DeadKubelet(NodeRule, frozen=True, kw_only=True, tag="dead-kubelet"):
    """The kubelet of a node says nothing: pods on it run on, and stay as the API shows them. After `grace_s` the node
    is Unknown, and tainted. At the end the kubelet reports what has become of its pods.
    """

    # For long the default of kube-controller-manager's --node-monitor-grace-period.
    grace_s: Seconds = 40.0


class SlowKubelet(NodeRule, frozen=True, kw_only=True, tag="slow-kubelet"):
    """Reports of a node's kubelet come `delay_s` later."""

    delay_s: Seconds = 5.0


class SkewedClock(NodeRule, frozen=True, kw_only=True, tag="skewed-clock"):
    """The clock of a node is `ahead_s` ahead of the server's, or behind: so are all times in its reports."""

    ahead_s: Annotated[float, Meta(ge=-LONGEST_S, le=LONGEST_S, description="seconds from -3600 to 3600")] = 30.0


class LostNode(NodeRule, frozen=True, kw_only=True, tag="lost-node"):
    """A node is removed once, as a cloud does whose machine is gone. Its pods go when they are found."""


RequestFault = (
    Refuse
    | ArriveLate
    | AnswerLate
    | LoseAnswer
    | Repeat
    | CutAnswer
    | CutWatch
    | DelayWatch
    | Expire
    | Stale
    | RestartServer
    | LateWebhook
)  # fmt: skip
NodeFault = DeadKubelet | SlowKubelet | SkewedClock | LostNode
AnyRule = RequestFault | NodeFault
# Written out: the names are the language of profiles, and outlive the classes.
RULES: Final[dict[str, type[AnyRule]]] = {
    "refuse": Refuse,
    "arrive-late": ArriveLate,
    "answer-late": AnswerLate,
    "lose-answer": LoseAnswer,
    "repeat": Repeat,
    "cut-answer": CutAnswer,
    "cut-watch": CutWatch,
    "delay-watch": DelayWatch,
    "expire": Expire,
    "stale": Stale,
    "restart": RestartServer,
    "late-webhook": LateWebhook,
    "dead-kubelet": DeadKubelet,
    "slow-kubelet": SlowKubelet,
    "skewed-clock": SkewedClock,
    "lost-node": LostNode,
}
"""By the name of the fault."""


class FaultProfile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rules in their order: of those that would strike a request the first does. `seed`: of all that is drawn; None:
    that of the run.
    """

    seed: Annotated[int, Meta(ge=0, le=2**63 - 1, description="an integer of at least 0")] | None = None
    rules: tuple[AnyRule, ...] = ()
