"""Breaking connections off, for clients that do not read what they are sent.

Under trio hypercorn shields a send against cancellation, and it gives nobody its sockets: a client that has stopped
reading would keep a server that wants to stop waiting for ever. So the open files of the process are looked through for
connections of the listening port.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

from hypercorn.events import Closed, Event, RawData

DESCRIPTORS: Final = Path("/dev/fd")


def break_off(listener: socket.socket) -> int:
    """Shut down every connection that was accepted from `listener`; how many there were."""
    return sum(_shut(number, listener) for number in _open_descriptors())


def break_off_from(first: int, count: int, listener: socket.socket) -> int:
    """Shut down those of the `count` descriptors from `first` on that are connections of `listener`; how many are."""
    return sum(_shut(number, listener) for number in range(first, first + count))


@cache
def closing_promptly(server: Any) -> Any:
    """Hypercorn's server of one connection, mended: what its client has closed would be kept until it was idle for too
    long, since the task that looks after that is waited for, and then until the collector came.
    """
    if getattr(server, "closes_promptly", False):
        return server

    class PromptServer(server):  # type: ignore[misc]
        closes_promptly = True

        async def run(self) -> None:
            try:
                await server.run(self)
            finally:
                self.__dict__.pop("protocol", None)  # which refers back to it

        async def protocol_send(self, event: Event) -> None:
            """asyncio takes what is written to a connection that has gone, and logs a line each time."""
            writer = getattr(self, "writer", None)
            if isinstance(event, RawData) and writer is not None and writer.transport.is_closing():
                await self.protocol.handle(Closed())
                return
            await server.protocol_send(self, event)

        async def _read_data(self) -> None:
            await server._read_data(self)
            await self.idle_task.stop()

    return PromptServer


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
            if connection.getsockname()[1] == mine[1] and connection.family == listener.family:
                connection.getpeername()  # raises for the listener itself
                connection.shutdown(socket.SHUT_RDWR)
                return True
        return False
    except (IndexError, TypeError):  # a socket of another family
        return False
    finally:
        connection.detach()
