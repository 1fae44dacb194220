# SPDX-License-Identifier: Apache-2.0
"""Names that Volcano v1.15.1 knows: actions with their arguments, and the switches of a plugin.

Source: ``actions/factory.go``, ``conf/scheduler_conf.go``, ``plugins/defaults.go``. Each plugin states its own
arguments beside its code; the loader is given the table of plugins (`KnownPlugin`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pumice.config.arguments import INTEGER, SWITCH, Argument

Arguments = tuple[Argument[Any], ...]


class Flag(NamedTuple):
    """A plugin's switch: the extension point it is for, its spelling in YAML, and whether the loader turns it on."""

    point: str
    key: str
    on_by_default: bool = True


class KnownPlugin(NamedTuple):
    """The loader's knowledge of a plugin: its arguments; None for a user's plugin, since only its author knows them.

    `sections`: what it reads beside them, by the name among `configurations`; `exclusive`: switches;
    Volcano takes at most one of them.
    """

    arguments: Arguments | None = None
    sections: Mapping[str, Arguments] = {}
    exclusive: tuple[str, ...] = ()


KnownPlugins = Mapping[str, KnownPlugin]

FLAGS: Final = (
    Flag("JobOrder", "enableJobOrder"),
    Flag("Hierarchy", "enableHierarchy", on_by_default=False),
    Flag("JobReady", "enableJobReady"),
    Flag("JobPipelined", "enableJobPipelined"),
    Flag("TaskOrder", "enableTaskOrder"),
    Flag("Preemptable", "enablePreemptable"),
    Flag("Reclaimable", "enableReclaimable"),
    Flag("Preemptive", "enablePreemptive"),
    Flag("QueueOrder", "enableQueueOrder"),
    Flag("ClusterOrder", "EnabledClusterOrder", on_by_default=False),
    Flag("Predicate", "enablePredicate"),
    Flag("BestNode", "enableBestNode"),
    Flag("NodeOrder", "enableNodeOrder"),
    Flag("TargetJob", "enableTargetJob"),
    Flag("ReservedNodes", "enableReservedNodes"),
    Flag("JobEnqueued", "enableJobEnqueued"),
    Flag("Victim", "enabledVictim"),
    Flag("JobStarving", "enableJobStarving"),
    Flag("Overused", "enabledOverused"),
    Flag("Allocatable", "enabledAllocatable"),
    Flag("HyperNodeOrder", "enabledHyperNodeOrder"),
    Flag("SubJobReady", "enabledSubJobReady"),
    Flag("SubJobPipelined", "enabledSubJobPipelined"),
    Flag("SubJobOrder", "enabledSubJobOrder"),
    Flag("HyperNodeGradient", "enabledHyperNodeGradient"),
)
"""In Volcano's order and Volcano's mixed spelling."""

PUMICE: Final = "pumice"
"""The name of the configuration that holds Pumice's own arguments; Volcano ignores it."""

# --- Actions

CACHES_ERRORS: Final = Argument(
    "predicateErrorCacheEnable", SWITCH, True, "Whether a node that was refused to a pod of a role is refused to all."
)
TOPOLOGY_AWARE: Final = Argument(
    "enableTopologyAwarePreemption", SWITCH, False, "Whether each candidate node is tried with all filters."
)
WORKERS: Final = Argument(
    "topologyAwarePreemptWorkerNum", INTEGER, 16, "Volcano's number of threads; no decision depends on it."
)
CANDIDATES_PERCENT: Final = Argument(
    "minCandidateNodesPercentage", INTEGER, 10, "How many per cent of the nodes are tried as candidates."
)
CANDIDATES_LEAST: Final = Argument("minCandidateNodesAbsolute", INTEGER, 1, "So many candidates are tried at least.")
CANDIDATES_MOST: Final = Argument("maxCandidateNodesAbsolute", INTEGER, 100, "So many candidates are tried at most.")
MOST_DOMAINS: Final = Argument("maxDomains", INTEGER, 8, "So many domains are tried at most.")
WHOLE_BUNDLES: Final = Argument("allowWholeBundle", SWITCH, True, "Whether a victim may lose its whole gang.")

_GANG: Final[Arguments] = (MOST_DOMAINS, WHOLE_BUNDLES)
ACTION_ARGUMENTS: Final[dict[str, Arguments]] = {
    "enqueue": (),
    "allocate": (CACHES_ERRORS,),
    "backfill": (CACHES_ERRORS,),
    "preempt": (CACHES_ERRORS, TOPOLOGY_AWARE, WORKERS, CANDIDATES_PERCENT, CANDIDATES_LEAST, CANDIDATES_MOST),
    "reclaim": (CACHES_ERRORS,),
    "gangpreempt": _GANG,
    "gangreclaim": _GANG,
    "shuffle": (),
}
"""Every action and the arguments it reads."""

KNOWN_ACTIONS: Final = tuple(ACTION_ARGUMENTS)

METRICS_KEYS: Final = (
    "type",
    "address",
    "interval",
    "tls.insecureSkipVerify",
    "elasticsearch.index",
    "elasticsearch.username",
    "elasticsearch.password",
    "elasticsearch.hostnameFieldName",
)
"""Keys of the ``metrics`` section: where real node usage comes from."""
