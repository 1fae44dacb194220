# SPDX-License-Identifier: Apache-2.0
"""Defects of Volcano v1.15.1 that are reproduced by default, and the switches that mend them.

A switch stands under ``configurations: [{name: pumice, arguments: {fix: [NAME, ...]}}]``. The table in
docs/reference/fixes.md is made from the records here.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Fix(NamedTuple):
    """One switch: where it acts, what Volcano v1.15.1 does, and what Pumice does with the switch on.

    ``upstream``: what became of it in Volcano, where that is known. ``built``: whether this release can do it.
    """

    name: str
    where: str
    volcano: str
    pumice: str
    upstream: str = ""
    built: bool = True


FIXES: Final[tuple[Fix, ...]] = (
    Fix(
        "enqueue-charges-once",
        "proportion, capacity, resourcequota",
        "A job counts as admitted when the plugin votes for it: also when another plugin then refuses it, and not when "
        "an earlier tier admits it.",
        "A job is charged when it was admitted, by every plugin that keeps a count.",
        "mended after v1.15.1 (#5387)",
    ),
    Fix(
        "overcommit-counts-once",
        "overcommit",
        "A job that is Inqueue counts with its whole minResources, also with what its pods use already.",
        "What its pods use is taken off.",
        "proportion and capacity do so already",
    ),
    Fix(
        "dequeue-strategy",
        "enqueue, allocate",
        "A queue's dequeueStrategy is not read: who comes after a job that cannot go on is tried all the same.",
        "With dequeueStrategy fifo the first job that cannot go on ends its queue's turn for the cycle.",
        "#4572, #4690, #3950",
    ),
    Fix(
        "discard-pipelined-only",
        "allocate",
        "A job that is only promised room keeps what it was allocated on the side to the end of the cycle, without "
        "being bound.",
        "All of it is undone, and later jobs may have the room.",
    ),
    Fix(
        "empty-answer-vetoes",
        "victims",
        "A plugin that permits no victims is overruled by the next tier.",
        "No pod is evicted.",
        "#1791",
    ),
    Fix(
        "intersection-stays-empty",
        "victims",
        "When the plugins of a tier agree on no victim, the next one of that tier starts anew with its own candidates.",
        "The tier has no victims.",
        "#5963",
    ),
    Fix(
        "groups-list-tasks-once",
        "allocate by domains, gangpreempt, gangreclaim",
        "A task that was placed by replaying a trial stays in its group's lists as it was before: gangpreempt before "
        "allocate makes room for a gang, and allocate places the gang once more.",
        "Its group lists it where it is.",
    ),
    Fix(
        "void-nominations-stay",
        "allocate",
        "When a gang cannot be placed in the domain in which room was made for it in this cycle, its pods' nominated "
        "nodes are cleared as soon as something else is written of them.",
        "The nominations stay.",
    ),
    Fix(
        "unevict-restores-bound",
        "transactions",
        "A bound pod whose eviction is taken back counts as Running.",
        "It is Bound again.",
    ),
    Fix(
        "unevict-restores-pods",
        "predicates, nodeorder",
        "A running pod whose eviction is taken back stays missing from what filters and scores read of its node.",
        "It is there again.",
    ),
    Fix(
        "promises-reserve",
        "predicates",
        "Reservations go by spec.nodeName, which an allocation sets and nothing clears: a pod that is only promised "
        "room has no volumes reserved, or those of a node tried before; one that waits for devices is promised none.",
        "Volumes and devices are reserved on the node that is promised.",
    ),
    Fix(
        "capacity-best-effort-last",
        "capacity",
        "A queue that deserves nothing has share 1, and goes before queues that have more than they deserve.",
        "It goes after all queues that deserve something.",
    ),
    Fix(
        "capacity-ancestor-shares",
        "capacity with enableHierarchy",
        "The shares of parent queues stay as they were when the cycle began.",
        "They follow what is placed.",
    ),
    Fix(
        "drf-counts-victims-only",
        "drf",
        "Of several candidates of a job, each counts as gone for the next, chosen or not.",
        "Only those that were chosen count.",
    ),
    Fix(
        "tdm-past-midnight",
        "tdm",
        "A zone such as 22:00-06:00 is closed from midnight on.",
        "It is open until 06:00.",
    ),
    Fix(
        "min-member-zero",
        "PodGroup phase",
        "A PodGroup with minMember 0 and no pod scheduled is Completed.",
        "It stays Inqueue or Pending.",
    ),
    Fix(
        "terminating-members",
        "PodGroup phase, gang",
        "Members that are being deleted do not count: the PodGroup leaves Running, and is called unschedulable.",
        "They count while they have a node, and a gang that only waits for them to end is not called unschedulable.",
        "mended after v1.15.1 (#5794)",
    ),
    Fix(
        "preempt-rechecks-predicates",
        "preempt",
        "After evictions the filters are not asked again.",
        "Evictions go on until the filters pass.",
        "mended after v1.15.1 (#5843)",
    ),
    Fix(
        "preempt-pushes-once",
        "preempt",
        "A preemptor that has what it needs is put back in line.",
        "It is done.",
        "mended after v1.15.1",
    ),
    Fix(
        "dry-run-asks-queue",
        "preempt, topology-aware",
        "Where the queue may not have the preemptor, all victims of the node go all the same.",
        "No pod is evicted.",
    ),
    Fix(
        "best-effort-victims-count",
        "preempt",
        "When only pods without requests were evicted, the preemptor is not nominated for the node.",
        "It is.",
    ),
    Fix(
        "pdb-unlabelled-pods",
        "pdb",
        "Pods without labels are never victims.",
        "No budget is theirs, and they may be.",
    ),
    Fix(
        "pdb-leaves-shuffle-alone",
        "pdb",
        "With action shuffle every running pod that the budgets leave is evicted.",
        "No pod is evicted because of pdb.",
    ),
    Fix(
        "rescheduling-default-period",
        "rescheduling",
        "Without metricsPeriod the average of 5m is read, which the collector of Prometheus and Elasticsearch never "
        "fills in: no pod is evicted.",
        "The average of 10m is read.",
        "#3582",
    ),
    Fix(
        "nodegroup-refusal-counts",
        "nodegroup",
        "A group that is both required and preferred to be avoided is let in.",
        "It is refused.",
    ),
    Fix(
        "nominated-domains-last",
        "gangpreempt, gangreclaim, allocate",
        "The domain in which room was made for a gang is forgotten when the cycle ends, and others may take the room.",
        "It is kept until the gang is there or no longer fits, and such gangs are placed before all others.",
        "proposed (#5476), not merged",
    ),
    Fix(
        "refused-nodes-asked-again",
        "allocate, backfill, preempt, reclaim, gangpreempt, gangreclaim",
        "A node that a filter refused to one pod of a role stays refused to the next, whatever was placed in between: "
        "a gang larger than the domains it has to spread over never starts.",
        "Each pod is tried on every node, as with predicateErrorCacheEnable: false.",
        "#3666",
    ),
    Fix(
        "topology-idle-follows",
        "network-topology-aware",
        "What a HyperNode has idle stays as it was when the cycle began.",
        "It follows what is placed.",
    ),
    Fix(
        "action-arguments-follow",
        "actions",
        "An argument that was taken out of the configuration stays in force until a restart.",
        "The default is back immediately.",
    ),
    Fix(
        "volumes-are-no-resource",
        "requests, nodes, queues",
        "Each claim of a pod asks for one attachable-volumes-csi-DRIVER. A node has as many as its CSINode says: "
        "where no CSINode names the driver, the pod fits nowhere. Queues' sums show it.",
        "Only the filter NodeVolumeLimits counts volumes.",
    ),
    Fix(
        "resizes-are-ignored",
        "requests of pods that are resized in place",
        "A pod counts for the largest of spec, status.resources and allocatedResources of each container; its spec is "
        "left out while the resize is Infeasible.",
        "A pod counts for its spec.",
    ),
    Fix(
        "scores-count-pod-level",
        "nodeorder (LeastAllocated, MostAllocated)",
        "A pod is scored by what its containers ask for, whatever spec.resources says.",
        "What spec.resources says counts.",
    ),
    Fix(
        "reserve-without-filters",
        "predicates with enablePredicate: false",
        "Pods with requests get no node: volumes cannot be reserved for a pod that was not looked at before.",
        "Pods are placed, and nothing but their room is looked at.",
    ),
    Fix(
        "gauges-kept-apart",
        "proportion and capacity together",
        "The plugin that comes later sets scalar gauges of the earlier one to 0 where it does not name the resource.",
        "It leaves them alone.",
    ),
    Fix(
        "dra-switch",
        "predicates",
        "predicate.DynamicResourceAllocationEnable is not read: resource claims always count.",
        "With false they do not.",
    ),
    Fix(
        "terminating-pods-keep-cards",
        "deviceshare",
        "The shares of a pod that is being deleted are given to others while it still uses them.",
        "They are free when it is gone.",
    ),
    Fix(
        "mig-slices-once",
        "deviceshare",
        "A slice of a card under MIG is given to all pods that are placed there in one cycle, to several containers of "
        "a pod, and once more when a pod has more than one of a card.",
        "It is one container's.",
    ),
    Fix(
        "npu-chips-once",
        "deviceshare (MindCluster)",
        "What a pod is given of a chip counts only from the next cycle on: pods of one cycle are given the same part.",
        "It counts immediately, and is given back with the placement.",
    ),
    Fix(
        "enqueue-counts-what-is-lent",
        "capacity with enableHierarchy, enqueue and reclaim",
        "All that is allocated counts against the limits of a queue's ancestors, root's among them: in a full cluster "
        "a job whose queue is below its due is not admitted, and reclaim passes over jobs that are not admitted.",
        "What reclaimable queues hold above what they deserve does not count for a job whose queue may take it.",
        "reported (#4679, #4817), open",
    ),
    Fix(
        "reclaim-uses-what-leaves",
        "reclaim",
        "A node without candidates left is skipped, though its pods are leaving: the second task of a gang is not "
        "promised the rest of what was freed for the first, and no pod is evicted in the end.",
        "Such a node takes tasks that do not fit into what is idle there.",
        "proposed (#5521), not merged",
    ),
    Fix(
        "gangs-evict-no-more",
        "gangpreempt, gangreclaim",
        "All pods that a job can spare in a domain are evicted together, though fewer would make room enough.",
        "They are added one by one until there is room; what a job cannot spare still goes whole.",
        "proposed (#5995 for #5984 and #5994), not merged",
    ),
    Fix(
        "conformance-only-filters",
        "victims",
        "conformance lets all pods go that are not critical, which decides its tier: capacity, proportion and others "
        "in lower tiers are not asked, and queues lose what they deserve.",
        "conformance takes critical pods out before any tier is asked, and decides no tier.",
        "reported (#5896), open",
    ),
    Fix(
        "broken-gangs-first",
        "gang (job order)",
        "A gang that lost pods and runs below its minimum ranks like a job that has not started; drf then prefers "
        "the new job, which has nothing, and the gang waits for ever.",
        "It comes before jobs that have not started.",
        "reported (#5805), open",
    ),
    Fix(
        "task-minimums-count",
        "gang",
        "Where a Job's minAvailable is below the sum of its tasks' minAvailable, the tasks' are passed over.",
        "The sum is what the job needs at least, and each task's minimum counts.",
        "reported (#1755), closed as stale",
    ),
    Fix(
        "overfull-cards-are-full",
        "deviceshare (GPUSharingEnable)",
        "What a card has left is counted without sign: a card with more in use than it has seems almost empty, "
        "and is given to every pod.",
        "It gives nothing.",
        "mended after v1.15.1 (#5470)",
    ),
    Fix(
        "hami-spread-likes-unused",
        "deviceshare (AscendHAMiVNPUEnable)",
        "With the policy spread, chips that one pod uses are preferred to unused chips.",
        "Unused chips are preferred.",
        "mended after v1.15.1 (37bd43737)",
    ),
    Fix(
        "hami-lock-key",
        "deviceshare (AscendHAMiVNPUEnable with NodeLockEnable)",
        "The node is locked under the name of the model of its chips, which HAMi's device plugin does not know, and "
        "only while the chips are chosen: the next pod does not wait until this one has them.",
        "The lock is hami.io/mutex.lock, which HAMi's device plugin takes away when the pod has its chips; it counts "
        "for five minutes at most.",
        "mended after v1.15.1 (3347c2025)",
    ),
    Fix(
        "numa-waits-for-kubelet",
        "numa-aware",
        "When a Numatopology says that as many CPUs are free as before, or more, it counts alone: CPUs of pods that "
        "the kubelet has not come to yet are given to others, and the kubelet refuses these (TopologyAffinityError).",
        "A placed pod keeps its CPUs until the Numatopology names it under podAllocations.",
        "mended after v1.15.1 (c96e76e58)",
    ),
    Fix(
        "extender-job-ready",
        "extender",
        "A job about which the extender gives no answer to jobReady is ready, and with ignorable it is not.",
        "It is ready only with ignorable.",
    ),
    Fix(
        "scaling-is-no-eviction",
        "Jobs",
        "Pods that a Job has too many of after its replicas were lowered go without a mark: their end is PodFailed and "
        "PodEvicted, whose policies restart or end the Job.",
        "They are marked as out of sync, and no policy fires.",
        "#4072",
    ),
    Fix(
        "ended-pods-are-not-evicted",
        "Jobs",
        "Who deletes a pod that has succeeded or failed (an autoscaler that removes its node, say) evicts it: the "
        "policy of PodEvicted fires.",
        "No policy fires; a Job that still runs makes the pod again.",
        "#2087",
    ),
    Fix(
        "aborted-jobs-expire",
        "Jobs",
        "ttlSecondsAfterFinished does not count for a Job that is Aborted: it stays for ever.",
        "It counts, from the moment at which the Job was Aborted; a Job that is resumed before stays.",
        "#3604",
    ),
    Fix(
        "restarts-keep-the-pod-group",
        "Jobs",
        "RestartPod, RestartTask and RestartPartition delete the PodGroup: the Job waits to be admitted again, and "
        "others may have its room.",
        "The PodGroup stays, and so does what it holds in its queue.",
        "mended after v1.15.1 (#5385)",
    ),
    Fix(
        "restarted-jobs-hear-unknown",
        "Jobs",
        "Once a Job was restarted or resumed, its policies for Unknown fire no more: news of a PodGroup count as those "
        "of version 0 of the Job.",
        "They fire each time.",
    ),
    Fix(
        "terminated-jobs-fail-flows",
        "JobFlows",
        "A JobFlow that is Running stays so for ever when one of its Jobs is Terminated.",
        "It is Failed.",
        "mended after v1.15.1 (#4442, #5672)",
    ),
    Fix(
        "flows-follow-deletions",
        "JobFlows",
        "A Job of a JobFlow that is gone is made anew when another Job of the flow changes, and only then: a flow that "
        "runs may wait for ever for a Job that was deleted, and with ttlSecondsAfterFinished a flow that has succeeded "
        "runs again.",
        "It is made anew immediately while the flow runs; a flow that has succeeded makes none.",
    ),
)

KNOWN_FIXES: Final[tuple[str, ...]] = tuple(fix.name for fix in FIXES)
BUILT_FIXES: Final[frozenset[str]] = frozenset(fix.name for fix in FIXES if fix.built)


def table() -> str:
    """Return the switches as a Markdown table."""
    head = "| switch | where | Volcano v1.15.1 | with the switch | upstream |\n|---|---|---|---|---|\n"
    return head + "".join(map(_row, FIXES))


def _row(fix: Fix) -> str:
    name = f"`{fix.name}`" + ("" if fix.built else " (not supported yet)")
    return f"| {name} | {fix.where} | {fix.volcano} | {fix.pumice} | {fix.upstream} |\n"
