# SPDX-License-Identifier: Apache-2.0
"""The table of references: objects that actors of one process share, beside the table of messages that they send.

An actor in no row except those of ALL_ROLES could live in another process, with a board, a clock and a table of decoded
objects there. A test walks through all that the actors of a built system can reach, and that others read while they
run, and refuses anything else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pumice.actors.api_server.faults.strikes import Faults
from pumice.actors.runtime.activity import Activity
from pumice.actors.runtime.actor import AdmissionHook
from pumice.actors.runtime.clock import Clock
from pumice.actors.runtime.level_signal import LevelSignal
from pumice.actors.runtime.longest import Longest
from pumice.actors.scheduling.config_source import ConfigSource
from pumice.actors.scheduling.decider import Decider
from pumice.actors.system.roles import ROLES
from pumice.cluster.api.store import Store
from pumice.cluster.faults.decisions import FaultsInForce
from pumice.cluster.handles import HandleTable
from pumice.core.actions.dry_runs import DryRun
from pumice.core.session.session import Session
from pumice.core.state.snapshot import Snapshot
from pumice.storage.journal import Journal
from pumice.storage.shared_objects import SharedObjects

if TYPE_CHECKING:
    from pumice.actors.system.wiring import Wiring

ALL_ROLES: Final = tuple(role.name for role in ROLES if role.build is not None)
HOSTS: Final = tuple(role.name for role in ROLES if role.hosts)
"""Those that are shells around machines."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A reference. `what`: the title of its box in docs/pictures/actors.svg. `kind`: its type. `of`: the object of a
    system.

    `roles`: its holders. `gives`: what they get from each other through it, and why no holder is surprised by a change.
    `outside`: files and folders of the only other holders while actors run, which are not actors.
    """

    what: str
    kind: Any
    of: Callable[[Wiring], object]
    roles: tuple[str, ...]
    gives: str
    holds: type | None = None
    moves: bool = False
    outside: tuple[str, ...] = ()


REFERENCES: Final = (
    Reference(
        what="activity board",
        kind=Activity,
        of=lambda wiring: wiring.context.activity,
        roles=ALL_ROLES,
        gives="counts of what is left to do: each writes its own, and only who waits for idleness reads",
    ),
    Reference(
        what="clock",
        kind=Clock,
        of=lambda wiring: wiring.context.clock,
        roles=ALL_ROLES,
        gives="the time, which no actor sets",
    ),
    Reference(
        what="decoded objects",
        kind=SharedObjects,
        of=lambda wiring: wiring.context.objects,
        # By name: an actor that is not here decodes by itself, and a test finds any other holder.
        roles=("api-server", "cache", "extender-client", "gateway", "pre-bind-worker", "status-writer", *HOSTS),
        gives="what the bytes of a message say, decoded once: no reader may change it",
        outside=("actors/metrics/summary.py", "pumice/proof/storm"),
    ),
    Reference(
        what="admission hook",
        kind=AdmissionHook,
        of=lambda wiring: wiring.context.admission_hook,
        roles=HOSTS,
        gives="the way through admission webhooks: the gateway says when it begins who is asked, these ask",
    ),
    Reference(
        what="longest step",
        kind=Longest,
        of=lambda wiring: wiring.context.longest,
        roles=("api-server", "gateway"),
        gives="nothing: each notes whose request held the event loop longest, and the supervisor says so",
    ),
    Reference(
        what="truth",
        kind=Store,
        of=lambda wiring: wiring.store,
        roles=("api-server",),
        gives="nothing to other actors: a storm's driver and auditors read it between two steps, the system when a "
        "cluster elsewhere is here and nothing is decided yet, and they write nothing; a test's cluster reads its "
        "kinds and tables",
        outside=("actors/system/system.py", "pumice/proof/storm", "pumice/testing"),
    ),
    Reference(
        what="faults",
        kind=Faults,
        of=lambda wiring: wiring.settings.faults,
        roles=("api-server", "extender-client"),
        gives="nothing: each asks what strikes its own occasions, and no answer depends on who else asked; a storm's "
        "journal does so too, and its driver stops them and reads what struck",
        outside=("pumice/proof/storm",),
    ),
    Reference(
        what="faults of clients",
        kind=FaultsInForce,
        of=lambda wiring: wiring.client_faults,
        roles=("gateway", "node-agents"),
        gives="rules, which the gateway changes, and what has struck nodes, which it journals; at its end a run reads "
        "what struck, and a test's cluster changes its rules between two steps",
        outside=("pumice/runtime/main_job.py", "pumice/testing"),
    ),
    Reference(
        what="listings",
        kind=HandleTable,
        of=lambda wiring: wiring.store.listings,
        roles=("api-server", "gateway"),
        gives="tuples of bytes by number, as long as they were when they were laid there",
        holds=tuple,
        outside=("actors/metrics/summary.py", "actors/system/system.py"),
    ),
    Reference(
        what="snapshots",
        kind=HandleTable,
        of=lambda wiring: wiring.snapshots,
        roles=("cache", "session-runner"),
        gives="values of the view by number; who takes one is the only one that has it",
        holds=Snapshot,
    ),
    Reference(
        what="view version",
        kind=LevelSignal,
        of=lambda wiring: wiring.changed,
        roles=("cache", "session-runner"),
        gives="a number that only rises, raised by the cache",
    ),
    Reference(
        what="permission to schedule",
        kind=LevelSignal,
        of=lambda wiring: wiring.permission,
        roles=("cluster-api", "session-runner"),
        gives="a number that only rises, raised by who holds the Lease of a real cluster, and by the system",
        outside=("actors/system/system.py",),
    ),
    Reference(
        what="configuration",
        kind=ConfigSource,
        of=lambda wiring: wiring.source,
        roles=("job-controller", "mirror", "session-runner", "workload-controller"),
        gives="the one in force, which controllers read: of mirror and session-runner there is one, which takes new "
        "ones over; the system does so before anything is decided with what the cluster holds, and a storm's auditors "
        "read it between two steps",
        outside=("actors/system/system.py", "pumice/proof/storm"),
    ),
    Reference(
        what="sessions",
        kind=HandleTable,
        of=lambda wiring: wiring.sessions,
        roles=("action-worker", "session-runner"),
        gives="sessions by number: only the holder of the baton touches one",
        holds=Session,
        moves=True,
    ),
    Reference(
        what="core",
        kind=Decider,
        of=lambda wiring: wiring.decider,
        roles=("action-worker", "session-runner"),
        gives="the steps of a cycle, one at a time; a storm hands in its own",
        outside=("pumice/runtime/main_job.py", "pumice/proof/storm"),
    ),
    Reference(
        what="dry runs",
        kind=HandleTable,
        of=lambda wiring: wiring.crew.handles,
        roles=("action-worker", "dry-run-worker"),
        gives="dry runs by number, which only read a session that waits meanwhile",
        holds=DryRun,
        moves=True,
    ),
    Reference(
        what="journal",
        kind=Journal,
        of=lambda wiring: wiring.journal,
        roles=("checkpointer", "recorder"),
        gives="records, written by the recorder alone, and checkpoints, written by the checkpointer; the caller "
        "of a system opens and closes the journal",
        outside=("pumice",),
    ),
    Reference(
        what="newest record",
        kind=LevelSignal,
        of=lambda wiring: wiring.written,
        roles=("checkpointer", "recorder"),
        gives="a number that only rises, raised by the recorder",
    ),
)  # fmt: skip
