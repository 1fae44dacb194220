"""Choice of a fault: against a plain second implementation, repeated, and independent of other clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from pumice.cluster.faults.decisions import ClientRequest, FaultsInForce, selects
from pumice.cluster.faults.profiles import read_profile_text
from pumice.cluster.faults.rules import (
    EVERY,
    AnyRule,
    Expire,
    FaultProfile,
    LoseAnswer,
    Refuse,
    Repeat,
    RequestFault,
    Stale,
)

CLIENTS = ("kubectl", "vc-scheduler", "kube-scheduler")
NAMES = st.sampled_from(["web-0", "web-1", "db", ""])
PATTERNS = st.sampled_from(["*", "web-*", "db", "web-[12]", "?b"])
LABELS = st.sampled_from(["", "app=web", "app!=web", "!app"])


def asked_by(client: str, kind: str, **rest: Any) -> ClientRequest:
    return ClientRequest(client=client, kind=kind, kinds=(kind, kind.partition(".")[0]), agent=f"{client}/v1", **rest)


OCCASIONS = st.builds(
    asked_by,
    kind=st.sampled_from(["Pod", "Job", "Job.batch"]),
    client=st.sampled_from(CLIENTS),
    verb=st.sampled_from(EVERY),
    namespace=st.sampled_from(["a", "b"]),
    name=NAMES,
    subresource=st.sampled_from(["", "status", "binding"]),
    user=st.sampled_from(["", "jane"]),
    labels=st.sampled_from([None, {}, {"app": "web"}]),
)
RULES_OF = st.builds(
    LoseAnswer,
    client=st.sampled_from(["*", "kube*", "*/v1", "vc-scheduler"]),
    verb=st.sampled_from([(), ("create",), ("update", "patch")]),
    kind=st.sampled_from([(), ("Pod",), ("Job",), ("Job.batch", "Pod")]),
    subresource=st.sampled_from(["", "*", "status"]),
    namespace=st.sampled_from(["*", "a"]),
    name=PATTERNS,
    user=st.sampled_from(["*", "jane"]),
    labels=LABELS,
)
SELECTED: dict[str, Callable[[Mapping[str, str]], bool]] = {  # by selector, whether objects with these labels match
    "app=web": lambda labels: labels.get("app") == "web",
    "app!=web": lambda labels: labels.get("app") != "web",
    "!app": lambda labels: "app" not in labels,
}


@given(RULES_OF, OCCASIONS)
def test_a_rule_selects_by_all_that_it_says(rule: LoseAnswer, asked: ClientRequest) -> None:
    assert selects(rule, asked) == (
        (asked.verb in rule.verb if rule.verb else asked.verb != "watch")
        and (not rule.kind or bool({*asked.kinds} & {*rule.kind}))
        and rule.subresource in ("*", asked.subresource)
        and (fnmatchcase(asked.client, rule.client) or fnmatchcase(asked.agent, rule.client))
        and fnmatchcase(asked.namespace, rule.namespace)
        and fnmatchcase(asked.name, rule.name)
        and fnmatchcase(asked.user, rule.user)
        and (not rule.labels or (asked.labels is not None and SELECTED[rule.labels](asked.labels)))
    )


def met(rules: tuple[AnyRule, ...], asked: list[ClientRequest], seed: int = 0) -> list[tuple[str, str, int] | None]:
    """The client, rule and number of each strike."""
    faults = FaultsInForce(seed)
    faults.begin(FaultProfile(rules=rules), 0.0)
    strikes = [(each, faults.strike(each, 1.0)) for each in asked]
    return [(each.client, strike.rule.rule, strike.nth) if strike else None for each, strike in strikes]


ROUGH = read_profile_text("include: [rough, lost-answers, refusals]", "packaged").rules
LIMITED = (
    LoseAnswer(rule="some", subresource="*", skip=1, times=2),
    Refuse(rule="half", subresource="*", probability=0.5),
    Refuse(rule="second", subresource="*", nth=(2, 4)),
)


@given(st.lists(OCCASIONS, max_size=40), st.randoms(use_true_random=False), st.sampled_from([ROUGH, LIMITED]))
def test_other_clients_change_nothing(asked: list[ClientRequest], order: Random, rules: tuple[AnyRule, ...]) -> None:
    mixed = _interleaved(asked, order)
    for client in CLIENTS:
        alone = met(rules, [each for each in asked if each.client == client])
        among = [strike for each, strike in zip(mixed, met(rules, mixed), strict=True) if each.client == client]
        assert among == alone


def _interleaved(asked: list[ClientRequest], order: Random) -> list[ClientRequest]:
    """The same requests, of each client in its order, between those of the others in any."""
    turns = [each.client for each in asked]
    order.shuffle(turns)
    left = {client: iter([each for each in asked if each.client == client]) for client in CLIENTS}
    return [next(left[client]) for client in turns]


@given(st.lists(OCCASIONS, max_size=30), st.integers(0, 2**63 - 1))
def test_repeated_requests_meet_the_same_faults(asked: list[ClientRequest], seed: int) -> None:
    assert met(ROUGH, asked, seed) == met(ROUGH, asked, seed)


def test_seeds_differ_and_a_probability_is_kept() -> None:
    asked = [ClientRequest("c", "create", "Pod", "a", f"p{number}") for number in range(2000)]
    rules = (LoseAnswer(rule="r", probability=0.3),)
    first, second = (met(rules, asked, seed) for seed in (1, 2))
    assert first != second
    assert all(520 < Counter(each is not None for each in found)[True] < 680 for found in (first, second))


def test_limits_count_as_they_say() -> None:
    create = ClientRequest("c", "create", "Pod", "a", "p")
    other = structs.replace(create, name="q")
    assert [bool(each) for each in met((LoseAnswer(rule="r", skip=1, times=2),), [create, other] * 3)] == [
        False, True, True, False, False, False,
    ]  # fmt: skip
    assert [bool(each) for each in met((LoseAnswer(rule="r", nth=(2,)),), [create, other, create, create, other])] == [
        False, False, True, False, True,
    ]  # fmt: skip


def test_a_rule_strikes_in_its_time_only() -> None:
    faults = FaultsInForce()
    faults.begin(FaultProfile(rules=(LoseAnswer(rule="r", from_s=5, until_s=10),)), 100.0)
    create = ClientRequest("c", "create", "Pod", "a", "p")
    assert [bool(faults.strike(create, now)) for now in (100.0, 104.9, 105.0, 109.9, 110.0)] == [
        False, False, True, True, False,
    ]  # fmt: skip


def test_the_first_rule_that_strikes_counts() -> None:
    create = ClientRequest("c", "create", "Pod", "a", "p")
    rules = (LoseAnswer(rule="never", probability=0), Refuse(rule="this"), Refuse(rule="that"))
    assert met(rules, [create]) == [("c", "this", 1)]


@pytest.mark.parametrize(
    ("rule", "asked", "allowed"),
    [
        (Repeat(), ClientRequest("c", "create", "Pod", "a", "p-", generated=True), False),
        (Repeat(), ClientRequest("c", "create", "Pod", "a", "p"), True),
        (Refuse(code=409), ClientRequest("c", "get", "Pod", "a", "p"), False),
        (Stale(), ClientRequest("c", "list", "Pod", "a"), False),
        (Stale(), ClientRequest("c", "list", "Pod", "a", at="exact"), False),
        (Stale(), ClientRequest("c", "list", "Pod", "a", at="any"), True),
        (Expire(), ClientRequest("c", "list", "Pod", "a"), False),
        (Expire(), ClientRequest("c", "list", "Pod", "a", at="any"), False),
        (Expire(), ClientRequest("c", "list", "Pod", "a", at="exact"), True),
        (Expire(), ClientRequest("c", "watch", "Pod", "a"), True),
    ],
)
def test_what_kubernetes_promises_is_spared(rule: RequestFault, asked: ClientRequest, allowed: bool) -> None:
    assert selects(rule, asked) == allowed


def test_a_new_profile_begins_anew_and_added_rules_do_not() -> None:
    create, faults = ClientRequest("c", "create", "Pod", "a", "p"), FaultsInForce()
    once = (LoseAnswer(rule="once", times=1),)
    faults.begin(FaultProfile(rules=once), 0.0)
    assert faults.strike(create, 1.0)
    assert faults.add(Refuse(nth=(2,)), 1.0) == "refuse-2"
    found = faults.strike(create, 2.0)
    assert found is not None
    assert (found.rule.rule, found.nth, dict(faults.struck)) == ("refuse-2", 2, {"once": 1, "refuse-2": 1})
    faults.begin(FaultProfile(rules=once), 3.0)
    assert faults.strike(create, 3.0)
    assert (dict(faults.struck), dict(faults.ever)) == ({"once": 1}, {"lose-answer": 2, "refuse": 1})
