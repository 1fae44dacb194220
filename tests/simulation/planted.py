# pyright: reportPrivateUsage=false
"""Realistic defects, each planted by a few lines, and the storm that is to find it."""

from __future__ import annotations

from dataclasses import dataclass

from pumice.actors.api_server.faults.faulty_server import FaultyApiServer
from pumice.actors.api_server.server import ApiServer
from pumice.actors.effects import evict_worker, pre_bind_worker
from pumice.actors.effects.effect_worker import Outcomes
from pumice.actors.runtime.mailbox import Mailbox
from pumice.actors.runtime.watcher import Watcher
from pumice.actors.scheduling import resync
from pumice.actors.scheduling.cache import Cache
from pumice.actors.scheduling.commit import Commit
from pumice.cluster.api.object_tables import ObjectTables
from pumice.cluster.api.verbs.placement import Eviction, Placement
from pumice.cluster.controllers import disruptions as disruption_machine
from pumice.cluster.controllers.devices import DeviceMachine
from pumice.cluster.controllers.groups import PodGroupMachine
from pumice.cluster.controllers.jobs import status
from pumice.cluster.controllers.jobs.rule import VolcanoJobRule
from pumice.cluster.kubelets.cell_reports import CellReportsMachine
from pumice.cluster.kubelets.device_plugin import DevicePluginMachine
from pumice.cluster.kubelets.machine import NodeAgentsMachine
from pumice.core.plugins.extender import Extender
from pumice.core.plugins.gang import Gang
from pumice.core.plugins.pdb import Pdb
from pumice.core.plugins.predicates.dynamic_resources import DynamicResources
from pumice.core.plugins.predicates.plugin import PodCount
from pumice.core.plugins.proportion import Proportion
from pumice.core.session.closing import close, queue_status
from pumice.core.session.session import Session
from pumice.core.state.nodes import NodeTable
from pumice.core.state.snapshot import AssumedPods, Snapshot
from pumice.core.state.view import View
from pumice.proof.storm.script.workload import Size
from tests.simulation import defects
from tests.simulation.planted_cards import CARD_BUGS
from tests.simulation.planting import Plant, always, asks_nothing, nothing, replace, together, wrap

SMALL = Size(5, 40)
LARGE = Size(20, 200)
TURNS = "storm+turns"


@dataclass(frozen=True)
class Bug:
    """`plant` puts it in; storms of `profile` find it, by one of the named invariants when it is certain which.

    `size`: of the storms; `seeds`: how many may be needed.
    """

    plant: Plant
    profile: str = "storm"
    invariants: tuple[str, ...] = ()
    size: Size = SMALL
    seeds: int = 100


VIEW_BROKEN = ("actors-live",)
"""The cache looks through its view after every cycle, and dies of one that contradicts itself."""

