"""`pumice mcp` as a process, asked by the client of the official SDK over both transports."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import httpx
import pytest

from pumice.agents.tools import TOOLS
from tests.kit import source
from tests.quality.agents import clusters

pytest.importorskip("mcp")

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

MCP: Final = ("-m", "pumice", "mcp")
INITIALIZE: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
ACCEPT: Final = {"accept": "application/json, text/event-stream"}


async def asked(client: Any) -> tuple[list[str], dict[str, Any], str]:
    """Return the names of the tools, one answer, and one error."""
    async with client:
        names = [each.name for each in (await client.list_tools()).tools]
        answer = await client.call_tool("why_pending", {"object": "lab/narrow"})
        refused = await client.call_tool("why_pending", {"object": "lab/nobody"})
    assert not answer.is_error
    assert refused.is_error
    return names, answer.structured_content, refused.content[0].text


def check(told: tuple[list[str], dict[str, Any], str]) -> None:
    names, answer, refused = told
    assert names == list(TOOLS)
    assert answer["result"]["reason"] == "QueueCapability"
    repeated = subprocess.run(
        [sys.executable, "-m", *shlex.split(answer["command"])], capture_output=True, timeout=60, check=False
    )
    assert json.loads(repeated.stdout) == answer["result"], "the command gives the same result"
    assert "`who_is_next` lists what waits" in refused


@pytest.mark.slow
def test_a_client_asks_over_stdio(tmp_path: Path) -> None:
    arguments = [*MCP, "-f", str(clusters.manifests(tmp_path))]
    parameters = StdioServerParameters(command=sys.executable, args=arguments, cwd=str(source.ROOT))
    check(anyio.run(asked, Client(stdio_client(parameters))))


@contextmanager
def serving(folder: Path) -> Generator[str]:
    command = [sys.executable, *MCP, "-f", str(clusters.manifests(folder)), "--http", "127.0.0.1:0", "-o", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=source.ROOT) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(4)]
            yield json.loads(b"".join(lines))["url"]
        finally:
            process.terminate()


@pytest.mark.slow
def test_a_client_asks_over_http(tmp_path: Path) -> None:
    with serving(tmp_path) as url:
        check(anyio.run(asked, Client(url)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 200),
        ({"origin": "http://127.0.0.1:1"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"host": "evil.example"}, 421),
        ({"host": "evil.example:80"}, 421),
    ],
)
def test_other_hosts_and_origins_are_refused(tmp_path: Path, headers: dict[str, str], code: int) -> None:
    with serving(tmp_path) as url:
        answer = httpx.post(url, json=INITIALIZE, headers={**ACCEPT, **headers}, trust_env=False, timeout=30.0)
    assert answer.status_code == code


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["-f", "OBJECTS", "--http", "0.0.0.0:0"], "--http: 0.0.0.0 can be reached from other machines"),
        *(
            pytest.param(*row, marks=pytest.mark.slow)
            for row in (
                (["-f", "OBJECTS", "--http", "here"], "--http: expected HOST:PORT"),
                (["-f", "nowhere.yaml"], "nowhere.yaml: does not exist"),
                (["-f", "-"], "-f: stdin is the client's"),
                (["--db", "nowhere.db"], "nowhere.db"),
                (["--db", "a.db", "--server", "http://127.0.0.1:1"], "name different clusters"),
                (["-f", "OBJECTS", "--gate", "none.yaml"], "none.yaml: does not exist"),
            )
        ),
    ],
)
def test_what_cannot_be_served_is_refused(tmp_path: Path, arguments: list[str], problem: str) -> None:
    objects = str(clusters.manifests(tmp_path))
    words = [objects if each == "OBJECTS" else each for each in arguments]
    command = [sys.executable, *MCP, *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False, input="")
    assert done.returncode == 2, done.stderr
    assert problem in done.stderr


def test_without_the_extra_it_says_how_to_install_it(tmp_path: Path) -> None:
    hide = "import sys; sys.modules['mcp'] = None; from pumice.cli import main; main()"
    command = [sys.executable, "-c", hide, "mcp", "-f", str(clusters.manifests(tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, input="", cwd=source.ROOT)
    assert done.returncode == 2
    assert "Tools for agents need mcp, which is not installed: pip install 'pumice[mcp]'" in done.stderr


def test_no_other_command_loads_the_sdk() -> None:
    commands = "import sys, pumice.cli.queue, pumice.cli.run, pumice.cli.mcp"
    code = f"{commands}; print({{'mcp', 'pydantic', 'uvicorn'}} & {{*sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, cwd=source.ROOT
    )
    assert done.stdout.strip() == "set()"
