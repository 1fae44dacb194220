"""The whole system, wired: the only module that knows every actor and hands each the mailboxes it may speak to.

Mailboxes are handed out by the rows of `actors.system.links.LINKS`. What that table leaves out on purpose: answers fill
a slot and never block, news of the api and the view are level signals, metrics read statistics.
"""

from __future__ import annotations

import gc
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, cast

import anyio

from actors.agents.node_agents import NodeAgents
from actors.api.bootstrap import create_first_objects, first_objects
from actors.api.faults.faulty_server import api_server
from actors.api.faults.network import Network
from actors.api.server import ApiServer
from actors.api.store import Store
from actors.controllers.configuration.machine import take_over
from actors.controllers.configuration.watcher import ConfigWatcher
from actors.controllers.disruptions.controller import DisruptionController
from actors.controllers.events.controller import PodEvents
from actors.controllers.groups.controller import PodGroupController
from actors.controllers.jobs.controller import JobController
from actors.controllers.queues.controller import QueueController
from actors.controllers.volumes.controller import VolumeController
from actors.dry_run.crew import DryRunCrew
from actors.effects.bind_worker import BindWorker
from actors.effects.evict_worker import EvictWorker
from actors.effects.pre_bind_worker import PreBindWorker, WaitingBinds
from actors.effects.status_writer import StatusWriter
from actors.errors import ActorStoppedError, chief
from actors.gateway.gateway import Gateway
from actors.gateway.settings import REVISIONS_PER_S
from actors.journal.checkpointer import Checkpointer
from actors.journal.recorder import Recorder
from actors.metrics.metrics import Metrics
from actors.metrics.summary import Summary
from actors.runtime.activity import SCHEDULER
from actors.runtime.actor import Actor
from actors.runtime.clock import Clock, VirtualClock
from actors.runtime.context import Context
from actors.runtime.mailbox import MailboxStatistics
from actors.runtime.news import LevelSignal
from actors.runtime.shelf import Shelf
from actors.runtime.supervisor import Child, Supervisor
from actors.runtime.switchboard import Switchboard, role_of
from actors.scheduling.action_worker import ActionWorker
from actors.scheduling.cache import Cache
from actors.scheduling.commit import Commit
from actors.scheduling.core_decider import core_decider
from actors.scheduling.cycle_memory import CycleMemory, RunnerSettings
from actors.scheduling.decider import Decider
from actors.scheduling.resync import Awaited
from actors.scheduling.session_runner import SessionRunner
from actors.scheduling.usage_collector import UsageCollector
from actors.system.ports import ApiPort, MetricsPort, RunnerPort
from actors.system.restart import Recovered, recover, resolve
from actors.system.settings import SystemSettings, config_source, workers
from core.messages import commands, replies
from core.messages.message import Message
from storage import codec
from storage.journal import CONFIG, Journal, Record


