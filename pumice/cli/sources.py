# SPDX-License-Identifier: Apache-2.0
"""Sources of a question about a cluster: a journal, a server, or manifests; options and readers."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import anyio
import typer

from pumice.cli.exits import UsageError
from pumice.cli.inputs import in_force, warn_of_token
from pumice.cli.terminal import Terminal
from pumice.questions.explain.refused import refused_in
from pumice.questions.explain.scene import Scene, present, scene_of
from pumice.questions.explain.server import Server, fetch, next_cycle
from pumice.questions.history.rewind import demand_volcano, newest_cycle, rewind_file, warn_of_damage
from pumice.questions.oneshot.obstacles import obstacles
from pumice.questions.replay.plugins import demand_plugins
from pumice.runtime.tokens import token_given

Db = Annotated[
    Path | None,
    typer.Option("--db", metavar="FILE", help="Journal to read.", envvar="PUMICE_DB", show_default="pumice.db"),
]
At = Annotated[
    int | None,
    typer.Option("--cycle", "--at", metavar="N", min=1, help="Cycle of the journal. Default: the newest."),
]
ServerUrl = Annotated[
    str | None,
    typer.Option("--server", metavar="URL", help="Ask a running server instead, about its next cycle."),
]
Token = Annotated[
    str | None,
    typer.Option("--token", metavar="TOKEN", help="Token of the server.", envvar="PUMICE_TOKEN", show_default=False),
]
TokenFile = Annotated[
    str | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help="File that holds the token.",
        envvar="PUMICE_TOKEN_FILE",
        show_default=False,
    ),
]
Certificate = Annotated[
    Path | None, typer.Option("--cacert", metavar="PEM", help="Certificates to trust besides the system's.")
]

OwnConfig = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="CONF",
        help="Volcano's scheduler.conf, plain or inside its ConfigMap. Default: the server's own, else Volcano's stock "
        "configuration.",
        envvar="PUMICE_CONFIG",
        show_default=False,
    ),
]


def one_source(db: Path | None, server: Server | None, manifests: Sequence[str] | None) -> None:
    """Check that only one source is named. Raises UsageError."""
    given = [name for name, value in (("--db", db), ("--server", server), ("-f", manifests)) if value]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} name different clusters: say one of them", path=given[0])


def scene_from(
    db: Path | None,
    at: int | None,
    server: Server | None,
    manifests: Sequence[str] | None,
    config: Path | None,
    plugins_dir: Path | None,
    lenient: bool,
    terminal: Terminal,
) -> Scene:
    """Return the requested cycle: a recorded one, or the next one of a server or of manifests. Loaded objects are kept
    from the garbage collector: they stay, and are many.
    """
    one_source(db, server, manifests)
    if server is None and not manifests:
        scene = _recorded(db or Path("pumice.db"), at, config, plugins_dir, terminal)
        objects = scene.objects()
    else:
        if at is not None:
            raise UsageError("this shows the present; a recorded cycle is in a journal: --db", path="--cycle")
        _, settings = in_force(config, server, plugins_dir, lenient, terminal.warn)
        if server is not None:
            objects, now, cycle = fetch(server), time.time(), next_cycle(server)
        else:
            from pumice.cli.manifests import take_manifests  # noqa: PLC0415 - an API, which a journal does not need

            (objects, _, now, _), cycle = take_manifests(manifests or (), (), None, terminal), 1
        scene = present(objects, settings, now, terminal.warn, cycle)
    for sentence in obstacles(scene.config, objects):
        terminal.warn(sentence)
    gc.freeze()
    return scene


def _recorded(db: Path, at: int | None, config: Path | None, plugins_dir: Path | None, terminal: Terminal) -> Scene:
    if config is not None:
        raise UsageError("a journal holds its own configuration; --config goes with --server and -f", path="--config")
    anyio.run(demand_plugins, db, plugins_dir, terminal.warn)
    cycle = at if at is not None else anyio.run(newest_cycle, db)
    past = anyio.run(rewind_file, db, cycle)
    demand_volcano(past)
    warn_of_damage(past, db, terminal.warn)
    return replace(scene_of(past), refused=anyio.run(refused_in, db, at))


def server_of(
    url: str | None, token: str | None, token_file: str | None, certificate: Path | None, terminal: Terminal
) -> Server | None:
    """Return the server that is meant, None for none. Raises ConfigError, OSError."""
    if url is not None:
        warn_of_token(token, terminal)
        return Server(url, token_given(token, token_file), certificate)
    given = {"--token": token, "--token-file": token_file, "--cacert": certificate}
    for flag, value in given.items():
        if value is not None and value not in (os.environ.get("PUMICE_TOKEN"), os.environ.get("PUMICE_TOKEN_FILE")):
            raise UsageError("this is for a server: name it with --server URL", path=flag)
    return None
