"""The api server with faults before it."""

from __future__ import annotations

import anyio
import pytest

from pumice.actors.api_server.faults.faulty_server import FaultyApiServer
from pumice.actors.api_server.faults.network import Network
from pumice.actors.api_server.faults.strikes import Faults, ListedFaults, SeededFaults
from pumice.actors.api_server.server import ApiServer
from pumice.actors.runtime.mailbox import Mailbox, expected
from pumice.core.messages import commands
from pumice.core.messages.commands import FaultsRead, Pull, Pulled, ReadFaults, SupervisorCommand
from pumice.storage import codec
from tests.actors.bench import Bench, running
from tests.kit.nodes import node

pytestmark = pytest.mark.anyio


class FaultyBench(Bench):
    """A bench whose api server has a network before it."""

    faults: Faults = ListedFaults([])

    def server(self) -> ApiServer:
        self.network = Network(self.context)
        return FaultyApiServer(
            "api-server",
            self.api,
            self.context,
            store=self.store,
            recorder=self.recorder,
            faults=self.faults,
            network=self.network,
            supervisor=Mailbox("supervisor", SupervisorCommand),
        )


async def test_pulls_do_not_wait_for_what_comes_late_to_be_on_disk() -> None:
    async with running(FaultyBench()) as bench:
        assert isinstance(bench, FaultyBench)
        await anyio.wait_all_tasks_blocked()
        bench.may_write = anyio.Event()
        bench.network.hold(0.0, request=commands.Create(codec.pack(node("n"))))
        await anyio.sleep(0.01)
        await anyio.wait_all_tasks_blocked()
        assert bench.store.revision == 1, "it has the turn, and waits for the journal"
        try:
            with anyio.fail_after(2):
                for _ in range(3):
                    pulled = await bench.api.ask(Pull("me", 0, held=False))
                    assert expected(pulled, Pulled).revisions == ()
        finally:
            bench.may_write.set()


async def test_who_asks_what_has_struck_is_struck_by_nothing() -> None:
    bench = FaultyBench()
    bench.faults = SeededFaults(1, {"crash": 1.0}, crashable=("nobody",))
    async with running(bench):
        for _ in range(2):
            assert await bench.api.ask(ReadFaults()) == FaultsRead({})
        await bench.api.ask_many([commands.Get("Node", "", "n"), commands.Get("Node", "", "m")])
        assert await bench.api.ask(ReadFaults()) == FaultsRead({"crash": 2})
