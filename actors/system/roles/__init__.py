"""Every role of a system, one record each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.actors.system.roles.cluster import API_SERVER, ARRIVALS, CLUSTER_API, GATEWAY, MIRROR
from pumice.actors.system.roles.controllers import (
    CONFIG_WATCHER,
    DISRUPTION_CONTROLLER,
    JOB_CONTROLLER,
    NODE_AGENTS,
    POD_EVENTS,
    POD_GROUP_CONTROLLER,
    QUEUE_CONTROLLER,
    VOLUME_CONTROLLER,
    WORKLOAD_CONTROLLER,
)
from pumice.actors.system.roles.effects import BIND_WORKER, EVICT_WORKER, PRE_BIND_WORKER, STATUS_WRITER
from pumice.actors.system.roles.records import CHECKPOINTER, METRICS, RECORDER, SUPERVISOR
from pumice.actors.system.roles.scheduling import (
    ACTION_WORKER,
    CACHE,
    DRY_RUN_WORKER,
    EXTENDER_CLIENT,
    SESSION_RUNNER,
    USAGE_COLLECTOR,
)

if TYPE_CHECKING:
    from pumice.actors.runtime.switchboard import Links

ROLES: Final = (
    API_SERVER, CACHE, SESSION_RUNNER, BIND_WORKER, EVICT_WORKER, STATUS_WRITER, PRE_BIND_WORKER, NODE_AGENTS,
    JOB_CONTROLLER, POD_GROUP_CONTROLLER, QUEUE_CONTROLLER, VOLUME_CONTROLLER, DISRUPTION_CONTROLLER, ACTION_WORKER,
    DRY_RUN_WORKER, CHECKPOINTER, METRICS, CONFIG_WATCHER, GATEWAY, POD_EVENTS, RECORDER, USAGE_COLLECTOR,
    WORKLOAD_CONTROLLER, SUPERVISOR, ARRIVALS, EXTENDER_CLIENT, MIRROR, CLUSTER_API,
)  # fmt: skip
"""A new one goes to the end: a storm's seed says by place who crashes."""

LINKS: Final[Links] = {role.name: tuple(role.sends.values()) for role in ROLES}
"""Role -> the roles it sends to. Drawn in the README; who stops before whom follows from it."""

CRASHABLE: Final = tuple(name for role in ROLES for name in role.crashes)
"""Who may crash in a storm: everybody who works there but the recorder, whose end is the end of the process."""
