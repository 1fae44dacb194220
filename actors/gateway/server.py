# SPDX-License-Identifier: Apache-2.0
"""The application on hypercorn, on either backend, until it is asked to stop."""

from __future__ import annotations

import errno
import logging
import os
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any, Final

import anyio
from anyio.lowlevel import current_token
from hypercorn.config import Config, Sockets
from hypercorn.events import Closed, Event, RawData, Updated

from pumice.actors.gateway.budget import CONNECTION, ByteBudget, LoopTurns, NoRoomError, Share, Use
from pumice.actors.gateway.protocols import HEADERS, LastingWrapper, mend
from pumice.actors.gateway.request.exchange import App
from pumice.actors.gateway.settings import WAITING, GatewaySettings

# --- Too many connections
# When the process runs out of file descriptors, connections are refused, and that is said once a second. asyncio
# shows a traceback for each one that it cannot accept, as many at a time as there wait; trio one every tenth of a
# second. Some descriptors are left to the others of the process, the journal above all: on asyncio by the listener,
# on trio, which takes no socket but a plain one, by a look at the last ones ten times a second.

RESERVE: Final = 16
"""Descriptors that connections leave to others."""
ACCEPTED: Final = 50
"""Connections that are accepted before others work: the start of each takes some tenths of a millisecond."""
EVERY_S: Final = 1.0
"""Between two warnings."""
_NONE_LEFT: Final = (errno.EMFILE, errno.ENFILE)

log = logging.getLogger(__name__)


class Complaints:
    """Refused connections, logged in one warning a second with their number."""

    def __init__(self) -> None:
        self._last = -1.0
        self._waiting = 0

    def refused(self) -> None:
        """Count one more refusal."""
        self._waiting += 1
        if monotonic() - self._last >= EVERY_S:
            self.say()

    def say(self) -> None:
        """Log the new refusals, if any."""
        if self._waiting:
            log.warning("connections refused: %d (the process may have no more open files)", self._waiting)
            self._last, self._waiting = monotonic(), 0

    async def keep_saying(self) -> None:
        """Log until cancelled; the rest of a burst is logged when it has ended."""
        try:
            while True:
                await anyio.sleep(EVERY_S)
                self.say()
        finally:
            self.say()


class BoundedListener(socket.socket):
    """Closes connections beyond `most` descriptors immediately; the caller of accept sees that none was waiting."""

    most: int
    complaints: Complaints

    def listen(self, _backlog: int = 0) -> None:
        """Let as many wait as before: asyncio listens again, with the number that it accepts at a time."""
        super().listen(WAITING)

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection and its address, as of any socket; a lack of descriptors is logged once in a
        while.
        """
        try:
            connection, address = super().accept()
        except OSError as error:
            if error.errno in _NONE_LEFT:
                self.complaints.refused()
            raise
        if connection.fileno() >= self.most:
            connection.close()
            self.complaints.refused()
            raise ConnectionAbortedError(errno.ECONNABORTED, "no descriptor to spare")
        return connection, address


class OneLine(logging.Filter):
    """Turns trio's messages about a connection that it cannot accept into one line."""

    def __init__(self, complaints: Complaints) -> None:
        super().__init__()
        self._complaints = complaints

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record must be logged: not one about descriptors, which gets a line of its own."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, OSError) and error.errno in _NONE_LEFT:
            self._complaints.refused()
            return False
        return True


def bounded(descriptor: int, complaints: Complaints) -> BoundedListener:
    """Return the listening socket of this number, which is its own from now on."""
    listener = BoundedListener(fileno=descriptor)
    listener.setblocking(False)
    listener.most = most_descriptors()
    listener.complaints = complaints
    return listener


def most_descriptors() -> int:
    """Return the first descriptor that a connection may not have."""
    try:
        resource: Any = import_module("resource")
    except ImportError:  # no such limit on this system
        return 1 << 30
    soft: int = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    # RLIM_INFINITY is -1 in Python.
    return max(soft - RESERVE, RESERVE) if soft > 0 else 1 << 30


# --- Breaking off connections of clients that do not read
# Under trio hypercorn shields a send against cancellation, and it has no public access to its sockets: a client that
# has stopped reading would keep a stopping server waiting for ever. So the open files of the process are searched for
# connections of the listening port.

DESCRIPTORS: Final = Path("/dev/fd")


def break_off(listener: socket.socket) -> int:
    """Shut down every connection that was accepted from `listener`, and return their number."""
    return sum(_shut(number, listener) for number in _open_descriptors())


