# SPDX-License-Identifier: Apache-2.0
"""Roles that decide: the scheduler's view, cycles, actions, dry runs, and outside questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.actors.outside.client import ExtenderClient
from pumice.actors.scheduling.action_worker import ActionWorker
from pumice.actors.scheduling.cache import Cache
from pumice.actors.scheduling.commit import Commit
from pumice.actors.scheduling.cycle_memory import RunnerSettings
from pumice.actors.scheduling.session_runner import SessionRunner
from pumice.actors.scheduling.usage_collector import UsageCollector, sources_of
from pumice.actors.system import ports
from pumice.actors.system.settings import elsewhere, numbered, scheduling, viewing
from pumice.actors.system.wiring import Role

if TYPE_CHECKING:
    from pumice.actors.dry_run.worker import DryRunWorker
    from pumice.actors.system.wiring import Wiring


def _cache(wiring: Wiring, name: str) -> Cache:
    mailboxes = wiring.ports(name)
    return Cache(
        *wiring.own(name),
        api=mailboxes["api"],
        # What became of a pod stands in the real cluster, if there is one: the api here only follows that.
        truth=mailboxes["cluster"] or mailboxes["api"],
        view=wiring.decider.new_view(),
        snapshots=wiring.snapshots,
        changed=wiring.changed,
        awaited=wiring.awaited,
        check_always=wiring.settings.check_view,
    )


def _session_runner(wiring: Wiring, name: str) -> SessionRunner:
    settings, mailboxes = wiring.settings, wiring.ports(name)
    actions, metrics = mailboxes.pop("actions"), mailboxes.pop("metrics")
    return SessionRunner(
        *wiring.own(name),
        cache=mailboxes["cache"],
        metrics=metrics,
        outside=mailboxes.pop("outside"),
        # `instances` of ACTION_WORKER names the workers by the actions, in this order.
        actions=dict(zip(wiring.decider.actions, actions, strict=True)),
        # What is left after the pops above are exactly the ports of a commit.
        commit=Commit(**mailboxes),
        decider=wiring.decider,
        snapshots=wiring.snapshots,
        sessions=wiring.sessions,
        memory=wiring.memory,
        settings=RunnerSettings(
            wiring.source,
            settings.schedule_period_s,
            seed=settings.seed,
            serves_others=settings.default_scheduler,
            stopwatch=settings.stopwatch,
            permission=wiring.permission if elsewhere(settings) else None,
        ),
    )


def _action_worker(wiring: Wiring, name: str) -> ActionWorker:
    mailboxes = wiring.ports(name)
    return ActionWorker(
        *wiring.own(name),
        outside=mailboxes.pop("outside"),
        sessions=wiring.sessions,
        decider=wiring.decider,
        dry_runs=wiring.crew.driver(**mailboxes),
        stopwatch=wiring.settings.stopwatch,
    )


def _dry_run_worker(wiring: Wiring, name: str) -> DryRunWorker:
    return wiring.crew.worker(*wiring.own(name))


def _usage_collector(wiring: Wiring, name: str) -> UsageCollector:
    return UsageCollector(*wiring.own(name), **wiring.ports(name), metrics=dict(wiring.source.loaded.config.metrics))


def _extender_client(wiring: Wiring, name: str) -> ExtenderClient:
    return ExtenderClient(*wiring.own(name), **wiring.ports(name), post=wiring.settings.post)


CACHE: Final = Role(
    name="cache",
    port=ports.CachePort,
    sends={"api": "api-server", "cluster": "cluster-api"},
    build=_cache,
    wanted=viewing,
    crashes=("cache",),
    box="cache",
)

SESSION_RUNNER: Final = Role(
    name="session-runner",
    port=ports.RunnerPort,
    sends={
        "actions": "action-worker",
        "binders": "bind-worker",
        "cache": "cache",
        "evictors": "evict-worker",
        "metrics": "metrics",
        "outside": "extender-client",
        "pre_binder": "pre-bind-worker",
        "recorder": "recorder",
        "status": "status-writer",
    },
    build=_session_runner,
    wanted=scheduling,
    crashes=("session-runner",),
    box="session runner",
)

ACTION_WORKER: Final = Role(
    name="action-worker",
    port=ports.ActionPort,
    sends={"outside": "extender-client", "workers": "dry-run-worker", "supervisor": "supervisor"},
    build=_action_worker,
    wanted=scheduling,
    instances=lambda settings, config, actions: actions,
    # Written out, since no configuration is known here; a storm's seed chooses by the place in this row.
    crashes=tuple(f"action-worker:{each}" for each in ("enqueue", "allocate", "preempt", "reclaim", "backfill")),
    box="action workers",
)

DRY_RUN_WORKER: Final = Role(
    name="dry-run-worker",
    port=ports.DryRunPort,
    build=_dry_run_worker,
    wanted=scheduling,
    instances=lambda settings, config, actions: numbered(settings.dry_run_workers, config.pumice.dry_run_workers),
    crashes=("dry-run-worker:0",),
    box="dry-run workers × N",
)

EXTENDER_CLIENT: Final = Role(
    name="extender-client",
    port=ports.OutsidePort,
    sends={"api": "api-server"},
    build=_extender_client,
    wanted=scheduling,
    crashes=("extender-client",),
    box="extender client",
)

USAGE_COLLECTOR: Final = Role(
    name="usage-collector",
    port=ports.PokePort,
    sends={"api": "api-server"},
    build=_usage_collector,
    wanted=scheduling,
    instances=lambda settings, config, actions: sources_of(config.metrics),
    box="usage collector",
)
