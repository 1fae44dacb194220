# SPDX-License-Identifier: Apache-2.0
"""Invariants that a scheduler configuration upholds, and their violations.

Volcano's allocate itself sees to cpu, memory and other resources; a gang that comes whole, a queue that stays within
its capability, budgets that have the last word, free host ports, so many pods a node: plugins do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pumice.core.configuration import parse_scheduler_config
from pumice.core.plugins.extender.plugin import IGNORABLE, URL_PREFIX, VERB_ARGUMENTS
from pumice.core.plugins.predicates.plugin import SWITCHES

if TYPE_CHECKING:
    from pumice.config.schema import PluginOption, SchedulerConfig, Tier

# --- Violations


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken invariant by name, with a sentence, at a virtual time."""

    invariant: str
    words: str
    at: float = 0.0


class ViolationFoundError(Exception):
    """Ends the storm."""

    def __init__(self, violation: Violation) -> None:
        self.violation = violation
        super().__init__(f"{violation.invariant}: {violation.words}")


GANGS: Final = "whole-gangs"
VICTIMS: Final = "victims of gangs"
"""Of `whole-gangs`."""
CAPABILITY: Final = "within-capability"
BUDGETS: Final = "spares-budgets"
CLAIMS: Final = "claims-first"
PORTS: Final = "host ports"
"""Of `within-allocatable`."""
POD_COUNT: Final = "pods"
"""Of `within-allocatable`: backfill places what asks for nothing without a look at the room."""
CARDS: Final = "within-cards"
KEPT_CARDS: Final = "cards of terminating pods"
"""Of `within-cards`: without the fix they are given to others, as Volcano does."""
SLICES: Final = "slices of cards"
"""Of `within-cards`: without the fix several containers have one, as Volcano does."""
CHIPS: Final = "chips of NPUs"
"""Of `within-cards`: without the fix pods of one cycle are given the same part, as Volcano does."""
EXTENDER: Final = "extender-heeded"
STORM_URL: Final = "http://extender"
"""URL of the extender whose rule the monitor knows."""
ALL: Final = frozenset((GANGS, VICTIMS, CAPABILITY, BUDGETS, CLAIMS, PORTS, POD_COUNT))
"""Invariants that the stock configuration upholds."""
EVERY: Final = ALL | {CARDS, KEPT_CARDS, SLICES, CHIPS, EXTENDER}

ASKING: Final = frozenset(("enqueue", "allocate", "preempt", "reclaim", "backfill"))
"""Actions that name no victims, or ask the plugins of the tiers about them."""


@lru_cache(maxsize=16)
def upheld_by(text: str) -> frozenset[str]:
    """Return those of EVERY that a configuration upholds, from the text of its record in the journal."""
    return upheld(parse_scheduler_config(text, source="the journal", lenient=True))


def upheld(config: SchedulerConfig) -> frozenset[str]:
    """Return those of EVERY that a configuration upholds."""
    holds = {
        GANGS: _asked(config, ("gang",), "JobReady"),
        VICTIMS: asks_gangs(config),
        CAPABILITY: _asked(config, ("proportion", "capacity"), "Allocatable"),
        BUDGETS: asks_budgets(config),
        CLAIMS: _filtered(config, "VolumeBindingEnable", "DynamicResourceAllocationEnable"),
        PORTS: _filtered(config, "NodePortsEnable"),
        POD_COUNT: _filtered(config),
        CARDS: _asked(config, ("deviceshare",), "Predicate"),
        KEPT_CARDS: "terminating-pods-keep-cards" in config.pumice.fix,
        SLICES: "mig-slices-once" in config.pumice.fix,
        CHIPS: "npu-chips-once" in config.pumice.fix,
        EXTENDER: any(map(_must_be_heeded, _options(config))),
    }
    return frozenset(name for name, held in holds.items() if held)


def asks_budgets(config: SchedulerConfig) -> bool:
    """Return whether no victim is chosen without the pdb plugin: it has the last word in every tier."""
    asked = all(tier.plugins and tier.plugins[-1].name == "pdb" for tier in config.tiers)
    return asked and ASKING.issuperset(config.actions)


def asks_gangs(config: SchedulerConfig) -> bool:
    """Return whether no victim is chosen without the gang plugin's vote, in every tier.

    An answer before the last one is forgotten when later ones leave nothing of it: Volcano lets the next plugin start
    anew (fix intersection-stays-empty: it does not).
    """
    stays = "intersection-stays-empty" in config.pumice.fix
    return ASKING.issuperset(config.actions) and all(_asks_gang(tier, stays) for tier in config.tiers)


def _asks_gang(tier: Tier, stays: bool) -> bool:
    names = [option.name for option in tier.plugins if option.is_enabled("Preemptable")]
    also = [option.name for option in tier.plugins if option.is_enabled("Reclaimable")]
    return all("gang" in each and (stays or each[-1] == "gang") for each in (names, also))


def _asked(config: SchedulerConfig, names: tuple[str, ...], point: str) -> bool:
    """Return whether one of these plugins votes at an extension point where all must agree."""
    return any(option.name in names and option.is_enabled(point) for option in _options(config))


def _filtered(config: SchedulerConfig, *switches: str) -> bool:
    """Return whether the predicates plugin filters nodes, with these of its filters on."""
    return any(
        all(SWITCHES[switch].of(option.arguments) for switch in switches)
        for option in _options(config)
        if option.name == "predicates" and option.is_enabled("Predicate")
    )


def _must_be_heeded(option: PluginOption) -> bool:
    """Return whether the storm's own extender filters nodes and its silence counts as a no."""
    arguments = option.arguments
    if URL_PREFIX.of(arguments) != STORM_URL:
        return False
    asked = option.name == "extender" and bool(VERB_ARGUMENTS["predicate"].of(arguments))
    return asked and option.is_enabled("Predicate") and not IGNORABLE.of(arguments)


def _options(config: SchedulerConfig) -> list[PluginOption]:
    return [option for tier in config.tiers for option in tier.plugins]
