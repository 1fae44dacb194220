"""What is judged depends on what the configuration has plugins for."""

from __future__ import annotations

import pytest

from pumice.core.configuration import parse_scheduler_config
from pumice.core.messages.events import ConfigLoaded
from pumice.proof.storm.invariants.upheld import (
    ALL,
    BUDGETS,
    CAPABILITY,
    CLAIMS,
    GANGS,
    POD_COUNT,
    PORTS,
    VICTIMS,
    asks_gangs,
    upheld_by,
)
from pumice.proof.storm.live import LiveMonitor
from pumice.proof.storm.script.profiles import profile
from pumice.storage import codec
from pumice.storage.journal import Record

NEVER_HERE = {BUDGETS, VICTIMS}
STOCK = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: proportion
"""


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        (("", ""), ()),
        (("  - name: gang\n", ""), (GANGS,)),
        (("name: gang", "name: gang\n    enableJobReady: false"), (GANGS,)),
        (("name: gang", "name: gang\n    enablePreemptable: false"), ()),
        (("  - name: proportion\n", ""), (CAPABILITY,)),
        (("name: proportion", "name: capacity"), ()),
        (("name: proportion", "name: capacity\n    enabledAllocatable: false"), (CAPABILITY,)),
        (("  - name: predicates\n", ""), (PORTS, CLAIMS, POD_COUNT)),
        (("name: predicates", "name: predicates\n    enablePredicate: false"), (PORTS, CLAIMS, POD_COUNT)),
        (("name: predicates", "name: predicates\n    arguments: {predicate.NodePortsEnable: false}"), (PORTS,)),
        (("name: predicates", "name: predicates\n    arguments: {predicate.VolumeBindingEnable: false}"), (CLAIMS,)),
    ],
)
def test_what_a_plugin_sees_to_holds_where_it_is_asked(change: tuple[str, str], missing: tuple[str, ...]) -> None:
    assert upheld_by(STOCK.replace(*change)) == ALL - NEVER_HERE - set(missing)


def test_the_victims_of_a_storm_are_the_budgets_business() -> None:
    assert upheld_by(profile("victims").config) == ALL


def config(text: str, error: str = "") -> Record:
    return Record("config", codec.encode(ConfigLoaded("digest", text, "test", error)), 0, 0.0)


def test_only_what_every_configuration_so_far_upholds_is_judged() -> None:
    monitor = LiveMonitor()
    monitor.see([config(STOCK)])
    assert monitor.upheld == ALL - NEVER_HERE
    monitor.see([config("", "no such plugin")])
    assert monitor.upheld == ALL - NEVER_HERE
    monitor.see([config(STOCK.replace("  - name: gang\n", ""))])
    monitor.see([config(STOCK)])
    assert monitor.upheld == ALL - NEVER_HERE - {GANGS}
    assert monitor.violations == []
    assert parse_scheduler_config(STOCK, source="test").warnings == ()


def test_when_gangs_bound_victims() -> None:
    def bounds(text: str) -> bool:
        return asks_gangs(parse_scheduler_config(text, source="test"))

    victims = profile("victims").config
    assert bounds(victims)
    assert not bounds(victims.replace("fix: [intersection-stays-empty]", "fix: []"))
    assert not bounds(victims.replace("- name: gang\n", "- name: gang\n    enableReclaimable: false\n"))
    plugins = "actions: preempt\ntiers:\n- plugins:\n  - name: priority\n"
    assert bounds(f"{plugins}  - name: gang\n")
    assert not bounds(f"{plugins}  - name: gang\n- plugins:\n  - name: drf\n")
