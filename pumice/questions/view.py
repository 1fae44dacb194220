# SPDX-License-Identifier: Apache-2.0
"""Server of the page over a journal: read only, for this machine only, until a signal stops it."""

from __future__ import annotations

import signal
from functools import partial
from typing import TYPE_CHECKING

import anyio

from pumice.actors.gateway.front import Front
from pumice.actors.gateway.identity.authenticator import is_loopback
from pumice.actors.gateway.page.viewer import build_viewer
from pumice.actors.gateway.server import serve
from pumice.actors.gateway.settings import GatewaySettings, listen
from pumice.config.errors import ConflictError
from pumice.questions.adviser.answers import answer
from pumice.storage.errors import StorageError
from pumice.storage.sqlite import open_history

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

QUESTIONS = 3
"""Questions at a time: no scheduler runs here that they could delay."""


def view_journal(
    db: Path,
    plugins_dir: str | None,
    host: str,
    port: int,
    tell: Callable[[str], None],
    warn: Callable[[str], None],
) -> None:
    """Serve until Ctrl-C or SIGTERM; `tell` receives the address, `warn` the damage. Raises ConflictError,
    ListenError.
    """
    if not is_loopback(host):
        raise ConflictError(f"a journal is shown to its own machine only, and {host} is not it", path="--http")
    with listen(host, port) as listener:
        adviser = partial(answer, str(db), plugins_dir)
        settings = GatewaySettings(listener, adviser=adviser, question_limit=QUESTIONS)
        tell(settings.url)
        anyio.run(_serve, Front(settings=settings), JournalLook(db, warn))


class JournalLook:
    """Verifies the whole journal beside the page, which is served meanwhile: a large one takes seconds."""

    def __init__(self, db: Path, warn: Callable[[str], None]) -> None:
        self.db = db
        self._warn = warn
        self._done = anyio.Event()
        self._damage = ""

    async def look(self) -> None:
        """Verify every record; `warn` is called with the first damaged one."""
        try:
            async with open_history(self.db) as journal:
                bad = (await journal.check()).first_bad
                self._damage = f"record {bad.sequence} is bad ({bad.why})" if bad is not None else ""
        except StorageError as error:
            self._damage = str(error)
        if self._damage:
            self._warn(f"{self.db}: the journal is damaged: {self._damage}; what is shown after it proves nothing")
        self._done.set()

    async def damage(self) -> str:
        """Return the damage, once all has been verified; empty for a whole journal."""
        await self._done.wait()
        return self._damage


async def _serve(front: Front, looked: JournalLook) -> None:
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(front.desk.keep)
        tasks.start_soon(looked.look)
        async with anyio.create_task_group() as serving:
            viewer = build_viewer(front, looked.db.name, looked.damage)
            serving.start_soon(serve, viewer, front.settings, stop, front.budget, front.turns)
            await _until_signal(front, stop)
        tasks.cancel_scope.cancel()


async def _until_signal(front: Front, stop: anyio.Event) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            break
    await front.open.end(front.settings.grace_s)
    stop.set()
