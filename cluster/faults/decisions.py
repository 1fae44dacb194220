# SPDX-License-Identifier: Apache-2.0
"""The choice of the fault that strikes a request, or a node.

It depends on the seed, the rule and the request alone: which client asks what about which object, for the how manieth
time. What other clients do meanwhile, and when, changes nothing. So a client that repeats its requests meets the same
faults again. Two limits count by client: `skip` and `times` of a rule, in the order of the client's own requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from msgspec import Struct, json

from pumice.cluster.api.selectors import matches, parse_selector
from pumice.cluster.faults.profiles import NOWHERE, named_apart
from pumice.cluster.faults.rules import (
    AnyRule,
    Expire,
    FaultProfile,
    FaultRule,
    LateWebhook,
    NodeFault,
    NodeRule,
    Repeat,
    RequestFault,
    Stale,
)
from pumice.core.messages.events import FaultsBegan, FaultStruck

# --- Dice that fall the same every time


def chance(seed: int, what: str) -> float:
    """Return a number in [0, 1) that depends on the arguments alone."""
    hashed = _begun(seed).copy()
    hashed.update(what.encode())
    # 53 bits are what a float holds: with all 56 the largest ones would be rounded to 1.
    return (int.from_bytes(hashed.digest(), "big") >> 3) / 2**53


@lru_cache(maxsize=16)
def _begun(seed: int) -> blake2b:
    """Return the hash of the common beginning of all throws of a seed: a copy of it costs less than another one."""
    return blake2b(f"{seed}\0".encode(), digest_size=7)


# --- Requests

NOBODY: Final = ""


class ClientRequest(Struct, frozen=True, gc=False):
    """A request of a client. `agent`: the whole User-Agent, of which `client` is the name. `kind` is a key of the table
    of kinds, `kinds` all names of it, `resource` its plural with its group. `name`: of a create without one its
    generateName (it is `generated` then); "" for a collection. `labels`: of the object, None where there is no single
    one. `at`: "any" for a list at resourceVersion=0, "exact" for one at a revision, or that goes on at one. `webhook`:
    the one that is asked about the request.
    """

    client: str
    verb: str
    kind: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    agent: str = ""
    user: str = NOBODY
    kinds: tuple[str, ...] = ()
    resource: str = ""
    labels: Mapping[str, str] | None = None
    generated: bool = False
    at: str = ""
    webhook: str = ""

    @property
    def same(self) -> tuple[str, ...]:
        """Return what the same request has in common with this one."""
        # The moment is not among it, nor what others ask: a rerun on a busier machine meets the same faults.
        return self.client, self.verb, self.kind, self.subresource, self.namespace, self.name, self.webhook


class Strike(Struct, frozen=True, gc=False):
    """A fault that strikes: by its rule, the `nth` of the same requests."""

    rule: RequestFault
    nth: int

    def told(self, asked: ClientRequest) -> FaultStruck:
        """Return the strike as a record of the journal."""
        return FaultStruck(
            rule=self.rule.rule,
            fault=self.rule.fault,
            kind=asked.kind,
            namespace=asked.namespace,
            name=asked.name,
            client=asked.webhook or asked.client,
            verb=asked.verb,
            subresource=asked.subresource,
            user=asked.user,
            nth=self.nth,
        )


class FaultsInForce:
    """A profile in force, since `began` (seconds since the epoch), and what it counts. `struck`: faults by rule;
    `ever`: by their names, with those of earlier profiles. `spared`: clients that meet none. `seed`: of a
    profile that has none.
    """

    def __init__(self, seed: int = 0) -> None:
        self.profile = FaultProfile()
        self.began = 0.0
        self.struck: Counter[str] = Counter()
        self.ever: Counter[str] = Counter()
        self.spared: frozenset[str] = frozenset()
        self._untold: list[FaultStruck] = []
        self._run_seed = seed
        self._nth: Counter[tuple[str, ...]] = Counter()
        self._spared: Counter[tuple[str, str]] = Counter()
        self._times: Counter[tuple[str, str]] = Counter()

    @property
    def seed(self) -> int:
        """Return the seed of all that is drawn."""
        return self._run_seed if self.profile.seed is None else self.profile.seed

    @property
    def is_on(self) -> bool:
        """Return whether there are rules."""
        return bool(self.profile.rules)

    def begin(self, profile: FaultProfile, now: float) -> None:
        """Put a profile in force: all counts begin anew."""
        self.profile, self.began = profile, now
        for counts in (self.struck, self._nth, self._spared, self._times):
            # A profile that is put in force once more strikes as it did the first time.
            counts.clear()

    def add(self, rule: AnyRule, now: float) -> str:
        """Add a rule, and return its name; those in force go on with their counts. Raises ConflictError for a name that
        another has.
        """
        # The first rule starts the clock of the profile; later ones must not move it.
        if not self.is_on:
            self.began = now
        rules = named_apart(NOWHERE, [*self.profile.rules, rule])
        self.profile = FaultProfile(seed=self.profile.seed, rules=rules)
        return rules[-1].rule

    def told(self) -> FaultsBegan:
        """Return the profile in force as a record of the journal."""
        return FaultsBegan(self.seed, json.encode(self.profile.rules))

    def strike(self, asked: ClientRequest, now: float) -> Strike | None:
        """Count a request, and return the fault that strikes it: that of the first rule that does."""
        if asked.client in self.spared:
            return None
        about = [rule for rule in self.profile.rules if not isinstance(rule, NodeRule) and selects(rule, asked)]
        if not about:
            return None
        # Only what a rule is about is counted: the names of all others would fill memory.
        self._nth[asked.same] += 1
        nth = self._nth[asked.same]
        for rule in about:
            # In this order: outside of a rule's time its limits do not count.
            if self._in_time(rule, now) and self._falls(rule, asked, nth):
                self.struck[rule.rule] += 1
                self.ever[rule.fault] += 1
                return Strike(rule, nth)
        return None

    # --- nodes

    @property
    def strikes_nodes(self) -> bool:
        """Return whether there is a rule about nodes."""
        return any(isinstance(rule, NodeRule) for rule in self.profile.rules)

    def of_node(self, name: str, labels: Mapping[str, str], now: float) -> list[NodeFault]:
        """Return the rules that strike a node now."""
        return [
            rule
            for rule in self.profile.rules
            if isinstance(rule, NodeRule) and self._in_time(rule, now) and self._hits(rule, name, labels)
        ]

    def next_change(self, now: float) -> float | None:
        """Return when a rule about nodes begins or ends next; None for never."""
        edges = [
            self.began + edge
            for rule in self.profile.rules
            if isinstance(rule, NodeRule)
            for edge in (rule.from_s, rule.until_s)
            if edge is not None
        ]
        return min((edge for edge in edges if edge > now), default=None)

    def note(self, rule: NodeFault, node: str) -> None:
        """Note that a rule has begun to strike a node."""
        self.struck[rule.rule] += 1
        self.ever[rule.fault] += 1
        self._untold.append(FaultStruck(rule.rule, rule.fault, "Node", "", node))

    def take_untold(self) -> list[FaultStruck]:
        """Return the strikes of nodes that are not in the journal yet."""
        untold, self._untold = self._untold, []
        return untold

    def _hits(self, rule: NodeFault, name: str, labels: Mapping[str, str]) -> bool:
        if rule.probability < 1 and chance(self.seed, f"{rule.rule}\0{name}") >= rule.probability:
            return False
        return fnmatchcase(name, rule.name) and (not rule.labels or matches(parse_selector(rule.labels), labels))

    def _in_time(self, rule: FaultRule, now: float) -> bool:
        elapsed = now - self.began
        return rule.from_s <= elapsed and (rule.until_s is None or elapsed < rule.until_s)

    def _falls(self, rule: RequestFault, asked: ClientRequest, nth: int) -> bool:
        """Return whether a selected request is struck now."""
        if rule.nth and nth not in rule.nth:
            return False
        # A rule that always strikes throws no dice: a throw takes 2.5 µs.
        thrown = chance(self.seed, "\0".join((rule.rule, *asked.same, str(nth)))) if rule.probability < 1 else 0.0
        # The dice before the limits: `skip` and `times` count strikes, not requests.
        if thrown >= rule.probability:
            return False
        mine = rule.rule, asked.client
        if self._spared[mine] < rule.skip:
            self._spared[mine] += 1
            return False
        if rule.times is not None and self._times[mine] >= rule.times:
            return False
        self._times[mine] += 1
        return True


def _is_allowed(rule: RequestFault, asked: ClientRequest) -> bool:
    """Return whether Kubernetes may do this to the request."""
    if asked.webhook or isinstance(rule, LateWebhook):
        return isinstance(rule, LateWebhook) and bool(asked.webhook) and fnmatchcase(asked.webhook, rule.webhook)
    match rule:
        case Repeat():  # a proxy that repeats a create without a name makes two objects
            return not asked.generated
        # A client that names a revision is promised that state; only "any" may be old.
        case Stale():
            return asked.at == "any"
        case Expire():
            return asked.verb == "watch" or asked.at == "exact"
        case _:
            return True


def selects(rule: RequestFault, asked: ClientRequest) -> bool:
    """Return whether a rule is about a request."""
    if asked.verb not in rule.verbs or rule.subresource not in ("*", asked.subresource):
        return False
    if not _is_allowed(rule, asked):
        return False
    if rule.kind and not any(kind in rule.kind for kind in asked.kinds):
        return False
    if not (fnmatchcase(asked.client, rule.client) or fnmatchcase(asked.agent, rule.client)):
        return False
    named = ((rule.user, asked.user), (rule.namespace, asked.namespace), (rule.name, asked.name))
    if not all(pattern == "*" or fnmatchcase(value, pattern) for pattern, value in named):
        return False
    if not rule.labels:
        return True
    return asked.labels is not None and matches(parse_selector(rule.labels), asked.labels)
