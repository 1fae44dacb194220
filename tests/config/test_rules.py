"""Versions of the rules: what was decided before a default changed is decided so again."""

from __future__ import annotations

import pytest

from pumice.config import rules
from pumice.config.errors import ConfigError, NewerVersionError
from pumice.config.fixes import KNOWN_FIXES
from pumice.config.load import default_text
from pumice.config.schema import SchedulerConfig
from pumice.core.configuration import from_parsed, parse_scheduler_config

NAMED = """\
configurations:
- name: pumice
  arguments: {fix: [dra-switch]}
"""


def read(version: int = rules.VERSION, text: str = "") -> SchedulerConfig:
    return parse_scheduler_config(default_text() + text, source="here", rules=version)


def test_every_version_so_far_has_a_row_of_known_rules() -> None:
    assert sorted(rules.CHANGED) == list(range(2, rules.VERSION + 1))
    assert set().union(*rules.CHANGED.values()) <= {*KNOWN_FIXES, *rules.FORMER}


def test_a_former_rule_is_no_switch() -> None:
    assert not set(rules.FORMER).intersection(KNOWN_FIXES)
    asked = NAMED.replace("dra-switch", next(iter(rules.FORMER)))
    with pytest.raises(ConfigError, match="unknown fix"):
        read(text=asked)


def test_the_newest_rules_switch_nothing_on() -> None:
    assert read().pumice.fix == ()


def test_an_older_version_has_on_what_a_newer_one_decides_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "VERSION", 3)
    monkeypatch.setattr(rules, "CHANGED", {2: frozenset({"dra-switch"}), 3: frozenset({"min-member-zero"})})
    assert read(1).pumice.fix == ("dra-switch", "min-member-zero")
    assert read(1, NAMED).pumice.fix == ("dra-switch", "min-member-zero")
    assert read(2, NAMED).pumice.fix == ("dra-switch", "min-member-zero")
    assert read(2).pumice.fix == ("min-member-zero",)
    assert read(3).pumice.fix == ()


def test_what_is_given_as_data_is_read_by_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert from_parsed({"actions": ["allocate"], "tiers": []}, True).pumice.fix == ()


def test_a_newer_version_is_refused_by_name() -> None:
    with pytest.raises(NewerVersionError, match=f"the rules of a cycle: version {rules.VERSION + 1} is newer"):
        read(rules.VERSION + 1)
