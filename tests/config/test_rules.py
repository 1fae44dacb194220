"""Versions of the rules: what was decided before a default changed is decided so again."""

from __future__ import annotations

import pytest

from config import rules
from config.errors import NewerVersionError
from config.fixes import KNOWN_FIXES
from config.load import default_text, from_parsed, parse_scheduler_config
from config.schema import SchedulerConfig

NAMED = """\
configurations:
- name: pumice
  arguments: {fix: [dra-switch]}
"""


def read(version: int = rules.VERSION, text: str = "") -> SchedulerConfig:
    return parse_scheduler_config(default_text() + text, source="here", rules=version)


def test_every_version_so_far_has_a_row_of_known_switches() -> None:
    assert sorted(rules.ALWAYS_ON) == list(range(1, rules.VERSION + 1))
    assert set().union(*rules.ALWAYS_ON.values()) <= set(KNOWN_FIXES)


def test_the_newest_rules_switch_nothing_on() -> None:
    assert read().pumice.fix == ()


def test_an_older_version_has_on_what_a_newer_one_decides_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "ALWAYS_ON", {1: frozenset({"min-member-zero", "dra-switch"}), 2: frozenset[str]()})
    assert read(1).pumice.fix == ("dra-switch", "min-member-zero")
    assert read(1, NAMED).pumice.fix == ("dra-switch", "min-member-zero")
    assert read(2, NAMED).pumice.fix == ("dra-switch",)
    assert read(2).pumice.fix == ()


def test_what_is_given_as_data_is_read_by_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rules.ALWAYS_ON, rules.VERSION, frozenset({"dra-switch"}))
    assert from_parsed({"actions": ["allocate"], "tiers": []}, True).pumice.fix == ("dra-switch",)


def test_a_newer_version_is_refused_by_name() -> None:
    with pytest.raises(NewerVersionError, match=f"the rules of a cycle: version {rules.VERSION + 1} is newer"):
        read(rules.VERSION + 1)
