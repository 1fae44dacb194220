# SPDX-License-Identifier: Apache-2.0
"""Settings of a system. The values in Volcano's file under `configurations: [{name: pumice, …}]` are the defaults
here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pumice.actors.api_server.faults.strikes import Faults
from pumice.actors.gateway.settings import GatewaySettings
from pumice.actors.outside.over_http import Post, over_http
from pumice.actors.real_clusters.mirror.settings import MirrorSettings
from pumice.actors.real_clusters.scheduled.settings import ClusterSettings
from pumice.actors.runtime.clock import Alarm
from pumice.actors.scheduling.config_source import ConfigSource
from pumice.cluster.controllers.events import KEPT_S
from pumice.cluster.controllers.unserved import SERVED
from pumice.cluster.kubelets.pod_runs import DEFAULT_DURATION_S
from pumice.config.pumice_arguments import PumiceArguments
from pumice.config.settings import CHARTS, ConfigMapName
from pumice.storage.retention import Retention


@dataclass(frozen=True)
class SystemSettings:
    """Settings of a system. None stands for the value in the scheduler configuration, or its default.

    `config_text` is used without `config_path`; "" means Volcano's default configuration; what `config_map`
    says goes before it. `check_view`
    verifies, before every snapshot, what has changed in the scheduler's view since the one before, and that the columns
    kept from the last session equal copies. `report` has each
    cycle compute all that a reader may want.
    `gc_thresholds` are Python's while the system runs (None: left alone); the stock ones cost a third of the speed.
    `switch_interval_s`: after so long a busy thread lets another one have the interpreter (None: left alone). The
    journal's thread asks for it several times an append, and all actors wait for the journal; Python's own is 5 ms.
    `alarm` makes a timer; `inline_delivery`: see `pumice.actors.runtime.actor.Context`, never with faults.
    `dry_run_deadline_s`: how long a worker may take over a chunk; `dry_run_chunk_rows`: no chunk is smaller, unless it
    is the last of its wave. No result depends on either.
    `journal_look_s`: seconds between two looks whether the journal is still there (0: never).
    `checkpoint_every`: records between two checkpoints (0: none); `retention` is what is kept of the journal.
    `event_ttl_s`: how long Event objects are kept (kube-apiserver's --event-ttl).
    `user_plugins`: plugins of users, and what tells one version of them from another; `changed_plugins`: which of them
    have changed since they were loaded.
    `post` asks extenders.
    `uid_seed`: instead of `seed` for uids and generated names, where others of that seed are there already.
    `news_delay_s`: with faults, watchers see changes up to so much later.
    `default_duration_s`: how long a pod runs that does not say (0: for ever).
    `gateway` has the api served over HTTP; `budgets` keeps the statuses of PodDisruptionBudgets up.
    Without `scheduler` nothing is scheduled here, without `default_scheduler` no pod of Kubernetes' own scheduler,
    without `controllers` jobs, pod groups and queues are left to others; without `agents` the nodes are.
    `arrivals`: objects may be announced that come later. `mirror`: what is here is another cluster's, whose nodes
    and volumes are not simulated here; to be without a scheduler and controllers, too (`mirrored`). `cluster`:
    likewise, and it is scheduled from here (`scheduling_there`).
    """

    config_text: str = ""
    config_path: Path | None = None
    config_map: ConfigMapName | None = None
    lenient: bool = False
    seed: int = 0
    uid_seed: int | None = None
    schedule_period_s: float | None = None
    bind_workers: int | None = None
    evict_workers: int | None = None
    dry_run_workers: int | None = None
    dry_run_deadline_s: float = 5.0
    dry_run_chunk_rows: int = 128
    answer_timeout_s: float = 30.0
    default_duration_s: float = DEFAULT_DURATION_S
    mailbox_capacity: int = 256
    check_view: bool = False
    report: bool = False
    default_queues: bool = True
    gc_thresholds: tuple[int, int, int] | None = (50_000, 20, 100)
    switch_interval_s: float | None = 0.0005
    stopwatch: Callable[[], float] = time.perf_counter
    alarm: Callable[[], Alarm] = Alarm
    inline_delivery: bool = False
    faults: Faults | None = None
    post: Post = over_http
    news_delay_s: float = 0.0
    journal_look_s: float = 0.0
    checkpoint_every: int | None = None
    retention: Retention = field(default_factory=Retention)
    event_ttl_s: float = KEPT_S
    user_plugins: Mapping[str, str] = field(default_factory=dict[str, str])
    changed_plugins: Callable[[], Collection[str]] = tuple
    gateway: GatewaySettings | None = None
    budgets: bool = True
    scheduler: bool = True
    default_scheduler: bool = True
    controllers: bool = True
    agents: bool = True
    arrivals: bool = False
    mirror: MirrorSettings | None = None
    cluster: ClusterSettings | None = None

    @property
    def followed(self) -> ConfigMapName | None:
        """Return the ConfigMap of the cluster that may hold the scheduler's configuration. A system that serves clients
        and got no configuration looks where Volcano's chart puts it; a mirror uses its cluster's own.
        """
        if self.mirror is not None:
            # A given file or text is what the user wants; a ConfigMap is followed only without one.
            return None if self.config_path or self.config_text else self.mirror.config_map
        if self.cluster is not None:
            return None if self.config_path or self.config_text else self.cluster.config_map
        if not self.scheduler or self.config_map is not None:
            return self.config_map if self.scheduler else None
        return CHARTS if self.gateway and not self.config_path and not self.config_text else None

    @property
    def served(self) -> tuple[str, ...]:
        """Return the schedulers whose pods get bound: those that run here, and those of a remote cluster."""
        if self.mirror is not None or self.cluster is not None:
            return SERVED
        here = (self.scheduler, self.scheduler and self.default_scheduler)
        return tuple(name for name, runs in zip(SERVED, here, strict=True) if runs)

    def records_between(self, pumice: PumiceArguments) -> int:
        """Return the number of journal records between two checkpoints."""
        return pumice.checkpoint_every if self.checkpoint_every is None else self.checkpoint_every


def mirrored(mirror: MirrorSettings, settings: SystemSettings) -> SystemSettings:
    """Return the settings of a system that holds another cluster: all decisions are made there. A real configuration
    may contain unknown names.
    """
    return replace(
        settings, mirror=mirror, scheduler=False, controllers=False, budgets=False, default_queues=False, lenient=True
    )


def scheduling_there(cluster: ClusterSettings, settings: SystemSettings) -> SystemSettings:
    """Return the settings of a system that is the scheduler of another cluster, and of nothing else there."""
    return replace(
        settings, cluster=cluster, default_scheduler=False, controllers=False, budgets=False, default_queues=False
    )


def scheduling(settings: SystemSettings) -> bool:
    """Return whether the system has a scheduler."""
    return settings.scheduler


def playing(settings: SystemSettings) -> bool:
    """Return whether the cluster is simulated here: its nodes, its volumes, the workloads of Kubernetes."""
    return settings.mirror is None and settings.cluster is None


def running_nodes(settings: SystemSettings) -> bool:
    """Return whether pods are run here, on nodes that no other agent keeps."""
    return playing(settings) and settings.agents


def elsewhere(settings: SystemSettings) -> bool:
    """Return whether decisions are carried out on another cluster."""
    return settings.cluster is not None


def viewing(settings: SystemSettings) -> bool:
    """Return whether the system has a scheduler's view of the cluster, for a scheduler or for the readers of a
    mirror.
    """
    return settings.scheduler or (mirroring(settings) and serving(settings))


def mirroring(settings: SystemSettings) -> bool:
    """Return whether the cluster is a mirror of another one."""
    return settings.mirror is not None


def controlling(settings: SystemSettings) -> bool:
    """Return whether the controllers of jobs, pod groups and queues run here."""
    return settings.controllers


def has_arrivals(settings: SystemSettings) -> bool:
    """Return whether any objects arrive later."""
    return settings.arrivals


def serving(settings: SystemSettings) -> bool:
    """Return whether the api is served over HTTP."""
    return settings.gateway is not None


def numbered(wished: int | None, configured: int) -> list[str]:
    """Return the names of so many workers; `wished` replaces the configured number."""
    return [str(number) for number in range(configured if wished is None else wished)]


def config_source(settings: SystemSettings) -> ConfigSource:
    """Return the scheduler's configuration. Raises ConfigError."""
    return ConfigSource(
        settings.config_text,
        path=settings.config_path,
        offers=settings.followed is not None,
        lenient=settings.lenient,
        user_plugins=settings.user_plugins,
        changed_plugins=settings.changed_plugins,
        # Pods of another cluster end by themselves, so no duration of ours is put on record.
        default_duration_s=settings.default_duration_s if playing(settings) else None,
    )
