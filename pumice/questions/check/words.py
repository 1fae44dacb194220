# SPDX-License-Identifier: Apache-2.0
"""Sentences for each action and flag; the plugins' statements about themselves; and the flags that each plugin
reads.
"""

from __future__ import annotations

from typing import Final

from pumice.config.known import FLAGS as KNOWN_FLAGS
from pumice.config.schema import PluginOption
from pumice.core.plugins import BUILT_IN, record_of

ACTIONS: Final = {
    "enqueue": "lets PodGroups in, queue by queue, as far as admission allows",
    "allocate": "places the pods of jobs that were let in, the queue with the smallest share first",
    "backfill": "places pods that ask for no resources wherever the filters let them",
    "preempt": "makes room for starving jobs by evicting less important tasks of the same queue",
    "reclaim": "makes room for starving jobs of queues below their share by evicting tasks of other queues",
    "gangpreempt": "makes room for a whole gang within a domain, in the same queue",
    "gangreclaim": "makes room for a whole gang within a domain, from other queues",
    "shuffle": "evicts running tasks that plugins want elsewhere",
}

FLAGS: Final = {
    "JobOrder": "says which job goes first",
    "Hierarchy": "goes by the tree of queues in their annotations",
    "JobReady": "says when a job may start",
    "JobPipelined": "says when a job may wait for room that is being made",
    "TaskOrder": "says which task of a job goes first",
    "Preemptable": "says who may be evicted for others of the queue",
    "Reclaimable": "says who may be evicted for other queues",
    "Preemptive": "says which queue may take from others",
    "QueueOrder": "says which queue goes first",
    "ClusterOrder": "says nothing in Volcano",
    "Predicate": "says which nodes can do",
    "BestNode": "says nothing in Volcano's own plugins",
    "NodeOrder": "scores nodes",
    "TargetJob": "says nothing in Volcano's own plugins",
    "ReservedNodes": "says nothing in Volcano's own plugins",
    "JobEnqueued": "says which job is let in",
    "Victim": "says which running tasks are to go",
    "JobStarving": "says which job others may be evicted for",
    "Overused": "says which queue has enough",
    "Allocatable": "says whether a queue may have a task",
    "HyperNodeOrder": "scores domains of the network",
    "SubJobReady": "says when a part of a job may start",
    "SubJobPipelined": "says when a part of a job may wait for room",
    "SubJobOrder": "says which part of a job goes first",
    "HyperNodeGradient": "says in which order domains of the network are tried",
}


def listens(option: PluginOption, point: str) -> bool:
    """Return whether the plugin, as listed, may act at an extension point; for a user's plugin this is unknown."""
    plugin = BUILT_IN.get(option.name)
    return plugin is None or plugin.is_asked_at(point, option)


def flag_does(plugin: str, point: str) -> str:
    """Return what the plugin says at a flag's point."""
    return record_of(plugin).says_at.get(point, FLAGS[point])


def does(option: PluginOption) -> str:
    """Return the sentence for a built-in plugin, with the parts that are switched off, since they limit it. "" for
    others.
    """
    plugin = record_of(option.name)
    off = [
        flag.key
        for flag in KNOWN_FLAGS
        if flag.on_by_default and flag.point in plugin.listens and not option.is_enabled(flag.point)
    ]
    verb = "is" if len(off) == 1 else "are"
    return f"{plugin.says}; as far as it may, for {' and '.join(off)} {verb} off" if off else plugin.says