def break_off_from(first: int, count: int, listener: socket.socket) -> int:
    """Shut down those of the `count` descriptors from `first` on that are connections of `listener`, and return their
    number.
    """
    return sum(_shut(number, listener) for number in range(first, first + count))


@cache
def closing_promptly(server: Any) -> Any:
    """Hypercorn's server of one connection, corrected: it has no task for the idle timeout (`IdleTimeout`), and leaves
    nothing to the garbage collector.
    """
    # A gateway that starts again finds its own class in hypercorn, which must not be wrapped twice.
    if getattr(server, "closes_promptly", False):
        return server

    class PromptServer(server):  # type: ignore[misc]
        closes_promptly = True
        idle_since = monotonic()

        async def run(self) -> None:
            self.idle_since = monotonic()
            writer = getattr(self, "writer", None)
            if writer is not None:
                # A send ends when the kernel has all of it: what waits is then what its sender has counted. Not 0:
                # asyncio's TLS pauses at that size, so after every write, and goes on only when its client sends more.
                writer.transport.set_write_buffer_limits(high=1, low=0)
            budget: ByteBudget = self.config.budget
            self.share = Share(budget, self.cut, Use.IDLE)
            self.idle_task = self.config.idle
            try:
                await budget.demand(self.share, CONNECTION)
                self.share.since = anyio.current_time()
                await server.run(self)
            except NoRoomError:
                self.cut()
                await self._close()
            finally:
                budget.give_back(self.share)
                self.config.idle.forget(self)
                for name in ("protocol", "share"):  # which refer back to it
                    self.__dict__.pop(name, None)
                if writer is not None and writer.transport.is_closing():
                    # asyncio's transport holds a method of its own, which nothing calls once it closes.
                    getattr(writer.transport, "__dict__", {}).pop("_read_ready_cb", None)

        def cut(self) -> None:
            """Break the connection off."""
            _reset(self)

        async def _close(self) -> None:
            """Close like hypercorn, which on asyncio would wait for ever for a client that does not read."""
            with anyio.move_on_after(LINGER_S) as time:
                await server._close(self)
            if time.cancelled_caught:
                self.cut()

        async def protocol_send(self, event: Event) -> None:
            """Send data. asyncio accepts writes to a connection that has gone, and logs a line each time. A
            request only notes when it began and ended, for the idle timeout.
            """
            if isinstance(event, Updated):
                self.idle_since = monotonic() if event.idle else inf
                self.share.since = anyio.current_time() if event.idle else None
                return
            writer = getattr(self, "writer", None)
            if isinstance(event, RawData) and writer is not None and writer.transport.is_closing():
                await self.protocol.handle(Closed())
                return
            await server.protocol_send(self, event)

    return PromptServer


class IdleTimeout:
    """Closes connections that have been idle for too long, or are idle when the server stops.

    It stands where hypercorn has a task for each connection, whose timer, scope, frames and locks were 3 of the 41 KB
    that a connection with an idle watch takes.
    """

    def __init__(self) -> None:
        self._open: dict[Any, None] = {}

    async def restart(self, _tasks: object, action: Any) -> None:
        """Look at the connection that calls this from now on."""
        self._open[action.__self__] = None

    async def stop(self) -> None:
        """Do nothing: hypercorn stops the task of a connection that closes, which then calls `forget`."""

    def forget(self, connection: Any) -> None:
        """Stop looking at a connection."""
        self._open.pop(connection, None)

    async def keep(self, stop: anyio.Event, most_s: float) -> None:
        """Look until cancelled. While a request is open when the server stops, hypercorn closes it afterwards."""
        async with anyio.create_task_group() as closing:
            while True:
                with anyio.move_on_after(min(IDLE_LOOK_S, most_s)):
                    await stop.wait()
                if stop.is_set():
                    most_s = 0.0
                    await anyio.sleep(STOP_LOOK_S)
                now = monotonic()
                for connection in [each for each in self._open if each.idle_since + most_s <= now]:
                    connection.idle_since = inf  # once
                    closing.start_soon(_end, connection)


async def _end(connection: Any) -> None:
    try:
        await connection._initiate_server_close()
    except Exception as error:  # noqa: BLE001 - a transport that has failed; the others must go on
        log.debug("an idle connection was cut, for it could not be closed: %r", error)
        connection.cut()


def _reset(server: Any) -> None:
    """Break a connection off; what its client has not read is dropped, by the kernel too."""
    writer = getattr(server, "writer", None)
    if writer is None:
        stream: Any = getattr(server.stream, "transport_stream", server.stream)
        with suppress(OSError):
            stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
            stream.socket.shutdown(socket.SHUT_RDWR)
        return
    with suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    writer.transport.abort()


