# SPDX-License-Identifier: Apache-2.0
"""Every role of a system, one record each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.actors.system.roles import cluster, controllers, effects, records, scheduling

if TYPE_CHECKING:
    from pumice.actors.runtime.switchboard import Links

ROLES: Final = (
    cluster.API_SERVER,
    scheduling.CACHE,
    scheduling.SESSION_RUNNER,
    effects.BIND_WORKER,
    effects.EVICT_WORKER,
    effects.STATUS_WRITER,
    effects.PRE_BIND_WORKER,
    controllers.NODE_AGENTS,
    controllers.JOB_CONTROLLER,
    controllers.POD_GROUP_CONTROLLER,
    controllers.QUEUE_CONTROLLER,
    controllers.VOLUME_CONTROLLER,
    controllers.DISRUPTION_CONTROLLER,
    scheduling.ACTION_WORKER,
    scheduling.DRY_RUN_WORKER,
    records.CHECKPOINTER,
    records.METRICS,
    controllers.CONFIG_WATCHER,
    cluster.GATEWAY,
    controllers.POD_EVENTS,
    records.RECORDER,
    scheduling.USAGE_COLLECTOR,
    controllers.WORKLOAD_CONTROLLER,
    records.SUPERVISOR,
    cluster.ARRIVALS,
    scheduling.EXTENDER_CLIENT,
    cluster.MIRROR,
    cluster.CLUSTER_API,
)
"""A new one goes to the end: a storm's seed chooses the crash by place."""

LINKS: Final[Links] = {role.name: tuple(role.sends.values()) for role in ROLES}
"""Role -> the roles it sends to. Drawn in docs/pictures/actors.svg; the order of stopping follows from it."""

CRASHABLE: Final = tuple(name for role in ROLES for name in role.crashes)
"""Roles that may crash in a storm: all that work there except the recorder, whose end is the end of the process."""
