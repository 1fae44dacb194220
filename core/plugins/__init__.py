# SPDX-License-Identifier: Apache-2.0
"""The plugins, by the names the configuration uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pumice.config.known import KnownPlugin
from pumice.config.schema import Tier
from pumice.core.plugins.binpack import Binpack
from pumice.core.plugins.capacity import Capacity
from pumice.core.plugins.card_policies import BestFit, Clustering, DotProd, Fgd, GpuPacking
from pumice.core.plugins.cdp import Cdp
from pumice.core.plugins.conformance import Conformance
from pumice.core.plugins.deviceshare import DeviceShare
from pumice.core.plugins.drf import Drf
from pumice.core.plugins.extender import Extender
from pumice.core.plugins.gang import Gang
from pumice.core.plugins.network_topology_aware import NetworkTopologyAware
from pumice.core.plugins.nodegroup import NodeGroup
from pumice.core.plugins.nodeorder import NodeOrder
from pumice.core.plugins.numaaware import NumaAware
from pumice.core.plugins.overcommit import Overcommit
from pumice.core.plugins.pdb import Pdb
from pumice.core.plugins.plugin import BuiltInPlugin, KnowsDevices, Limit, PluginBuilder
from pumice.core.plugins.predicates import Predicates
from pumice.core.plugins.priority import Priority
from pumice.core.plugins.proportion import Proportion
from pumice.core.plugins.rescheduling import Rescheduling
from pumice.core.plugins.resource_strategy_fit import ResourceStrategyFit
from pumice.core.plugins.resourcequota import ResourceQuotas
from pumice.core.plugins.sla import Sla
from pumice.core.plugins.task_topology import TaskTopology
from pumice.core.plugins.tdm import Tdm
from pumice.core.plugins.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.config.schema import SchedulerConfig

_BUILT_IN: Final[tuple[type[BuiltInPlugin], ...]] = (
    BestFit,
    Binpack,
    Capacity,
    Cdp,
    Conformance,
    DeviceShare,
    DotProd,
    Drf,
    Extender,
    Fgd,
    Gang,
    Clustering,
    GpuPacking,
    NetworkTopologyAware,
    NodeGroup,
    NodeOrder,
    NumaAware,
    Overcommit,
    Pdb,
    Predicates,
    Priority,
    Proportion,
    Rescheduling,
    ResourceStrategyFit,
    ResourceQuotas,
    Sla,
    TaskTopology,
    Tdm,
    Usage,
)
BUILT_IN: Final = {plugin.name: plugin for plugin in _BUILT_IN}
"""The built-in plugins, with what their classes state."""

OF_A_USER: Final = KnownPlugin()

PLUGINS: dict[str, PluginBuilder] = {**BUILT_IN}
"""Plugins that a configuration may name: users' own may come later."""

ASKING: Final = frozenset(name for name, plugin in BUILT_IN.items() if plugin.asks_outside)
"""Plugins that ask processes outside."""

SILENT: Final = frozenset(name for name, plugin in BUILT_IN.items() if plugin.only_answers)
"""Plugins that only answer: in a session where they are not asked they write nothing, and remember nothing."""

PLACERS: Final = frozenset(name for name, plugin in BUILT_IN.items() if plugin.only_places)
"""Those of them that are asked about nodes only."""

_DEVICES: Final = {name: plugin.families for name, plugin in BUILT_IN.items() if issubclass(plugin, KnowsDevices)}
OF_DEVICES: Final = frozenset(_DEVICES)
"""Plugins whose refusals are about devices within nodes."""

ACCOUNTANTS: Final = OF_DEVICES.union(name for name, plugin in BUILT_IN.items() if plugin.limits is Limit.QUEUE)
"""Plugins that know the amounts of queues, and those that find the devices which may count in them."""

FAMILIES: Final = tuple(family for families in _DEVICES.values() for family in families)
"""The kinds of devices that they know."""

VOCABULARIES: Final = (*(each.vocabulary for each in _BUILT_IN), *(each.vocabulary for each in FAMILIES))
"""Words that they read and say and that are not names."""

SECTIONS: Final = frozenset(name for plugin in _BUILT_IN for name in plugin.sections)
"""Names among `configurations` that plugins read, and no action."""


def known_plugins() -> dict[str, KnownPlugin]:
    """Return what the loader of configurations is to know of each plugin."""
    known = {plugin.name: KnownPlugin(plugin.arguments, plugin.sections, plugin.exclusive) for plugin in _BUILT_IN}
    return {name: known.get(name, OF_A_USER) for name in PLUGINS}


def record_of(name: str) -> type[BuiltInPlugin]:
    """Return the record of a plugin; an empty one for a user's plugin."""
    return BUILT_IN.get(name, BuiltInPlugin)


def given_cards(notes: Mapping[str, str]) -> list[str]:
    """Return the cards that a pod was given by its annotations, a phrase for each."""
    return list(dict.fromkeys(phrase for family in FAMILIES for phrase in family.given(notes)))


def asks_outside(config: SchedulerConfig) -> bool:
    """Return whether the configuration names one of these."""
    return any(option.name in ASKING for tier in config.tiers for option in tier.plugins)


def accounts_of(config: SchedulerConfig) -> SchedulerConfig:
    """Return the configuration of a session that only tells the amounts of queues: without the built-in plugins that
    know none.
    """
    silent = BUILT_IN.keys() - ACCOUNTANTS
    tiers = [Tier(tuple([one for one in tier.plugins if one.name not in silent])) for tier in config.tiers]
    return replace(config, tiers=tuple(tiers))


def accountant_of(config: SchedulerConfig) -> type[BuiltInPlugin] | None:
    """Return the one plugin that knows the amounts of queues; None where there is none or more, or where a user's
    plugin may know them.
    """
    names = {option.name for tier in config.tiers for option in tier.plugins}
    found = [BUILT_IN[name] for name in names & BUILT_IN.keys() if BUILT_IN[name].limits is Limit.QUEUE]
    return found[0] if len(found) == 1 and names <= BUILT_IN.keys() else None


def of_ours_alone(config: SchedulerConfig) -> bool:
    """Return whether the configuration names only built-in plugins."""
    return all(option.name in BUILT_IN for tier in config.tiers for option in tier.plugins)
