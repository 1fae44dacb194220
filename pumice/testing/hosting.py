# SPDX-License-Identifier: Apache-2.0
"""The system of a cluster for tests, on an event loop in a thread of its own.

A thread, not a process: the modules are loaded once for all clusters of a session, time and state can be moved from the
test, and there is nothing to be found dead or left running. Not the test's own event loop: a test that blocks (a client
without asyncio, a breakpoint, `time.sleep`) would stop the server that it asks, and a test on trio has none.
"""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

from anyio import Lock, lowlevel
from anyio.from_thread import start_blocking_portal

from pumice.actors.gateway.hub import TOLD
from pumice.actors.gateway.settings import GatewaySettings, listen
from pumice.actors.runtime.clock import Alarm, Clock, RealClock, VirtualClock
from pumice.actors.runtime.mailbox import ask_many_again
from pumice.actors.system.system import System
from pumice.cluster.api.origin import unfinished
from pumice.cluster.rbac.rules import User
from pumice.core.messages.commands import Append, Entry
from pumice.core.messages.replies import Refused
from pumice.errors import InputError
from pumice.runtime.bells import Bells, HeldAlarm
from pumice.runtime.journals import keep_as
from pumice.runtime.waiting import left_waiting
from pumice.storage.codec import encode
from pumice.storage.journal import FAULT
from pumice.storage.memory import MemoryJournal
from pumice.testing.baseline import Baseline
from pumice.testing.certificates import made_certificate
from pumice.testing.faults import profile_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from pumice.actors.gateway.advice import Adviser, AdviserAnswer, AdviserQuestion
    from pumice.cluster.faults.rules import AnyRule, FaultProfile
    from pumice.core.messages.commands import Reflect
    from pumice.core.objects.metadata import Object
    from pumice.testing.options import ClusterOptions

MANAGER: Final = "pumice-testing"
"""The client's name of the cluster's own requests, and the owner of the fields that they apply."""
GATEWAY: Final = ("gateway",)
"""The server sees changes a little later: it gathers them for its clients."""
ROUNDS: Final = 20
"""Resets in a row; more is a cluster that does not come to rest."""
TURNS: Final = 5
"""Turns of the event loop in a row without work after which all tasks sleep."""
SAME_MOMENT_S: Final = 1e-5
"""What is due so soon belongs to this moment: a cycle comes a trace later than its reason."""


class UnrestfulError(Exception):
    """Objects of a cluster keep changing while it is reset."""


