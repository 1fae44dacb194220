"""Fault profiles from a text: what is packaged, what is filled in, and how mistakes are told."""

from __future__ import annotations

import msgspec
import pytest

from pumice.cluster.faults.profiles import PACKAGED, read_profile_text, rule_of
from pumice.cluster.faults.rules import RULES, LoseAnswer, RequestRule
from pumice.config.errors import ConfigError

WRONG = {
    "- a": "f.yaml:1: expected a mapping, was a list",
    "x: 1": "f.yaml:1: x: unknown key 'x'; known: include, rules, seed",
    "seed: -1": "f.yaml:1: seed: expected a whole number >= 0, was -1",
    "include: [rogh]": "f.yaml:1: include[0]: unknown fault profile 'rogh', did you mean 'rough'?",
    "include: [3]": "f.yaml:1: include[0]: expected the name of a profile, was 3",
    "rules:\n- {fault: refus}": "f.yaml:2: rules[0].fault: unknown fault 'refus', did you mean 'refuse'?",
    "rules:\n- {verb: get}": "f.yaml:2: rules[0].fault: expected one of refuse,",
    "rules:\n- {fault: refuse, cod: 3}": "f.yaml:2: rules[0].cod: unknown key 'cod', did you mean 'code'?",
    "rules:\n- {fault: refuse, code: 404}": "rules[0].code: expected 409, 429, 500, 503 or 504, was 404",
    "rules:\n- {fault: refuse, verb: lst}": "rules[0].verb[0]: expected get, list, watch,",
    "rules:\n- {fault: refuse, kind: pods}": "rules[0].kind[0]: expected a kind such as Pod, or Job.batch, was 'pods'",
    "rules:\n- {fault: refuse, nth: 0}": "rules[0].nth[0]: expected an integer from 1 to 1000000, was 0",
    "rules:\n- {fault: refuse, probability: 2}": "rules[0].probability: expected a share from 0 to 1, was 2",
    "rules:\n- {fault: refuse, from_s: 2, until_s: 2}": "rules[0].until_s: expected more than from_s (2), was 2.0",
    "rules:\n- {fault: refuse, labels: '((='}": "rules[0].labels: not a valid label selector: ",
    "rules:\n- {fault: refuse, code: 409, verb: get}": "rules[0].verb: expected one of create, update, patch, delete,",
    "rules:\n- {fault: repeat, verb: list}": "rules[0].verb: expected one of create, update, patch, delete,",
    "rules:\n- {fault: cut-watch, verb: list}": "rules[0].verb: expected one of watch, was 'list'",
    "rules:\n- {fault: refuse, rule: a}\n- {fault: repeat, rule: a}": "f.yaml:3: rules[1]: two rules are called 'a'",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_mistake_is_told_with_its_place(text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_profile_text(text, "f.yaml")
    assert WRONG[text] in str(raised.value)


def test_packaged_profiles_are_valid_and_listed() -> None:
    whole = read_profile_text(f"include: [{', '.join(PACKAGED)}]", "f.yaml")
    assert {rule.rule.partition(".")[0] for rule in whole.rules} == {*PACKAGED}
    assert whole.seed is None


def test_every_fault_is_read_with_its_defaults() -> None:
    for fault, form in RULES.items():
        assert rule_of("here", fault, {}) == form()
        assert rule_of("here", fault, {}).fault == fault
        assert not issubclass(form, RequestRule) or form().verbs


def test_one_value_may_stand_for_a_list() -> None:
    rule = rule_of("here", "lose-answer", {"verb": "create", "kind": "Pod", "nth": 2, "times": None})
    assert rule == LoseAnswer(verb=("create",), kind=("Pod",), nth=(2,))


def test_a_profile_reads_what_it_writes() -> None:
    whole = read_profile_text("{seed: 3, include: [rough], rules: [{fault: restart}]}", "f.yaml")
    written = msgspec.json.encode({"seed": whole.seed, "rules": whole.rules}).decode()
    assert read_profile_text(written, "f.json") == whole
