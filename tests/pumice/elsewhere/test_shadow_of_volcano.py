"""The real vc-scheduler at work on a real kube-apiserver, and what Pumice would have done beside it."""

import os
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import anyio
import httpx
import pytest

from pumice.core.messages.events import ShadowCompared
from pumice.storage import codec
from pumice.storage.sqlite import SqliteJournal
from tests.kit import source
from tests.kit.real_api import real_api
from tests.pumice.elsewhere.rig import process, until
from tests.pumice.elsewhere.workload import GROUPS, PODS, gate, make_nodes, make_wave, prepare

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
PROGRAM = "PUMICE_TEST_VC_SCHEDULER"
SEED = int(os.environ.get("PUMICE_TEST_SEEDS", "1"))
WAVES, EACH = 3, 66
QUIET_S, MOST_S = 7.0, 60.0


def program() -> Path:
    """Volcano's scheduler; skips without."""
    named = os.environ.get(PROGRAM, "")
    if not Path(named).is_file():
        pytest.skip(f"{PROGRAM} names no vc-scheduler (go build ./cmd/scheduler, of Volcano v1.15.1)")
    return Path(named)


@contextmanager
def volcano(config: Path, folder: Path) -> Generator[None]:
    stock = source.ROOT / "config" / "default.conf"
    flags = [f"--kubeconfig={config}", f"--scheduler-conf={stock}", "--leader-elect=false", "--cache-dumper=false"]
    with (folder / "vc.log").open("wb") as log:
        running = subprocess.Popen([str(program()), *flags, "--percentage-nodes-to-find=100"], stdout=log, stderr=log)
    try:
        yield
    finally:
        running.kill()
        running.wait()


def wait_quiet(client: httpx.Client) -> None:
    """Until no pod and no PodGroup has changed for a while: a shadow believes what it sees twice. Volcano may not
    come to rest: which pod's words it gives as the origin of a gang's trouble changes from cycle to cycle.
    """
    before, since = "", time.monotonic()
    until_s = since + MOST_S
    while time.monotonic() - since < QUIET_S and time.monotonic() < until_s:
        objects: list[dict[str, Any]] = [each for path in (PODS, GROUPS) for each in client.get(path).json()["items"]]
        now = str([(each["metadata"]["uid"], each["metadata"]["resourceVersion"]) for each in objects])
        if now != before:
            before, since = now, time.monotonic()
        time.sleep(0.5)


async def compared(db: Path) -> list[ShadowCompared]:
    decode = codec.decoder(ShadowCompared)
    async with await SqliteJournal.open(db, read_only=True) as journal:
        return [decode(each.payload) for each in await journal.read(0, limit=1_000_000) if each.kind == "shadow"]


def test_both_decide_the_same(tmp_path: Path) -> None:
    program()
    chance, db = Random(SEED), tmp_path / "shadow.db"
    with real_api(tmp_path) as server, server.client() as client, volcano(server.kubeconfig(), tmp_path):
        prepare(client)
        gate(client, "Closed")
        make_nodes(client, chance, 20)
        with process("mirror", server.kubeconfig(), db, "--shadow") as shadow:
            until(db.exists)
            for wave in range(WAVES):
                gate(client, "Closed")
                make_wave(client, chance, wave, EACH)
                time.sleep(2.0)
                gate(client, "Open")
                wait_quiet(client)
            shadow.send_signal(signal.SIGINT)
            shadow.wait(30)
    found = anyio.run(compared, db)
    decided = sum(each.decisions for each in found)
    assert decided > WAVES * EACH / 2
    assert sum(each.same for each in found) == decided, (tmp_path / "shadow.log").read_text("utf-8")
    stands = [each for each in found if each.groups >= 0]
    assert stands
    assert sum(each.other_phases for each in stands) == 0
    assert sum(each.only_here for each in stands) == 0
