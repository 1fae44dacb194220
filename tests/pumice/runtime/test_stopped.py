"""A process that is stopped for a while (SIGSTOP, a paused machine) and goes on: nothing is taken for lost."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import anyio
import httpx
import pytest
import yaml

from pumice.core.messages.events import BindTimedOut, Outcome
from pumice.storage.sqlite import SqliteJournal
from tests.actors.rig import journaled
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.serving import served
from tests.pumice.runtime.journal_facts import facts

STOPPED_S = 3.0
PODS_ALL = 80
PODS = "/api/v1/namespaces/default/pods"


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_run_that_is_stopped_goes_on_where_it_was(tmp_path: Path, backend: str) -> None:
    objects = [node(f"n{number}", cpu="8") for number in range(4)]
    objects += [each for number in range(20) for each in gang(f"g{number}", pods=4, cpu="1", duration="0.5s")]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(objects), "utf-8")
    with (
        served(tmp_path, "-f", str(tmp_path / "all.yaml"), "--backend", backend) as server,
        server.client() as client,
        client.stream("GET", PODS, params={"watch": "true"}) as watching,
    ):
        assert watching.status_code == httpx.codes.OK
        for _ in range(2):
            os.kill(server.pid, signal.SIGSTOP)
            time.sleep(STOPPED_S)
            os.kill(server.pid, signal.SIGCONT)
            time.sleep(0.2)
        until = time.monotonic() + 60
        while not _all_ended(client):
            assert time.monotonic() < until
            time.sleep(0.1)
    for word in ("crashed", "hangs", "no outcome", "no answer", "went back"):
        assert word not in server.log, server.log
    anyio.run(_nothing_was_taken_for_lost, tmp_path / "pumice.db")


async def _nothing_was_taken_for_lost(db: Path) -> None:
    found = await facts(db)
    assert found.whole
    assert sorted(found.times.values()) == [1] * PODS_ALL
    async with await SqliteJournal.open(db, read_only=True) as journal:
        outcomes = await journaled(journal, "outcome", Outcome)
    assert [each for each in outcomes if isinstance(each, BindTimedOut)] == []


def _all_ended(client: httpx.Client) -> bool:
    phases = [pod["status"].get("phase") for pod in client.get(PODS).json()["items"]]
    return len(phases) == PODS_ALL and set(phases) == {"Succeeded"}