class Host:
    """One system, from `start` to `close`. All methods are for the test's thread. `folder`: for journals that questions
    are answered from. `token`: of the administrator, "" where none is asked for; `users`: others, by token.
    """

    def __init__(self, options: ClusterOptions, folder: Path) -> None:
        self.options, self._folder = options, folder
        self.certificate = made_certificate(folder) if options.tls else None
        self.token = options.token or (secrets.token_hex(16) if options.authorization == "rbac" else "")
        self.users: dict[str, User] = {}
        self.listener = listen("127.0.0.1", 0)
        self.bells = Bells()
        self.journal = MemoryJournal()
        self.clock: Clock = VirtualClock(elapsed=self.bells.current_time) if self.is_virtual else RealClock()
        self._stack = ExitStack()
        self._baseline = Baseline()
        self.system: System

    @property
    def is_virtual(self) -> bool:
        """Return whether time stands still until it is moved."""
        return self.options.time == "virtual"

    def start(self) -> None:
        """Begin to serve; the objects from the beginning are there. Raises ConfigError, InputError."""
        with ExitStack() as stack:
            stack.callback(self.listener.close)
            objects = self.options.objects()
            self._portal = stack.enter_context(start_blocking_portal("asyncio", name="pumice"))
            self._portal.call(self._make)
            stack.enter_context(self._portal.wrap_async_context_manager(self.system.running()))
            self._portal.call(self._furnish, objects)
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Stop in order. Raises what a vital actor crashed with."""
        self._stack.close()

    def __enter__(self) -> Host:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    async def _make(self) -> None:
        """In the event loop, which the parts of a system belong to."""
        alarm: Callable[[], Alarm] = (lambda: HeldAlarm(self.bells)) if self.is_virtual else Alarm
        self._writing = Lock()
        gateway = GatewaySettings(
            self.listener,
            token=self.token,
            certificate=self.certificate,
            key=self.certificate,
            find_adviser=self._adviser,
            authorization=self.options.authorization,
            users=self.users,
            faults=profile_of(self.options.faults),
        )
        self.system = System(self.options.settings(gateway, alarm), self.journal, self.clock)
        self.system.client_faults.spared = frozenset((MANAGER,))

    async def _furnish(self, objects: list[Object]) -> None:
        for obj, answer in zip(objects, await self.system.submit(objects), strict=True):
            if isinstance(answer, Refused):
                raise InputError(f"{obj.get('kind')} {obj.get('metadata', {}).get('name')}: {answer.message}")
        await ask_many_again(self.system.api, unfinished(objects))
        await self._settle()
        self._baseline = Baseline.of(self.system.store.tables)

    # --- what has happened

    @property
    def news(self) -> int:
        """Return a number that rises with each change but those of Leases, by which nodes say every ten seconds that
        they are there.
        """
        revisions = list(self.system.store.tables.kind_revisions.items())  # in one go: its own thread may add to it
        return max([revision for kind, revision in revisions if kind != "Lease"], default=0)

    def settle(self) -> None:
        """Return when all that this moment brought about is done, and the server has it for its clients."""
        self._portal.call(self._settle, ())

    async def _settle(self, except_for: tuple[str, ...] = GATEWAY) -> None:
        """The board does not know of a task that was woken and has not run yet; each runs within a few turns, and then
        is on the board or sleeps.
        """
        activity, quiet_turns = self.system.context.activity, 0
        while quiet_turns < TURNS:
            await activity.wait_quiet(except_for)
            await lowlevel.checkpoint()
            quiet_turns = quiet_turns + 1 if activity.is_quiet(except_for) else 0

    # --- faults

    def begin_faults(self, profile: FaultProfile) -> None:
        """Put a profile in force."""
        self._portal.call(self._begin_faults, profile)

    async def _begin_faults(self, profile: FaultProfile) -> None:
        self.system.client_faults.begin(profile, self.clock.now())
        await self._note_faults()

    def add_fault(self, rule: AnyRule) -> str:
        """Add a rule, and return its name. Raises ConfigError."""
        return self._portal.call(self._add_fault, rule)

    async def _add_fault(self, rule: AnyRule) -> str:
        name = self.system.client_faults.add(rule, self.clock.now())
        await self._note_faults()
        return name

    async def _note_faults(self) -> None:
        """Have the journal say which faults are in force now."""
        said = Entry(FAULT, encode(self.system.client_faults.told()))
        await self.system.switchboard.mailboxes["recorder"].ask(Append((said,)))

    def faults_struck(self) -> dict[str, int]:
        """Return how many requests each rule has struck."""
        return self._portal.call(lambda: dict(self.system.client_faults.struck))

    # --- time

    def step(self, end: float) -> None:
        """Move virtual time to the next moment at which something is due, or to `end` (seconds since the beginning)
        when that comes first, and let it happen.
        """
        self._portal.call(self._step, end)

    async def _step(self, end: float) -> None:
        self.bells.go_to(min(self.bells.next_due(), end))
        await self._settle()

    def advance(self, seconds: float) -> None:
        """Let so many virtual seconds go by, one due moment after the other."""
        self._portal.call(self._advance, self.bells.current_time() + seconds)

    async def _advance(self, end: float) -> None:
        await self._settle()
        while (due := self.bells.next_due()) <= end + SAME_MOMENT_S:
            await self._step(due)
        await self._step(end)

    # --- what it has to say

    def waiting(self) -> dict[str, str]:
        """Return why pods wait, and PodGroups without any pod."""
        return self._portal.call(left_waiting, self.system.each, self.system.settings.served).why

    def save_journal(self, path: Path) -> None:
        """Write the journal to a file. Raises InputError for one that exists; OpenError, ConfigError."""
        if path.exists():
            raise InputError("exists already: a journal is written to a new file", source=str(path))
        self._portal.call(keep_as, self.journal, path)

    async def _adviser(self) -> Adviser:
        """Return who answers questions from a file of the journal as it is now; questions in a row share one."""
        async with self._writing:
            head = await self.journal.head()
            path = self._folder / f"asked-{head.sequence}.db"
            if not path.exists():
                await keep_as(self.journal, path)
        return partial(_advise, str(path))

    # --- reset

    def reset(self) -> None:
        """Have all objects as they were at the beginning. Raises UnrestfulError."""
        self._portal.call(self._reset)

    async def _reset(self) -> None:
        profile = profile_of(self.options.faults)
        if self.system.client_faults.profile != profile or profile.rules:
            await self._begin_faults(profile)
        requests: list[Reflect] = []
        for _ in range(ROUNDS):
            await self._settle()
            # what a controller made meanwhile, of objects that have gone, goes in the next round
            requests = self._baseline.requests(self.system.store.tables)
            if not requests:
                return
            await ask_many_again(self.system.api, requests)
            if any(request.kind in TOLD for request in requests):
                await self._settle(())
        names = ", ".join(sorted({f"{each.kind} {each.namespace}/{each.name}" for each in requests}))
        raise UnrestfulError(f"the cluster does not come to rest; these keep changing: {names}")


def _advise(journal: str, question: AdviserQuestion) -> AdviserAnswer:
    """Answer in the process that the question is given to: the module takes a second to load."""
    from pumice.questions.adviser.answers import answer  # noqa: PLC0415 - as above

    return answer(journal, None, question)
