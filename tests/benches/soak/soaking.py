"""A soak from its start to its end: the server started, loaded, sampled, stopped, and its journal looked through."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec

from pumice.proof.bench.wire import UnexpectedAnswerError, connected
from pumice.storage.sqlite.chained import folder_of
from tests.benches.soak.clients import HOST, KUBELETS, Clients
from tests.benches.soak.counting import VERBS
from tests.benches.soak.judging import Row, SampleTable
from tests.benches.soak.plan import SoakPlan, cluster, command
from tests.benches.soak.reading import ProcessReading, file_mb, metric_lines, read_process
from tests.benches.soak.users import credentials, roles, token_of

START_S: Final = 180.0
REST_S: Final = 120.0
"""So long the watches have after the last request to tell what they owe."""
STOP_S: Final = 60.0
LOOK_S: Final = 0.2
COLUMNS: Final = (
    *("t_s", "rss_mb", "uss_mb", "descriptors", "threads", "cpu", "cpu_ms", "load_cpu", "load_rss_mb"),
    *("journal_mb", "wal_mb", "log_kb", "objects", "pods", "events", "leases", "podgroups", "jobs", "metric_lines"),
    *("requests_per_s", "heartbeats_per_s", "late_s", "made", "gone", "watches"),
    *(f"{name}_{part}_ms" for name in (*VERBS, "lag") for part in ("p50", "p99")),
)
COUNTED: Final = ("pods", "events", "leases", "podgroups", "jobs")
"""Resources with a column of their own."""


@dataclass(slots=True)
class Soaked:
    """What came of it. `problems`: what watches and clients have to complain of, in words; `count`: how many."""

    rows: list[Row]
    made: int
    gone: int
    count: int = 0
    problems: list[str] = field(default_factory=list[str])


class SoakedServer:
    """The process that is soaked, and where it keeps things."""

    def __init__(self, plan: SoakPlan, folder: Path) -> None:
        self.port = _free_port()
        self.journal = folder / "soak.db"
        if self.journal.exists():
            raise FileExistsError(f"{self.journal}: a soak begins with a journal of its own")
        self.log = folder / "server.log"
        self.token = token_of(plan)
        items = [*cluster(plan), *roles(plan)]
        (folder / "cluster.json").write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}))
        line = [sys.executable, "-m", "pumice", *command(plan, str(folder), self.port), *credentials(plan, folder)]
        with self.log.open("wb") as log, (folder / "summary.json").open("wb") as summary:
            self.process = subprocess.Popen(line, stdout=summary, stderr=log)

    async def loaded(self, nodes: int) -> None:
        """Return when it serves and has all nodes. RuntimeError when it does not come to that."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                if (await self.exposed())[1].get("nodes", 0) >= nodes:
                    return
            except (OSError, UnexpectedAnswerError, anyio.EndOfStream, anyio.IncompleteRead):
                pass
            await anyio.sleep(LOOK_S)
        raise RuntimeError(f"the server did not come up: {self.log.read_text('utf-8', 'replace')[-2000:]}")

    async def exposed(self) -> tuple[int, dict[str, int]]:
        """How many metrics there are, and how many objects by resource."""
        async with connected(HOST, self.port, self.token) as connection:
            return metric_lines((await connection.ask("GET", "/metrics")).decode())

    def stop(self) -> str:
        """Stop it like Ctrl-C; what was wrong with its end, "" for nothing."""
        if self.process.poll() is not None:
            return f"the server had ended with {self.process.returncode}"
        self.process.send_signal(signal.SIGINT)
        try:
            code = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return f"the server did not stop within {STOP_S:.0f} s"
        return "" if code == 130 else f"the server ended with {code}"


@contextmanager
def serving(plan: SoakPlan, folder: Path) -> Generator[SoakedServer]:
    """A server that is gone at the end, whatever happens."""
    server = SoakedServer(plan, folder)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


