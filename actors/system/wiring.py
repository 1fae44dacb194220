# SPDX-License-Identifier: Apache-2.0
"""Shared parts of a system's actors, and roles: the records from which its actors are made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from pumice.actors.api_server.faults.network import Network
from pumice.actors.arrivals import Coming
from pumice.actors.dry_run.crew import DryRunCrew
from pumice.actors.effects.pre_bind_worker import WaitingBinds
from pumice.actors.real_clusters.mirror.observed import ObservedCycles
from pumice.actors.runtime.actor import Context
from pumice.actors.runtime.level_signal import LevelSignal
from pumice.actors.runtime.supervisor import Child, Supervisor
from pumice.actors.runtime.switchboard import Switchboard
from pumice.actors.scheduling.core_decider import core_decider
from pumice.actors.scheduling.cycle_memory import CycleMemory
from pumice.actors.scheduling.resync import Awaited
from pumice.actors.system.restart import Recovered
from pumice.actors.system.settings import config_source, playing, serving
from pumice.cluster.api.store import Store
from pumice.cluster.faults.decisions import FaultsInForce
from pumice.cluster.handles import HandleTable
from pumice.cluster.kernel.roster import Surroundings
from pumice.core.session.session import Session
from pumice.core.state.snapshot import Snapshot
from pumice.storage.shared_objects import SharedObjects

if TYPE_CHECKING:
    from pumice.actors.runtime.actor import Actor
    from pumice.actors.runtime.clock import Clock
    from pumice.actors.scheduling.decider import Decider
    from pumice.actors.system.settings import SystemSettings
    from pumice.config.schema import SchedulerConfig
    from pumice.core.messages.events import ActorEvent
    from pumice.storage.journal import Journal

Build = Callable[["Wiring", str], "Actor[Any, Any]"]
"""(wiring, name) -> an instance of the actor of that name; a restart makes another one on the same mailbox."""
Instances = Callable[["SystemSettings", "SchedulerConfig", Sequence[str]], Sequence[str]]
"""(settings, configuration, actions) -> what distinguishes the actors of a role."""


def always(_settings: SystemSettings) -> bool:
    """Return True, whatever the settings."""
    return True


@dataclass(frozen=True, kw_only=True)
class Role:
    """Declaration of the actors of one role; each fact stands here only.

    `port`: the type of its mailboxes, a `Mailbox[what it accepts, what it answers]`. `sends`: to which roles it sends
    and waits for room (tell and ask), by the argument that takes their mailboxes: one, or a list where there may be
    several. `build`: None for the supervisor, which has the others built. `crashes`: the actors of this role that a
    storm may crash. `box`: the title of its box in the picture. `wanted`: whether a system with these settings has the
    role. `instances`: set where there may be several actors; they are called `role:what`. `vital`: its crash ends the
    process. `hosts`: it is a shell around machines (`pumice.actors.runtime.reconciler`).
    """

    name: str
    port: Any
    build: Build | None
    box: str
    sends: Mapping[str, str] = field(default_factory=dict[str, str])
    crashes: tuple[str, ...] = ()
    wanted: Callable[[SystemSettings], bool] = always
    instances: Instances | None = None
    vital: bool = False
    hosts: bool = False

    @property
    def unions(self) -> tuple[Any, Any]:
        """Return the closed union that it accepts, and the one that it answers with."""
        accepts, answers = get_args(self.port)
        return accepts, answers

    def names(self, settings: SystemSettings, config: SchedulerConfig, actions: Sequence[str]) -> Sequence[str]:
        """Return the names of its actors."""
        if not self.wanted(settings):
            return ()
        if self.instances is None:
            return (self.name,)
        return [f"{self.name}:{each}" for each in self.instances(settings, config, actions)]


def plainly(kind: Callable[..., Actor[Any, Any]]) -> Build:
    """Return a builder of an actor that needs only the context and mailboxes."""
    return lambda wiring, name: kind(*wiring.own(name), **wiring.ports(name))


class Wiring:
    """Builds the actors. `decider` replaces the core (tests), `objects` the table of decoded objects.

    Raises ConfigError for a bad configuration, WiringError for broken roles.
    """

    def __init__(
        self,
        roles: Sequence[Role],
        settings: SystemSettings,
        journal: Journal,
        clock: Clock,
        note: Callable[[Sequence[ActorEvent]], Awaitable[None]],
        decider: Decider | None = None,
        objects: SharedObjects | None = None,
    ) -> None:
        self.roles = {role.name: role for role in roles}
        self.settings = settings
        self.journal = journal
        # A fault may hold back any answer, and an actor that runs in the turn of its sender must not wait.
        inline_delivery = settings.inline_delivery and settings.faults is None
        self.context = Context(
            clock, alarm=settings.alarm, objects=objects or SharedObjects(), inline_delivery=inline_delivery
        )
        self.decider = decider or core_decider(report=settings.report, stopwatch=settings.stopwatch)
        self.source = config_source(settings)
        self.store = Store(
            seed=settings.seed if settings.uid_seed is None else settings.uid_seed,
            served=serving(settings) and playing(settings),
            written=self.context.objects,
        )
        self.changed = LevelSignal()
        self.permission = LevelSignal()
        self.memory = CycleMemory(self.changed, 0, 0, {}, 0)  # until the journal says more
        self.observed = ObservedCycles()
        self.recovered = Recovered()
        self.snapshots = HandleTable(Snapshot)
        self.sessions = HandleTable(Session)
        # A dry run has its handle here while its driver waits: workers of the pool find it whatever instance they are.
        self.crew = DryRunCrew(settings)
        self.client_faults = FaultsInForce(settings.seed)
        if settings.gateway is not None:
            self.client_faults.begin(settings.gateway.faults, clock.now())
        self.network = Network(self.context, settings.news_delay_s, settings.seed)
        # A bind worker reports a batch after one timeout, and after two when it follows a crash
        # (`BindWorker.handle_batch`).
        self.awaited = Awaited(3 * settings.answer_timeout_s)
        self.waiting_binds = WaitingBinds()
        self.coming = Coming()
        self.written = LevelSignal()
        # After `source` and `decider`: which actors there are depends on the configuration and its actions.
        self.switchboard = self._switchboard()
        self.supervisor = Supervisor(self._children(), self.context, note, self.switchboard.mailboxes["supervisor"])

    @property
    def surroundings(self) -> Surroundings:
        """Return what the machines of the cluster depend on in this system."""
        settings = self.settings
        return Surroundings(
            unpack=self.context.objects.unpack,
            default_duration_s=settings.default_duration_s,
            fixes=self.source.fixes,
            agents=settings.agents,
            served=serving(settings),
            event_ttl_s=settings.event_ttl_s,
            scheduler=settings.scheduler,
            faults=self.client_faults,
        )

    def own(self, name: str) -> tuple[str, Any, Context]:
        """Return the first arguments of every actor: its name, its mailbox, the context."""
        return name, self.switchboard.mailboxes[name], self.context

    def ports(self, name: str) -> dict[str, Any]:
        """Return the mailboxes to which the actor may send, and no others, by argument; None for an absent role."""
        sends = self.roles[self.switchboard.role[name]].sends
        return {
            # By the role and not by the number of actors: a pool of one is a list as well.
            argument: self.switchboard.one(role) if self.roles[role].instances is None else self.switchboard.all(role)
            for argument, role in sends.items()
        }

    def ports_there(self, name: str) -> dict[str, Any]:
        """Return the entries of `ports`, with the remote cluster, where one exists, in the place of the api."""
        found = self.ports(name)
        cluster = found.pop("cluster")
        return found if cluster is None else {**found, "api": cluster}

    def _switchboard(self) -> Switchboard:
        config, actions, roles = self.source.loaded.config, self.decider.actions, self.roles.values()
        return Switchboard(
            {role.name: tuple(role.sends.values()) for role in roles},
            {role.name: role.names(self.settings, config, actions) for role in roles},
            {role.name: role.unions for role in roles},
            self.settings.mailbox_capacity,
            self.context,
        )

    def _children(self) -> list[Child]:
        children: list[Child] = []
        for name, mailbox in self.switchboard.mailboxes.items():
            role = self.roles[self.switchboard.role[name]]
            if role.build is not None:
                # A builder and not an actor: after a crash the supervisor makes another one.
                rank, build = self.switchboard.rank[role.name], partial(role.build, self, name)
                children.append(Child(name, mailbox, build, vital=role.vital, rank=rank))
        return children
