"""The application on hypercorn, on either backend, until it is told to stop."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, Final

import anyio
from anyio.lowlevel import current_token
from hypercorn.config import Config, Sockets
from starlette.applications import Starlette

from pumice.actors.gateway.connections import break_off, break_off_from, closing_promptly
from pumice.actors.gateway.descriptors import RESERVE, Complaints, OneLine, bounded, most_descriptors
from pumice.actors.gateway.protocols import HEADERS, LastingWrapper, mend
from pumice.actors.gateway.settings import GatewaySettings

IDLE_S: Final = 120.0
"""An unused connection is closed after so long: later than client-go's 90 s, so that no request meets a closing one."""
SHUTDOWN_S: Final = 1.0
"""Hypercorn's own patience at the end: by then every stream is closed."""

LOOK_S: Final = 0.1
"""On trio a connection may have one of the last descriptors for so long; trio itself tries again as often."""

Serve = Callable[..., Awaitable[None]]


async def serve(app: Starlette, settings: GatewaySettings, stop: anyio.Event) -> None:
    """Serve until `stop` is set and everything open has been closed."""
    duplicate = os.dup(settings.listener.fileno())  # hypercorn closes what it listens on
    complaints = Complaints()
    config = _config(settings, duplicate, complaints)
    filtering = OneLine(complaints)
    accepting = logging.getLogger("trio.serve_listeners")
    accepting.addFilter(filtering)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(complaints.keep_saying)
            tasks.start_soon(_break_off_late, settings.listener, stop)
            if _on_trio():
                tasks.start_soon(_keep_some_free, settings.listener, complaints)
            await _backend()(app, config, shutdown_trigger=stop.wait)
            tasks.cancel_scope.cancel()
    finally:
        accepting.removeFilter(filtering)


def _on_trio() -> bool:
    return type(current_token().native_token).__module__.startswith("trio")


def _backend() -> Serve:
    """Hypercorn's server for the event loop that is running."""
    name = "hypercorn.trio" if _on_trio() else "hypercorn.asyncio"
    run: Any = import_module(f"{name}.run")
    run.TCPServer = closing_promptly(run.TCPServer)
    connection: Any = import_module(f"{name}.tcp_server")
    connection.ProtocolWrapper = LastingWrapper
    mend()
    found: Serve = import_module(name).serve
    return found


async def _keep_some_free(listener: socket.socket, complaints: Complaints) -> None:
    """What has one of the last descriptors is refused, as `BoundedListener` does where it may accept."""
    most = most_descriptors()
    while True:
        await anyio.sleep(LOOK_S)
        for _ in range(break_off_from(most, RESERVE, listener)):
            complaints.refused()


async def _break_off_late(listener: socket.socket, stop: anyio.Event) -> None:
    """Connections that are still open when hypercorn is about to end keep nobody waiting."""
    await stop.wait()
    while True:
        await anyio.sleep(SHUTDOWN_S / 4)
        break_off(listener)


def _config(settings: GatewaySettings, descriptor: int, complaints: Complaints) -> Config:
    config: Any = Config()
    config.bind = [f"fd://{descriptor}"]
    config.accesslog = None
    config.errorlog = logging.getLogger("hypercorn.error")
    config.include_server_header = False
    config.keep_alive_timeout = IDLE_S
    config.keep_alive_max_requests = 2**62
    config.h11_max_incomplete_size = HEADERS
    config.h2_max_header_list_size = HEADERS
    config.websocket_max_message_size = HEADERS  # nobody listens to what a client says there
    config.graceful_timeout = SHUTDOWN_S
    config.alpn_protocols = ["http/1.1"]
    if settings.certificate is not None:
        config.certfile = str(settings.certificate)
        config.keyfile = str(settings.key)
    if not _on_trio():  # which takes no socket but a plain one
        listener: list[socket.socket] = [bounded(descriptor, complaints)]
        secure = settings.certificate is not None
        config.create_sockets = lambda: Sockets(listener if secure else [], [] if secure else listener, [])
    found: Config = config
    return found