async def soak(plan: SoakPlan, folder: Path, table: Path) -> Soaked:
    """All of it; samples are written to the table as they are taken. SIGINT and SIGTERM end the load early."""
    with serving(plan, folder) as server:
        await server.loaded(plan.nodes)
        clients = Clients(plan, server.port, stop=time.monotonic() + plan.seconds)
        rows = SampleTable(table, COLUMNS)
        await clients.list_all()
        async with anyio.create_task_group() as watches:
            for name in plan.names():
                watches.start_soon(clients.watch_pods, name)
            for number in range(plan.node_watches):
                watches.start_soon(clients.watch_nodes, number)
            await _load(clients, server, rows)
            await _rest(clients)
            watches.cancel_scope.cancel()
        soaked = _summed(clients, rows.rows)
        if wrong := server.stop():
            soaked.problems.append(wrong)
            soaked.count += 1
    return soaked


async def _load(clients: Clients, server: SoakedServer, rows: SampleTable) -> None:
    """Everybody until the time is over, or a signal comes."""
    async with anyio.create_task_group() as sampling:
        sampling.start_soon(_sample, clients, server, rows)
        sampling.start_soon(_until_signal, clients)
        async with anyio.create_task_group() as tasks:
            for number in range(clients.plan.writers):
                tasks.start_soon(clients.write, number)
            for number in range(KUBELETS):
                tasks.start_soon(clients.report, number)
            tasks.start_soon(clients.list_pods)
            tasks.start_soon(clients.trespass)
        sampling.cancel_scope.cancel()


async def _until_signal(clients: Clients) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            clients.stop = time.monotonic()


async def _rest(clients: Clients) -> None:
    """Until no watch owes anything and every pod is gone; what is owed still after that is named."""
    deadline = time.monotonic() + REST_S
    while time.monotonic() < deadline:
        for ledger in clients.ledgers():
            ledger.look(time.monotonic())
        if _at_rest(clients):
            return
        await anyio.sleep(LOOK_S)
    for ledger in clients.pods.values():
        if ledger.alive:
            clients.counts.failed(f"{ledger.name}: {len(ledger.alive)} pods were never told to be gone")


def _at_rest(clients: Clients) -> bool:
    owing = any(not each.settled for each in clients.ledgers()) or any(each.alive for each in clients.pods.values())
    return not owing and len({each.events for each in clients.nodes}) <= 1


async def _sample(clients: Clients, server: SoakedServer, table: SampleTable) -> None:
    """A row every so often, until the time is over."""
    own, started = os.getpid(), time.monotonic()
    before, load, last = read_process(server.process.pid), read_process(own), started
    while True:
        await anyio.sleep(clients.plan.sample_s)
        for ledger in clients.ledgers():
            ledger.look(time.monotonic())
        lines, objects = await server.exposed()
        now = time.monotonic()
        seconds, last = now - last, now
        if now >= clients.stop:
            return
        found, loading = read_process(server.process.pid), read_process(own)
        row = {"t_s": now - started, "cpu": (found.cpu_s - before.cpu_s) / seconds}
        row |= _held(found) | _stored(server, lines, objects) | clients.counts.taken(seconds)
        row["cpu_ms"] = row["cpu"] / max(row["requests_per_s"], 1.0) * 1e3
        row |= {"load_cpu": (loading.cpu_s - load.cpu_s) / seconds, "load_rss_mb": loading.rss_mb}
        before, load = found, loading
        table.add(row)


def _held(found: ProcessReading) -> dict[str, float]:
    return {
        "rss_mb": found.rss_mb,
        "uss_mb": found.uss_mb,
        "descriptors": found.descriptors,
        "threads": found.threads,
    }


def _stored(server: SoakedServer, lines: int, objects: dict[str, int]) -> dict[str, float]:
    return {
        "journal_mb": file_mb(server.journal) + sum(map(file_mb, folder_of(server.journal).glob("*.db"))),
        "wal_mb": file_mb(server.journal.with_name(server.journal.name + "-wal")),
        "log_kb": file_mb(server.log) * 1e3,
        "objects": sum(objects.values()),
        "metric_lines": lines,
        **{name: objects.get(name, 0) for name in COUNTED},
    }


def _summed(clients: Clients, rows: list[Row]) -> Soaked:
    counts = clients.counts
    found = Soaked(rows, counts.made, counts.gone, counts.failures, list(counts.said))
    for ledger in clients.ledgers():
        found.count += ledger.count
        found.problems += ledger.problems
    if len({each.events for each in clients.nodes}) > 1:
        found.count += 1
        found.problems.append(f"watches of nodes had different events: {[each.events for each in clients.nodes]}")
    return found


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((HOST, 0))
        port: Any = found.getsockname()[1]
        return int(port)
