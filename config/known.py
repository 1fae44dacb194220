"""Names that Volcano v1.15.1 knows: actions, plugins, their arguments, and the switches of a plugin.

Source: ``actions/factory.go``, ``plugins/factory.go``, ``conf/scheduler_conf.go``, ``plugins/defaults.go``. This is
what a name may be; the layers that implement a name announce it to the loader.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Flag(NamedTuple):
    """A plugin's switch: the extension point it is for, its spelling in YAML, and whether the loader turns it on."""

    point: str
    key: str
    on_by_default: bool = True


class OwnArgument(NamedTuple):
    """An argument of a plugin of ours, its default in words, and what it is for."""

    name: str
    default: str
    what: str


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

_CACHE = ("predicateErrorCacheEnable",)
_GANG = ("maxDomains", "allowWholeBundle")

ACTION_ARGUMENTS: Final[dict[str, tuple[str, ...]]] = {
    "enqueue": (),
    "allocate": _CACHE,
    "backfill": _CACHE,
    "preempt": (
        *_CACHE,
        "enableTopologyAwarePreemption",
        "topologyAwarePreemptWorkerNum",
        "minCandidateNodesPercentage",
        "minCandidateNodesAbsolute",
        "maxCandidateNodesAbsolute",
    ),
    "reclaim": _CACHE,
    "gangpreempt": _GANG,
    "gangreclaim": _GANG,
    "shuffle": (),
}
"""Every action and the arguments it reads."""

PLUGIN_CONFIGURATIONS: Final[dict[str, tuple[str, ...]]] = {
    "init-params": ("useClusterInfoManager", "self-maintain-available-card", "presetVirtualDevice"),
}
"""Configurations that do not belong to an action: MindCluster's, which deviceshare reads."""

OWN_PLUGIN_ARGUMENTS: Final[dict[str, tuple[OwnArgument, ...]]] = {
    "fgd": (
        OwnArgument("fgd.weight", "1", "What its scores count."),
        OwnArgument(
            "fgd.typicalPods",
            "the pods of the session",
            "By which fragments are reckoned: cpu in milli-cores, milli in thousandths of each card, cards, models "
            "such as `A100|V100`, and how many pods are of that class.",
        ),
        OwnArgument("fgd.coverage", "95", "The most frequent classes count, until so many per cent of the pods are."),
    ),
    "bestfit": (OwnArgument("bestfit.weight", "1", "What its scores count."),),
    "dotprod": (OwnArgument("dotprod.weight", "1", "What its scores count."),),
    "gpuclustering": (OwnArgument("gpuclustering.weight", "1", "What its scores count."),),
    "gpupacking": (OwnArgument("gpupacking.weight", "1", "What its scores count."),),
}
"""Plugins that Volcano does not have."""

PLUGIN_ARGUMENTS: Final[dict[str, tuple[str, ...]]] = {
    "binpack": ("binpack.weight", "binpack.cpu", "binpack.memory", "binpack.resources", "binpack.resources.*"),
    "capacity": (
        "ancestorReclaimLevel",
        "capacity.DynamicResourceAllocationEnable",
        "capacity.DRAConsumableCapacityEnable",
    ),
    "cdp": (),
    "conformance": (),
    "deviceshare": (
        "deviceshare.GPUSharingEnable",
        "deviceshare.NodeLockEnable",
        "deviceshare.GPUNumberEnable",
        "deviceshare.VGPUEnable",
        "deviceshare.AscendMindClusterVNPUEnable",
        "deviceshare.AscendHAMiVNPUEnable",
        "deviceshare.SchedulePolicy",
        "deviceshare.ScheduleWeight",
        "deviceshare.KnownGeometriesCMName",
        "deviceshare.KnownGeometriesCMNamespace",
        "deviceshare.GPUExclusiveRules",
    ),
    "drf": (),
    "extender": (
        "extender.urlPrefix",
        "extender.httpTimeout",
        "extender.onSessionOpenVerb",
        "extender.onSessionCloseVerb",
        "extender.predicateVerb",
        "extender.prioritizeVerb",
        "extender.preemptableVerb",
        "extender.reclaimableVerb",
        "extender.queueOverusedVerb",
        "extender.jobEnqueueableVerb",
        "extender.jobReadyVerb",
        "extender.allocateFuncVerb",
        "extender.deallocateFuncVerb",
        "extender.ignorable",
        "extender.managedResources",
    ),
    "gang": (),
    "network-topology-aware": (
        "weight",
        "hypernode.binpack.cpu",
        "hypernode.binpack.memory",
        "hypernode.binpack.resources",
        "hypernode.binpack.resources.*",
        "hypernode.binpack.normal-pod.enable",
        "hypernode.binpack.normal-pod.fading",
        "hypernode.gradient.evict.max-hypernodes",
    ),
    "nodegroup": ("strict", "enablePreferredOrder"),
    "nodeorder": (
        "nodeaffinity.weight",
        "podaffinity.weight",
        "leastrequested.weight",
        "balancedresource.weight",
        "mostrequested.weight",
        "tainttoleration.weight",
        "imagelocality.weight",
        "podtopologyspread.weight",
    ),
    "numa-aware": ("weight",),
    "overcommit": ("overcommit-factor",),
    "pdb": (),
    "predicates": (
        "predicate.NodeAffinityEnable",
        "predicate.NodePortsEnable",
        "predicate.TaintTolerationEnable",
        "predicate.PodAffinityEnable",
        "predicate.NodeVolumeLimitsEnable",
        "predicate.VolumeZoneEnable",
        "predicate.PodTopologySpreadEnable",
        "predicate.VolumeBindingEnable",
        "predicate.DynamicResourceAllocationEnable",
        "predicate.CacheEnable",
        "volumebinding.bindTimeoutSeconds",
        "volumebinding.shape",
        "volumebinding.weight",
        "dynamicresources.filterTimeoutSeconds",
    ),
    "priority": (),
    "proportion": (),
    "rescheduling": ("interval", "metricsPeriod", "strategies"),
    "resource-strategy-fit": ("resourceStrategyFitWeight", "resources", "sra", "proportional"),
    "resourcequota": (),
    "sla": ("sla-waiting-time",),
    "task-topology": ("task-topology.weight",),
    "tdm": ("tdm.revocable-zone.*", "tdm.evict.period"),
    "usage": ("usage.weight", "cpu.weight", "memory.weight", "thresholds"),
    **{name: tuple(each.name for each in own) for name, own in OWN_PLUGIN_ARGUMENTS.items()},
}
"""Every plugin and the arguments it reads; a trailing ``*`` stands for any ending."""

KNOWN_ACTIONS: Final = tuple(ACTION_ARGUMENTS)
KNOWN_PLUGINS: Final = tuple(PLUGIN_ARGUMENTS)

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
"""What the ``metrics`` section may hold: where real node usage comes from."""


def is_argument(name: str, known: tuple[str, ...]) -> bool:
    """Return whether ``name`` is one of the known arguments, endings of ``*`` included."""
    return name in known or any(
        pattern.endswith("*") and name.startswith(pattern[:-1]) and name != pattern[:-1] for pattern in known
    )
