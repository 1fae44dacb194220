"""A process without a descriptor to spare: who comes is refused, that is said once a second, and the rest goes on."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from pumice.actors.gateway.server import RESERVE, Complaints, bounded, most_descriptors
from pumice.actors.gateway.settings import listen
from tests.actors.gateway.rig import serving

LIMIT = 64
CLIENTS = 100


def test_what_is_beyond_the_bound_is_closed_immediately(caplog: pytest.LogCaptureFixture) -> None:
    with (
        listen("127.0.0.1", 0) as plain,
        bounded(os.dup(plain.fileno()), Complaints()) as listener,
        contextlib.ExitStack() as open_,
    ):
        address = plain.getsockname()
        clients = [open_.enter_context(socket.create_connection(address)) for _ in range(5)]
        listener.most = 1 << 20
        for _ in range(2):
            open_.enter_context(listener.accept()[0])
        listener.most = 0  # whatever number comes next: others of this process take and leave some
        for _ in clients[2:]:
            with pytest.raises(ConnectionAbortedError):
                listener.accept()
        assert [client.recv(1) for client in clients[2:]] == [b"", b"", b""]
    assert len(caplog.records) == 1


def test_it_is_said_once_a_second(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("pumice.actors.gateway.server.monotonic", lambda: now)
    complaints = Complaints()
    for moment in (100.0, 100.1, 100.9, 101.0, 101.5, 102.5):
        now = moment
        complaints.refused()
    assert [record.getMessage()[:23] for record in caplog.records] == [
        "connections refused: 1 ", "connections refused: 3 ", "connections refused: 2 ",
    ]  # fmt: skip
    assert all(record.levelno == logging.WARNING for record in caplog.records)


@pytest.mark.anyio
async def test_the_last_of_a_burst_are_said_too(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pumice.actors.gateway.server.EVERY_S", 0.05)
    complaints = Complaints()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(complaints.keep_saying)
        for _ in range(3):
            complaints.refused()
        with anyio.fail_after(10):
            while len(caplog.records) < 2:  # noqa: ASYNC110 - nobody tells
                await anyio.sleep(0.01)
        complaints.refused()
        complaints.refused()
        tasks.cancel_scope.cancel()
    said = [record.getMessage().split(" (")[0] for record in caplog.records]
    assert sum(int(each.removeprefix("connections refused: ")) for each in said) == 5


def test_some_are_left_to_others() -> None:
    assert most_descriptors() == resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVE


@pytest.mark.anyio
@pytest.mark.parametrize("asks", [b"", b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n", b"GET /li"])
async def test_what_a_client_closes_is_closed_here_too(asks: bytes) -> None:
    async with serving() as web:
        before = _open()
        for _ in range(10):
            async with await anyio.connect_tcp(*web.settings.address) as client:
                if asks:
                    await client.send(asks)
                if asks.endswith(b"\r\n\r\n"):
                    await client.receive()
        with anyio.fail_after(10):
            while _open() > before:  # noqa: ASYNC110 - nobody tells
                await anyio.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_hundred_connections_and_sixty_four_descriptors(tmp_path: Path, backend: str) -> None:
    pumice = f"{sys.executable} -m pumice run --http 127.0.0.1:0 --backend {backend} --db {tmp_path}/p.db"
    with (tmp_path / "err").open("wb") as said:
        command = ["bash", "-c", f"ulimit -n {LIMIT}; exec {pumice}"]
        process = subprocess.Popen(command, stdout=said, stderr=said, cwd=tmp_path)
    try:
        port = _port(tmp_path / "err")
        with contextlib.ExitStack() as open_:
            first = open_.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            others = [
                open_.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10)) for _ in range(CLIENTS)
            ]
            time.sleep(2.5)
            taken = [int(name) for name in os.listdir(f"/proc/{process.pid}/fd")]  # noqa: PTH208 - names are wanted
            assert max(taken) < LIMIT - RESERVE, "some are left to others"
            assert sum(_is_closed(each) for each in others) >= CLIENTS - LIMIT + RESERVE
            first.sendall(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert first.recv(64).startswith(b"HTTP/1.1 200")
    finally:
        process.terminate()
        assert process.wait(30) == 130
    text = (tmp_path / "err").read_text()
    assert "Traceback" not in text
    assert 1 <= text.count("connections refused") <= 4
    said_of = sum(int(number) for number in re.findall(r"connections refused: (\d+)", text))
    assert said_of >= CLIENTS - LIMIT + RESERVE, "each is counted, the last of a burst too"


def _open() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def _is_closed(connection: socket.socket) -> bool:
    """Whether the server has closed it; one that it keeps has nothing to say."""
    connection.settimeout(0)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def _port(path: Path) -> int:
    for _ in range(200):
        if found := re.search(r"127\.0\.0\.1:(\d+)", path.read_text()):
            return int(found[1])
        time.sleep(0.1)
    raise AssertionError(path.read_text())