def _open_descriptors() -> list[int]:
    try:
        return [int(name) for name in os.listdir(DESCRIPTORS) if name.isdigit()]  # noqa: PTH208 - names are wanted
    except OSError:
        return []


def _shut(number: int, listener: socket.socket) -> bool:
    try:
        mine: Any = listener.getsockname()
        connection = socket.socket(fileno=number)
    except OSError:
        return False
    try:
        with suppress(OSError):
            # By port: a listener on all interfaces has another address than its connections.
            if connection.getsockname()[1] == mine[1] and connection.family == listener.family:
                connection.getpeername()  # raises for the listener itself
                connection.shutdown(socket.SHUT_RDWR)
                return True
        return False
    except (IndexError, TypeError):  # a socket of another family
        return False
    finally:
        # The descriptor has another owner: without this the socket object would close it.
        connection.detach()


AT_ONCE: Final = struct.pack("ii", 1, 0)
"""For SO_LINGER: the end of a connection drops what its client has not taken, which the kernel would keep trying."""
LINGER_S: Final = 5.0
"""Time for a client to take the rest of what was sent to it before its connection is closed."""
IDLE_S: Final = 120.0
"""An unused connection is closed after so long: later than client-go's 90 s, so that no request meets a closing one."""
IDLE_LOOK_S: Final = 1.0
"""Between two looks for unused connections."""
STOP_LOOK_S: Final = 0.02
"""The same while the server stops, when requests end."""
SHUTDOWN_S: Final = 1.0
"""Hypercorn's own patience at the end: by then every stream is closed."""

LOOK_S: Final = 0.1
"""On trio a connection may have one of the last descriptors for so long; trio itself tries again as often."""

Serve = Callable[..., Awaitable[None]]


async def serve(app: App, settings: GatewaySettings, stop: anyio.Event, budget: ByteBudget, turns: LoopTurns) -> None:
    """Serve until `stop` is set and everything open has been closed. `budget`: of what is held for clients; `turns`:
    of all that they ask.
    """
    duplicate = os.dup(settings.listener.fileno())  # hypercorn closes what it listens on
    complaints = Complaints()
    config: Any = _config(settings, duplicate, complaints)
    config.budget = budget
    config.turns = turns
    config.idle = IdleTimeout()
    filtering = OneLine(complaints)
    accepting = logging.getLogger("trio.serve_listeners")
    accepting.addFilter(filtering)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(complaints.keep_saying)
            tasks.start_soon(budget.keep)
            tasks.start_soon(config.idle.keep, stop, config.keep_alive_timeout)
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
    """Return hypercorn's server for the running event loop."""
    name = "hypercorn.trio" if _on_trio() else "hypercorn.asyncio"
    run: Any = import_module(f"{name}.run")
    run.TCPServer = closing_promptly(run.TCPServer)
    connection: Any = import_module(f"{name}.tcp_server")
    connection.ProtocolWrapper = LastingWrapper
    mend()
    found: Serve = import_module(name).serve
    return found


async def _keep_some_free(listener: socket.socket, complaints: Complaints) -> None:
    """Refuse connections that hold one of the last descriptors, as `BoundedListener` does where it may accept."""
    most = most_descriptors()
    while True:
        await anyio.sleep(LOOK_S)
        for _ in range(break_off_from(most, RESERVE, listener)):
            complaints.refused()


async def _break_off_late(listener: socket.socket, stop: anyio.Event) -> None:
    """Break off connections that are still open when hypercorn is about to end, so that they delay nothing."""
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
    # asyncio accepts so many in each turn of its loop.
    config.backlog = WAITING if _on_trio() else ACCEPTED
    # By default hypercorn closes a connection after 1,000 requests, and a busy client must connect anew.
    config.keep_alive_max_requests = 2**62
    config.h11_max_incomplete_size = HEADERS
    config.h2_max_header_list_size = HEADERS
    config.websocket_max_message_size = HEADERS  # what a client sends there has no reader
    config.graceful_timeout = SHUTDOWN_S
    config.alpn_protocols = ["http/1.1"]
    if settings.certificate is not None:
        config.certfile = str(settings.certificate)
        config.keyfile = str(settings.key)
    if settings.client_authority is not None:
        config.ca_certs = str(settings.client_authority)
        config.verify_mode = ssl.CERT_OPTIONAL  # a client may have a token instead
    if not _on_trio():  # which takes no socket but a plain one
        listener: list[socket.socket] = [bounded(descriptor, complaints)]
        secure = settings.certificate is not None
        config.create_sockets = lambda: Sockets(listener if secure else [], [] if secure else listener, [])
    found: Config = config
    return found
