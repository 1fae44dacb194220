# SPDX-License-Identifier: Apache-2.0
"""`pumice run --kubeconfig`: this process as the scheduler of a real cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import asdict

from pumice.actors.real_clusters.remote.access import in_cluster, proxy_of
from pumice.actors.real_clusters.scheduled.settings import ClusterSettings, ElectionSettings
from pumice.actors.system.settings import SystemSettings, scheduling_there
from pumice.cli.exits import Exit, UsageError
from pumice.cli.inputs import load_config
from pumice.cli.tables.summary import show_summary
from pumice.cli.terminal import Terminal
from pumice.config.durations import parse_duration
from pumice.config.errors import ConflictError
from pumice.config.kubeconfig import ClusterAccess, read_kubeconfig
from pumice.config.settings import CHARTS, ProcessSettings, config_map_of
from pumice.plugins.loader import changed_plugins, identities
from pumice.runtime.journals import retention_of
from pumice.runtime.mirroring import MirrorPlan, mirror_plan
from pumice.runtime.serving import gateway_settings
from pumice.runtime.summary import RunResult
from pumice.runtime.waiting import parse_until

IN_CLUSTER: Final = "in-cluster"
PLAYED: Final = (
    "manifests", "time", "start", "default_duration", "speedup", "faults", "profiles", "no_scheduler",
    "no_default_scheduler", "no_controllers", "no_agents",
)  # fmt: skip
"""Options about a cluster that is played here."""
WARNING: Final = (
    "Pumice is to be the scheduler of a real cluster: with the Lease it binds and evicts pods there, and writes the"
    " statuses of PodGroups and queues. No other scheduler may serve schedulerName volcano beside it."
)


def schedule_there(settings: ProcessSettings, given: Mapping[str, object], terminal: Terminal) -> Exit:
    """Run until a signal. Raises ConfigError, UsageError, or what a vital actor died of."""
    for name in PLAYED:
        if given.get(name) is not None:
            flag = "-f" if name == "manifests" else "--" + name.replace("_", "-")
            raise UsageError("there is nothing to be played beside a real cluster (--kubeconfig)", path=flag)
    access = _access(settings)
    proxy_of(access)  # what is wrong with it is said before anything begins
    plan = _plan(settings, access, terminal)
    terminal.warn(f"{access.server}: {WARNING}")
    if plan.settings.gateway is not None:
        terminal.say(f"serving what is seen of it on {plan.settings.gateway.url}, to be read only")
    outcome = mirror_plan(plan)
    found = RunResult(**asdict(outcome.summary), db=str(outcome.db))
    terminal.emit(found, partial(show_summary, found))
    outcome.demand_seen()
    return Exit.INTERRUPTED if outcome.interrupted else Exit.DONE


def _access(settings: ProcessSettings) -> ClusterAccess:
    named, context = settings.kubeconfig or "", settings.context or ""
    if named != IN_CLUSTER:
        return read_kubeconfig(Path(named), context)
    refuse_context(context)
    return in_cluster()


def refuse_context(context: str | None) -> None:
    """Refuse a named context without a kubeconfig. Raises UsageError."""
    if context:
        raise UsageError("a context is one of a kubeconfig: name that with --kubeconfig", path="--context")


def _plan(settings: ProcessSettings, access: ClusterAccess, terminal: Terminal) -> MirrorPlan:
    until = parse_until(settings.until)
    if until.kind == "idle":
        raise UsageError("a real cluster is never known to be idle: name a time, such as 30s", path="--until")
    config_map = config_map_of(settings.config)
    path = Path(settings.config) if settings.config and config_map is None else None
    plugins = Path(settings.plugins_dir) if settings.plugins_dir else None
    load_config(path, settings.lenient, terminal, plugins=plugins)
    election = election_of(settings)
    gateway = gateway_settings(settings)  # after all that may be refused: it listens from here on
    decided = SystemSettings(
        config_path=path,
        lenient=settings.lenient,
        seed=settings.seed,
        check_view=settings.check_cycles,
        retention=retention_of(settings),
        user_plugins=identities(),
        changed_plugins=changed_plugins,
        gateway=None if gateway is None else replace(gateway, reads_only=True),
    )
    cluster = ClusterSettings(
        access,
        config_map=config_map or CHARTS,
        qps=settings.kube_api_qps,
        burst=settings.kube_api_burst,
        election=election,
    )
    return MirrorPlan(scheduling_there(cluster, decided), Path(settings.db), until, settings.backend)


def election_of(settings: ProcessSettings) -> ElectionSettings | None:
    """Return the election; None without one. ConflictError for periods that client-go would refuse, too."""
    if not settings.leader_elect:
        return None
    found = ElectionSettings(
        namespace=settings.leader_elect_resource_namespace,
        name=settings.leader_elect_resource_name,
        lease_duration_s=parse_duration(settings.leader_elect_lease_duration),
        renew_deadline_s=parse_duration(settings.leader_elect_renew_deadline),
        retry_period_s=parse_duration(settings.leader_elect_retry_period),
    )
    if found.lease_duration_s <= found.renew_deadline_s:
        raise ConflictError("expected it to be longer than the renew deadline", path="--leader-elect-lease-duration")
    if found.renew_deadline_s <= JITTERED * found.retry_period_s or found.retry_period_s <= 0:
        problem = f"expected a period above 0, and the renew deadline to be longer than {JITTERED} times as much"
        raise ConflictError(problem, path="--leader-elect-retry-period")
    return found


JITTERED: Final = 1.2
"""Source: client-go's `leaderelection.NewLeaderElector`."""
