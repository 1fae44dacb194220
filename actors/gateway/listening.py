"""The socket on which clients come: bound before all other work, and without loading a web server."""

from __future__ import annotations

import socket

from pumice.actors.errors import ListenError


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes any free one. Raises ListenError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise ListenError(f"cannot listen on {host}:{port}: {why or error}") from error
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setblocking(False)
    return listener