class System:
    """One scheduler with its api, agents and controllers, on one journal, which it does not close.

    Raises ConfigError at once for a bad configuration. `decider` replaces the core (tests).
    """

    def __init__(
        self, settings: SystemSettings, journal: Journal, clock: Clock, *, decider: Decider | None = None
    ) -> None:
        self.settings = settings
        self.context = Context(clock, alarm=settings.alarm)
        self.store = Store(seed=settings.seed, strict=settings.gateway is not None)
        self.memory = CycleMemory()
        self.recovered = Recovered()
        self._journal = journal
        self._decider = decider or core_decider(report=settings.report, stopwatch=settings.stopwatch)
        self.source = config_source(settings, self._decider)
        self._snapshots: Shelf[Any] = Shelf()
        self._sessions: Shelf[Any] = Shelf()
        self._crew = DryRunCrew(settings)
        instances = workers(settings, self.source.loaded.config, self._decider.actions)
        self.switchboard = Switchboard(instances, settings.mailbox_capacity, self.context)
        self.supervisor = Supervisor(self._children(), self.context, self._note)
        self._summary = Summary(self.store)
        self._network = Network(self.context, settings.news_delay_s, settings.seed)
        self._awaited = Awaited(3 * settings.answer_timeout_s)
        self._waiting_binds = WaitingBinds()
        self._written = LevelSignal()
        self._began = 0.0

    # --- using it

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[System]:
        """Recover what the journal holds, run everything, stop in order. Raises what a vital actor crashed with."""
        thresholds = gc.get_threshold()
        gc.set_threshold(*self.settings.gc_thresholds or thresholds)
        try:
            await self._recover()
            self._began = anyio.current_time()
            async with anyio.create_task_group() as tasks:
                await tasks.start(self.supervisor.run)
                served = self.settings.gateway is not None
                await create_first_objects(self.api, first_objects(self.settings.default_queues, served))
                yield self
                self.supervisor.stop()
        except BaseExceptionGroup as group:
            raise chief(group) from None
        finally:
            gc.set_threshold(*thresholds)

    async def submit(self, objects: Sequence[dict[str, Any]]) -> list[replies.Accepted | replies.Refused]:
        """Create the objects, in order; one answer each. Each is durable when it is accepted."""
        answers = await self.api.ask_many([commands.Create(codec.pack(each), user="submit") for each in objects])
        return [cast("replies.Accepted | replies.Refused", answer) for answer in answers]

    async def until_idle(self) -> None:
        """Wait until nothing is in flight, no timer is due and another cycle would change nothing."""
        await self.context.activity.wait_idle()

    async def until_cycles(self, number: int) -> None:
        """Wait until so many cycles have been run, those before a restart included."""
        await self.memory.cycles.wait_beyond(number - 1)

    async def run_cycle(self) -> None:
        """Run a cycle now, changed or not."""
        await cast("RunnerPort", self.switchboard.mailboxes["session-runner"]).ask(commands.RunCycle())

    async def metrics_text(self) -> bytes:
        """Prometheus' text format."""
        metrics = cast("MetricsPort", self.switchboard.mailboxes["metrics"])
        return (await metrics.ask_for(commands.Expose(), replies.Exposition)).text

    @property
    def api(self) -> ApiPort:
        """The api server's mailbox: what a gateway and a command line speak to."""
        return cast("ApiPort", self.switchboard.mailboxes["api-server"])

    def statistics(self) -> list[MailboxStatistics]:
        """Of every mailbox, by name."""
        return [mailbox.statistics() for _, mailbox in sorted(self.switchboard.mailboxes.items())]

    def summary(self) -> dict[str, Any]:
        """What `pumice run` reports at its end, without `db`; seconds since the start, on the event loop's clock."""
        return self._summary.report(self.memory.cycle, anyio.current_time() - self._began)

    # --- starting

    async def _recover(self) -> None:
        """The api's truth, the cycle number and the carry; unfinished decisions; the configuration in force."""
        self.recovered = await recover(self._journal, self.store.restore, self.store.load)
        now = self.context.clock.now()
        await resolve(self._journal, self.recovered, partial(self.store.get, "Pod"), now)
        if self.settings.follows_cluster:
            take_over(self.source, self.store.get)
        told, known = self.source.loaded.told(), self.recovered.config
        if known is None or (told.digest, told.plugins) != (known.digest, known.plugins):
            self.recovered.sequence = await self._journal.append([Record(CONFIG, codec.encode(told), 0, now)])
        self.memory.cycle, self.memory.carry = self.recovered.cycle, self.recovered.carry
        self.memory.cycles.raise_to(self.recovered.cycle)
        if self.settings.gateway is not None:
            self.store.begin_after(int(now * REVISIONS_PER_S))
        self.context.news.raise_to(self.store.log.published)
        self.context.activity.settled(SCHEDULER, not self.settings.scheduler)

    async def _note(self, events: Sequence[Message]) -> None:
        """Events in the lives of actors; its own end finds the recorder gone."""
        entries = tuple([commands.Entry("actor", codec.encode(event)) for event in events])
        with suppress(ActorStoppedError):
            await self.switchboard.mailboxes["recorder"].tell(commands.Append(entries))

    # --- wiring

    def _children(self) -> list[Child]:
        builders, board = self._builders(), self.switchboard
        return [
            Child(name, box, partial(builders[role_of(name)], name), vital=name == "recorder", rank=board.rank[name])
            for name, box in board.mailboxes.items()
        ]

    def _builders(self) -> dict[str, Callable[[str], Actor[Any, Any]]]:
        """By role: what makes an instance of the actor of a name; a restart makes another one on the same mailbox."""
        return {
            "action-worker": self._action_worker,
            "api-server": self._api_server,
            "bind-worker": self._bind_worker,
            "cache": self._cache,
            "checkpointer": self._checkpointer,
            "config-watcher": partial(self._reconciler, partial(ConfigWatcher, offer=self.source.offer)),
            "disruption-controller": partial(self._reconciler, DisruptionController),
            "dry-run-worker": lambda name: self._crew.worker(*self._own(name)),
            "evict-worker": self._evict_worker,
            "gateway": self._gateway,
            "job-controller": partial(self._reconciler, JobController),
            "metrics": lambda who: Metrics(*self._own(who), sources=self.statistics, queues=self._decider.queue_tables),
            "node-agents": partial(self._reconciler, NodeAgents),
            "pod-events": partial(self._reconciler, partial(PodEvents, scheduler=self.settings.scheduler)),
            "pod-group-controller": partial(self._reconciler, PodGroupController),
            "pre-bind-worker": self._pre_bind_worker,
            "queue-controller": partial(self._reconciler, QueueController),
            "recorder": lambda name: Recorder(*self._own(name), self._journal, self.recovered.sequence, self._written),
            "session-runner": self._session_runner,
            "status-writer": self._status_writer,
            "usage-collector": self._usage_collector,
            "volume-controller": partial(self._reconciler, VolumeController),
        }

    def _own(self, name: str) -> tuple[str, Any, Context]:
        return name, self.switchboard.mailboxes[name], self.context

    def _ports(self, name: str, **roles: str) -> dict[str, Any]:
        """Mailboxes by the name of the argument that takes them; `role*`: a list of all there are."""
        board = self.switchboard
        return {
            argument: board.all(name, role[:-1]) if role.endswith("*") else board.one(name, role)
            for argument, role in roles.items()
        }

    def _api_server(self, name: str) -> ApiServer:
        faults, crash = self.settings.faults, partial(self.supervisor.restart, injected=True)
        ports = self._ports(name, recorder="recorder")
        return api_server(self._own(name), {**ports, "store": self.store}, faults, self._network, crash)

    def _reconciler(self, kind: Callable[..., Actor[Any, Any]], name: str) -> Actor[Any, Any]:
        return kind(*self._own(name), **self._ports(name, api="api-server"))

    def _gateway(self, name: str) -> Gateway:
        assert self.settings.gateway is not None
        ports = self._ports(name, api="api-server", metrics="metrics")
        return Gateway(*self._own(name), **ports, shelf=self.store.listings, settings=self.settings.gateway)

    def _action_worker(self, name: str) -> ActionWorker:
        driver = self._crew.driver(self.switchboard.all(name, "dry-run-worker"), self.supervisor.restart)
        deciding, stopwatch = self._decider, self.settings.stopwatch
        return ActionWorker(
            *self._own(name), sessions=self._sessions, decider=deciding, dry_runs=driver, stopwatch=stopwatch
        )

    def _bind_worker(self, name: str) -> BindWorker:
        ports = self._ports(name, api="api-server", cache="cache", metrics="metrics", recorder="recorder")
        return BindWorker(*self._own(name), **ports, timeout_s=self.settings.answer_timeout_s)

    def _pre_bind_worker(self, name: str) -> PreBindWorker:
        roles = {role: role for role in ("cache", "metrics", "recorder")}
        ports = self._ports(name, api="api-server", status="status-writer", **roles)
        timeout_s = self.settings.answer_timeout_s
        return PreBindWorker(*self._own(name), **ports, waiting=self._waiting_binds, timeout_s=timeout_s)

    def _evict_worker(self, name: str) -> EvictWorker:
        ports = self._ports(name, api="api-server", cache="cache", recorder="recorder")
        return EvictWorker(*self._own(name), **ports, timeout_s=self.settings.answer_timeout_s)

    def _status_writer(self, name: str) -> StatusWriter:
        return StatusWriter(*self._own(name), **self._ports(name, api="api-server", recorder="recorder"))

    def _usage_collector(self, name: str) -> UsageCollector:
        metrics = self.source.loaded.config.metrics
        return UsageCollector(*self._own(name), **self._ports(name, api="api-server"), metrics=metrics)

    def _cache(self, name: str) -> Cache:
        return Cache(
            *self._own(name),
            **self._ports(name, api="api-server"),
            view=self._decider.new_view(),
            snapshots=self._snapshots,
            changed=self.memory.changed,
            awaited=self._awaited,
            check_always=self.settings.check_view,
        )

    def _checkpointer(self, name: str) -> Checkpointer:
        every = self.settings.records_between(self.source.loaded.config.pumice)
        in_thread = not isinstance(self.context.clock, VirtualClock)  # which would take a thread's work for idleness
        return Checkpointer(*self._own(name), self._journal, self._written, every, self.settings.retention, in_thread)

    def _session_runner(self, name: str) -> SessionRunner:
        effects = {"binders": "bind-worker*", "evictors": "evict-worker*", "status": "status-writer"}
        recorder, settings = {"recorder": "recorder"}, self.settings
        return SessionRunner(
            *self._own(name),
            **self._ports(name, cache="cache", metrics="metrics"),
            actions=dict(zip(self._decider.actions, self.switchboard.all(name, "action-worker"), strict=True)),
            commit=Commit(**self._ports(name, cache="cache", pre_binder="pre-bind-worker", **recorder, **effects)),
            decider=self._decider,
            snapshots=self._snapshots,
            sessions=self._sessions,
            memory=self.memory,
            settings=RunnerSettings(
                self.source, settings.schedule_period_s, seed=settings.seed, stopwatch=settings.stopwatch
            ),
        )
