# SPDX-License-Identifier: Apache-2.0
"""The versions of the rules of cycles: a journal records the version of every cycle, and replays decide by it.

A version is raised when the same configuration leads to other decisions. What decided otherwise until then is a switch
in `config.fixes`, or a former rule, which no configuration can ask for. Both are on under the older versions, whatever
the configuration says. Journals that say nothing have version 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from pumice.config.errors import NewerVersionError

if TYPE_CHECKING:
    from pumice.config.schema import SchedulerConfig

VERSION: Final = 9
"""The rules of new cycles."""

FORMER: Final[dict[str, str]] = {
    "domains-of-a-tier-by-name": "HyperNodes of a tier are tried by name, not in the order of a walk from the top.",
    "scorers-add-up-one-by-one": "Each scorer of a plugin is added to the total by itself.",
    "empty-reasons-are-counted": "Nodes that a filter refuses without a word are counted in messages.",
    "queues-name-no-device-classes": "The status of a queue does not count the devices of claims.",
    "claims-in-flight-refuse-by-node": "A claim that another pod gets refuses each node, not the pod before any node.",
    "nominated-nodes-are-counted-anew": "Preempt asks of a nominated node what PreFilter would count now, not what the "
    "last search for the pod had counted.",
    "claims-found-by-owner": "Quotas find a generated claim by its owner, not by what the pod's status says.",
    "kube-nominations-stay": "Kubernetes' own scheduler leaves a pod nominated where it can make no room any more.",
    "powers-as-python-has-them": "The weights of tiers have the last bit of C's pow, not of Go's math.Pow.",
    "namespace-selectors-stay": "A namespaceSelector that matches no labels (DoesNotExist, NotIn) reaches namespaces "
    "that it does not select. This is right, and stands above namespace-selectors-end.",
    "zero-capacities-are-free": "Of a capacity of devices that a queue does not name, 0 may be asked for.",
    "fractions-as-python-reads-them": "Texts of oversubscription, and weights of drf's hierarchy, are read as Python "
    "reads numbers: blanks around them count for nothing, and hexadecimal ones are none.",
    "namespace-selectors-end": "A namespaceSelector that matches no labels reaches none but what it selects.",
    "queues-name-no-zeros": "The status of a queue does not name a resource that its pods ask for with 0.",
    "refusals-stop-backfill": "A pod that backfill has placed is not bound when a plugin refuses to reserve for it.",
    "zones-of-ephemeral-volumes": "VolumeZone looks at the claims of ephemeral volumes too.",
    "backfill-binds-to-full-nodes": "backfill binds a pod without requests to a node that has no room for one more.",
    "tried-groups-stay-in-line": "A job has another turn for groups that have found no place, which forgets why.",
    "tasks-without-a-node-head-for-domains": "gangpreempt and gangreclaim score a task that allocate found no node for "
    "by the HyperNode that the rest of its group was tried in.",
    "pre-filters-name-domains": "What is wrong with a pod on any node is said of the HyperNode that was tried.",
}
"""Rules that were taken from Volcano, or from Kubernetes, wrongly, and what they were."""

CHANGED: Final[dict[int, frozenset[str]]] = {
    2: frozenset({"volumes-are-no-resource", "scores-count-pod-level", "reserve-without-filters", "gauges-kept-apart"}),
    3: frozenset({"resizes-are-ignored"}),
    4: frozenset(
        {
            "groups-list-tasks-once",
            "void-nominations-stay",
            "domains-of-a-tier-by-name",
            "scorers-add-up-one-by-one",
            "empty-reasons-are-counted",
            "queues-name-no-device-classes",
            "claims-in-flight-refuse-by-node",
            "nominated-nodes-are-counted-anew",
            "claims-found-by-owner",
            "kube-nominations-stay",
            "powers-as-python-has-them",
        }
    ),
    5: frozenset({"namespace-selectors-stay"}),
    6: frozenset({"zero-capacities-are-free", "fractions-as-python-reads-them"}),
    7: frozenset({"namespace-selectors-end", "queues-name-no-zeros", "refusals-stop-backfill"}),
    8: frozenset({"zones-of-ephemeral-volumes"}),
    9: frozenset(
        {
            "backfill-binds-to-full-nodes",
            "tried-groups-stay-in-line",
            "pre-filters-name-domains",
            "tasks-without-a-node-head-for-domains",
        }
    ),
}
"""By version: the switches and former rules that were on until it. Every version from 2 to `VERSION` has a row, which
never changes once it is in a release.
"""


def under(config: SchedulerConfig, version: int) -> SchedulerConfig:
    """Return the configuration as it is read under a version of the rules. Raises NewerVersionError."""
    if version > VERSION:
        raise NewerVersionError("the rules of a cycle", version, VERSION)
    later = [names for since, names in CHANGED.items() if since > version]
    # Sorted: this order gets into the configuration, and a set's depends on the hash seed.
    more = sorted(frozenset[str]().union(*later).difference(config.pumice.fix))
    if not more:
        return config
    pumice = msgspec.structs.replace(config.pumice, fix=(*config.pumice.fix, *more))
    return msgspec.structs.replace(config, pumice=pumice)
