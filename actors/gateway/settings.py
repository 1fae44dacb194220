# SPDX-License-Identifier: Apache-2.0
"""Settings of the gateway."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Literal

from pumice.actors.errors import ListenError
from pumice.actors.gateway.advice import Adviser
from pumice.cluster.faults.rules import FaultProfile
from pumice.cluster.rbac.rules import User

Authorization = Literal["none", "rbac"]

MIB = 1024 * 1024
CLIENT_BYTES: Final = 128 * MIB
OBJECTS: Final = 1_000_000
OBJECT_BYTES: Final = 8 * 1024 * MIB
REVISIONS_PER_S = 10_000
"""With a gateway, revisions begin at the time in such units: no client has ever seen a higher one."""


@dataclass(frozen=True)
class GatewaySettings:
    """Settings. `listener` is bound and listening already, so a taken port is known before all other work.

    `token` "" asks for none. `certificate` and `key` (PEM files) make it TLS. `body_limit` bytes; `watch_limit` watches
    at a time; `client_bytes` are held at most for all clients together (see `budget.py`); clients create no more than
    `object_limit` objects with `object_bytes` in all; `ring_bytes` of watch events are kept at most, `ring_events` of
    each kind. `adviser` answers what takes long (see `advice.py`), `question_limit` questions at a time, each for
    `question_s` at most. `find_adviser` is asked
    for one before each question, where the journal is not a file. `reads_only`: no client may write. `faults`: the
    profile that is in force from the beginning.

    `authorization`: "rbac", or "none" where all may do everything. `users` by token (more may come while it runs),
    besides the holder of `token`, who may do everything; `client_authority` (a PEM file) signs client certificates.
    `account_key` signs tokens of ServiceAccounts.
    """

    listener: socket.socket
    token: str = ""
    certificate: Path | None = None
    key: Path | None = None
    body_limit: int = 3 * MIB
    watch_limit: int = 2_000
    client_bytes: int = CLIENT_BYTES
    object_limit: int = OBJECTS
    object_bytes: int = OBJECT_BYTES
    ring_bytes: int = 64 * MIB
    ring_events: int = 8_192
    grace_s: float = 2.0
    adviser: Adviser | None = None
    find_adviser: Callable[[], Awaitable[Adviser]] | None = None
    question_limit: int = 2
    question_s: float = 120.0
    reads_only: bool = False
    faults: FaultProfile = field(default_factory=FaultProfile)
    authorization: Authorization = "none"
    users: Mapping[str, User] = field(default_factory=dict[str, User])
    client_authority: Path | None = None
    account_key: bytes = field(default_factory=partial(secrets.token_bytes, 32), repr=False)

    @property
    def address(self) -> tuple[str, int]:
        """Return the host and port of the listener."""
        name = self.listener.getsockname()
        return name[0], name[1]

    @property
    def url(self) -> str:
        """Return the URL for clients; an address that stands for every interface becomes the loopback one."""
        host, port = self.address
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        shown = f"[{host}]" if ":" in host else host
        return f"{'https' if self.certificate else 'http'}://{shown}:{port}"


# --- The socket on which clients come


SEND_BUFFER: Final = 128 * 1024
"""Bytes of a connection that wait in the kernel (which doubles it for its own books)."""


WAITING: Final = 4096
"""Connections that may wait to be accepted (Linux' own bound, too). When more come the kernel drops them, and clients
try again after a second.
"""


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes any free one. Raises ListenError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=WAITING)
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise ListenError(f"cannot listen on {host}:{port}: {why or error}") from error
    # Connections inherit it: a small event must not wait until the last one is acknowledged.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # By itself the kernel would take four megabytes for each client that does not read.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
    listener.setblocking(False)
    return listener