BUGS: dict[str, Bug] = {
    "an assumed pod is forgotten immediately": Bug(replace(View, "assume", always), invariants=("decided-once",)),
    "a failed bind is not undone in the view": Bug(replace(View, "forget", nothing), invariants=("books-agree",)),
    "a failed bind leaves its room taken": Bug(wrap(View, "forget", defects.keeps_room), invariants=VIEW_BROKEN),
    "a failed bind is never looked at again": Bug(
        replace(Cache, "_failed", defects.forgets_resync), invariants=("books-agree",)
    ),
    "a new cache does not count binds in flight": Bug(
        replace(Cache, "_hold", nothing), "binds+crashes", invariants=("decided-once",)
    ),
    "a bind without an answer counts as done": Bug(
        wrap(Cache, "handle", defects.believes_timeouts), "binds+nodes", invariants=("books-agree",)
    ),
    "scalar resources are not taken off a node": Bug(
        wrap(NodeTable, "place", defects.without_scalars), invariants=VIEW_BROKEN
    ),
    "what is not on disk yet is acknowledged": Bug(
        replace(FaultyApiServer, "_record", defects.answers_first), invariants=("nothing-lost",)
    ),
    "only the first change of a request is written down": Bug(
        wrap(ApiServer, "_entries", defects.loses_the_second), invariants=("nothing-lost",)
    ),
    "deleted pods come back with a restart": Bug(wrap(ObjectTables, "restore", defects.keeps_the_deleted)),
    "a watcher that fell behind skips what it missed": Bug(wrap(Watcher, "_read", defects.skips_when_behind)),
    "a new list does not tell what vanished": Bug(
        wrap(Watcher, "_relist", defects.without_vanished), "watches+pods", ("books-agree",)
    ),
    "the cache sees everything late": Bug(wrap(Watcher, "_read", defects.hears_late), "calm", ("books-agree",)),
    "one failed bind loses the outcomes of others": Bug(
        replace(Outcomes, "report", defects.reports_first_only), invariants=("decided-once", "outcomes")
    ),
    "a device is promised twice": Bug(
        together(  # the pre-bind worker gives it to the first one alone
            wrap(DynamicResources, "choose", defects.chooses_from_all), replace(pre_bind_worker, "has_device", nothing)
        ),
        "claims",
        invariants=("within-allocatable",),
    ),
    "a pod is bound before its volumes": Bug(
        replace(pre_bind_worker, "is_ready", always), "claims", invariants=("claims-first",)
    ),
    "devices do not come back": Bug(
        replace(DeviceMachine, "step", asks_nothing), "claims+pods", invariants=("claims-come-back",)
    ),
    "nodes take more pods than they may have": Bug(
        together(  # backfill asks once more before it binds, as Volcano's cache does
            replace(PodCount, "prepare", nothing), replace(Session, "_shortage", nothing)
        ),
        "storm+nodes",
        invariants=("within-allocatable",),
    ),
    "a pod that comes alone gets no group": Bug(
        replace(PodGroupMachine, "step", asks_nothing), invariants=("reasons",)
    ),
    "gangs are ready with one pod": Bug(replace(Gang, "job_ready", always), invariants=("whole-gangs",)),
    "capability is not asked": Bug(replace(Proportion, "allocatable", always), invariants=("within-capability",)),
    "an eviction asks no budget": Bug(replace(Eviction, "_ask_budget", nothing), "victims", ("within-budget",)),
    "a budget is not told of a granted eviction": Bug(
        replace(Eviction, "_spend", nothing), "victims", ("within-budget",)
    ),
    "budgets count pods that are not ready": Bug(
        replace(disruption_machine, "is_ready", always), "victims", ("budgets-counted", "within-budget")
    ),
    "victims are named whatever budgets leave": Bug(
        replace(Pdb, "within_budget", defects.everybody), "victims", ("spares-budgets",)
    ),
    "victims are named whatever gangs need": Bug(
        replace(Gang, "evictable", defects.permits_everybody),
        "victims",
        ("whole-gangs",),
    ),
    "victims leave a gang one short": Bug(
        replace(Gang, "evictable", defects.one_too_many), "victims", ("whole-gangs",)
    ),
    "a group says Running while pods of it are pending": Bug(
        replace(close, "AFTER_FINDING", defects.running_with_one_pod()), invariants=("group-status",)
    ),
    "what queues hold is not added to what is above them": Bug(
        replace(queue_status, "_ancestors", asks_nothing), invariants=("queue-sums",)
    ),
    "the journal does not say what became of evictions": Bug(
        replace(Outcomes, "report", defects.leaves_evictions_out), "evictions", ("evictions-told-once",)
    ),
    "an eviction that is refused counts as done": Bug(
        wrap(evict_worker, "_outcome", defects.takes_refusals_for_done), "evictions", ("evictions-told-once",)
    ),
    "pods that are gone count for their Job": Bug(
        replace(VolcanoJobRule, "_pod_gone", nothing), "storm+pods", ("job-counts",)
    ),
    "a Job's counts are added to those before": Bug(
        wrap(status, "tallied", defects.adds_up), invariants=("job-counts",)
    ),
    "a cycle is written down after its effects": Bug(
        wrap(Commit, "record", defects.writes_last), TURNS, ("decided", "nothing-lost"), LARGE
    ),
    "pods that run have no timer after the agents' restart": Bug(
        wrap(NodeAgentsMachine, "_pod", defects.forgets_who_runs), invariants=("pods-end",)
    ),
    "a message is lost where a mailbox is full": Bug(
        wrap(Mailbox, "_wait_for_room", defects.drops_when_full), TURNS, size=LARGE
    ),
    "a failed bind leaves its claims promised": Bug(
        wrap(AssumedPods, "drop", defects.keeps_promises), "claims", invariants=VIEW_BROKEN
    ),
    "a bind takes any pod of the name": Bug(
        wrap(Placement, "bind", defects.binds_any_namesake), TURNS, ("decided",), LARGE
    ),
    "looking again does not wait for the watch": Bug(
        wrap(Cache, "_look_again", defects.looks_without_waiting), TURNS, ("looks-again",), LARGE
    ),
    "a failed bind waits as long as can be": Bug(
        replace(resync, "delay_s", defects.longest_delay_first), invariants=("looks-again",)
    ),
    "cards that are promised to a pod on its way are given to another": Bug(
        replace(Snapshot, "annotations_of", defects.as_the_api_has_it), "cards", invariants=("within-cards",)
    ),
    "cards have as much memory as anybody asks for": Bug(defects.has_any_memory, "cards", invariants=("within-cards",)),
    "cards are never handed out": Bug(
        replace(DevicePluginMachine, "_hand_out", asks_nothing), "cards", invariants=("cards-handed-out",)
    ),
    "CPUs of a pod that has ended stay taken": Bug(
        replace(CellReportsMachine, "pod_ended", nothing), "cards", invariants=("cells-come-back",)
    ),
    "an extender that does not answer says yes": Bug(
        wrap(Extender, "__init__", defects.ignores_silence), "outside", invariants=("extender-heeded",)
    ),
    "a second try takes its room twice": Bug(
        wrap(View, "assume", defects.counts_retries_twice), invariants=VIEW_BROKEN
    ),
    **{name: Bug(*each) for name, each in CARD_BUGS.items()},
}
