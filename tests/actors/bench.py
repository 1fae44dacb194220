"""An api server with a recorder that keeps what it is given: what node agents and controllers need around them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from pumice.actors.api_server.server import ApiServer
from pumice.actors.runtime.actor import Context
from pumice.actors.runtime.clock import Clock, RealClock
from pumice.actors.runtime.mailbox import Mailbox
from pumice.actors.system.ports import ApiPort, RecorderPort
from pumice.cluster.api.store import Store
from pumice.core.messages import commands, replies
from pumice.core.messages.commands import Append, Entry, RecorderCommand
from pumice.core.messages.events import Mutation
from pumice.storage import codec

PATIENCE_S = 10


class Bench:
    """An api server whose recorder is this object: it keeps what it is given and answers when it may.

    `ahead`: see the server.
    """

    def __init__(self, capacity: int = 256, clock: Clock | None = None, ahead: int = 0) -> None:
        self.context = Context(clock or RealClock())
        self.api: ApiPort = Mailbox(
            "api-server",
            commands.ApiRequest,
            replies.ApiReply,
            capacity=capacity,
            activity=self.context.activity,
        )
        self.recorder: RecorderPort = Mailbox("recorder", RecorderCommand, replies.Appended)
        self.store = Store()
        self.written: list[Entry] = []
        self.appends = 0
        self.may_write = anyio.Event()
        self.may_write.set()
        self.ahead = ahead

    def server(self) -> ApiServer:
        whose = "api-server", self.api, self.context
        return ApiServer(*whose, store=self.store, recorder=self.recorder, ahead=self.ahead)

    async def record(self) -> None:
        while True:
            try:
                batch = await self.recorder.receive()
            except anyio.EndOfStream:
                return
            await self.may_write.wait()
            for item in batch:
                self.appends += 1
                assert isinstance(item.message, Append)
                self.written += item.message.entries
                item.reply(replies.Appended(1, len(self.written)))

    def mutations(self) -> list[Mutation]:
        return [codec.decode(entry.payload, Mutation) for entry in self.written]


@asynccontextmanager
async def running(bench: Bench) -> AsyncGenerator[Bench]:
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.record)
            async with anyio.create_task_group() as server:
                server.start_soon(bench.server().run)
                yield bench
                bench.api.close()
            bench.recorder.close()
        bench.api.abort()
        bench.recorder.abort()
