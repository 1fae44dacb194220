# SPDX-License-Identifier: Apache-2.0
"""`pumice mcp`: read-only tools for agents, over the Model Context Protocol."""

from __future__ import annotations

import os
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import anyio
import typer

from pumice.actors.gateway.identity.authenticator import is_loopback
from pumice.actors.gateway.settings import listen
from pumice.agents.asking import TIMEOUT_S, ToolDesk
from pumice.agents.tools import AgentSource
from pumice.cli.exits import Exit, UsageError
from pumice.cli.options import Config, Manifests, PluginsDir
from pumice.cli.sources import Certificate, Db, ServerUrl, Token, TokenFile, one_source, server_of
from pumice.cli.terminal import Terminal, speaking
from pumice.cli.view import address
from pumice.errors import demand
from pumice.questions.explain.server import Server
from pumice.questions.history.rewind import newest_cycle
from pumice.results import Result


class McpResult(Result, kw_only=True, tag="mcp/1"):
    """Address at which the tools are served over HTTP."""

    url: str


@speaking
def mcp(
    db: Db = None,
    server: ServerUrl = None,
    token: Token = None,
    token_file: TokenFile = None,
    certificate: Certificate = None,
    manifests: Manifests = None,
    config: Config = None,
    gate: Annotated[
        Path | None,
        typer.Option("--gate", metavar="POLICY", help="Policy file for the tool gate.", show_default=False),
    ] = None,
    http: Annotated[
        str | None,
        typer.Option(
            "--http",
            metavar="HOST:PORT",
            help="Serve at http://HOST:PORT/mcp, an address of this machine; port 0: any free one. Default: stdio.",
            show_default=False,
        ),
    ] = None,
    timeout_s: Annotated[
        float, typer.Option("--timeout", metavar="S", min=1.0, help="Seconds that an answer may take.")
    ] = TIMEOUT_S,
    plugins_dir: PluginsDir = None,
    *,
    terminal: Terminal,
) -> int:
    """Serve until the client goes, or Ctrl-C."""
    asked = server_of(server, token, token_file, certificate, terminal)
    one_source(db, asked, manifests)
    demand("mcp", "mcp", "Tools for agents")
    serving: Any = import_module("pumice.agents.server")  # the SDK takes half a second
    source = _source(db, asked, manifests, config, gate, plugins_dir)
    if asked is not None and asked.token:
        os.environ["PUMICE_TOKEN"] = asked.token  # for the commands that answer, whose words anybody can see
    made = serving.build_server(
        ToolDesk(source, timeout_s), str(source.db or source.server or ", ".join(source.manifests))
    )
    if http is None:
        anyio.run(serving.serve_stdio, made)
        return Exit.DONE
    host, port = address(http)
    if not is_loopback(host):
        raise UsageError(f"{host} can be reached from other machines: expected an address of this one", path="--http")
    listener = listen(host, port)
    url = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/mcp"
    terminal.emit(McpResult(url=url), lambda console: console.print(f"tools for agents on {url}"))
    anyio.run(partial(serving.serve_http, made, listener, host))
    return Exit.DONE


def _source(
    db: Path | None,
    server: Server | None,
    manifests: list[str] | None,
    config: Path | None,
    gate: Path | None,
    plugins_dir: Path | None,
) -> AgentSource:
    """Return the cluster, tried. Raises UsageError, ConfigError."""
    if "-" in (manifests or ()):
        raise UsageError("stdin is the client's: name a file", path="-f")
    file = None if server is not None or manifests else (db or Path("pumice.db"))
    if file is not None and config is not None:
        raise UsageError("a journal holds its own configuration; --config goes with --server and -f", path="--config")
    return AgentSource(
        db=None if file is None else file.resolve(),
        cycle=None if file is None else anyio.run(newest_cycle, file),
        server=None if server is None else server.url,
        certificate=_absolute(None if server is None else server.certificate),
        manifests=[_absolute_input(each) for each in manifests or ()],
        config=_absolute(config),
        plugins_dir=_absolute(plugins_dir),
        gate=_absolute(gate),
    )


def _absolute(path: Path | None) -> Path | None:
    """Return the path as a command in another folder finds it. Raises UsageError for one that does not exist."""
    if path is not None and not path.exists():
        raise UsageError("does not exist", path=str(path))
    return None if path is None else path.resolve()


def _absolute_input(given: str) -> str:
    """Return an input as a command in another folder finds it; a trace keeps its prefix."""
    form, colon, names = given.rpartition(":")
    return form + colon + ",".join(str(_absolute(Path(each))) for each in names.split(","))
