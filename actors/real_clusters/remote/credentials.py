"""What to show to an API server, and another one when it has run out."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

import anyio
from msgspec import Struct

from pumice.actors.errors import CredentialsError
from pumice.config.input_file import read_text
from pumice.config.kubeconfig import ClusterAccess

READ_AGAIN_S: Final = 60.0
"""A token's file is read again after so long (source: client-go's `cachingTokenSource`): kubelets rotate it."""


class Credential(Struct, frozen=True):
    """The Authorization header, "" for none, and a client certificate with its key in PEM, b"" for none."""

    header: str = ""
    certificate: bytes = b""
    key: bytes = b""


class Credentials(Protocol):
    """Where credentials come from."""

    async def current(self) -> Credential:
        """What to show now. Raises CredentialsError."""
        ...

    def refused(self) -> None:
        """The server would not have the last one (401): the next must be another, if there is one."""
        ...


class Fixed:
    """A token, a name with a password, a certificate, or nothing: there is no other."""

    def __init__(self, access: ClusterAccess) -> None:
        self._credential = Credential(_header(access), access.certificate, access.key)

    async def current(self) -> Credential:
        """Always the same."""
        return self._credential

    def refused(self) -> None:
        """Nothing can be done about it."""


class TokenFile:
    """A token that somebody else keeps fresh in a file. `now`: seconds of any clock that only goes on."""

    def __init__(self, path: Path, access: ClusterAccess, now: Callable[[], float] = anyio.current_time) -> None:
        self._path = path
        self._access = access
        self._now = now
        self._token = ""
        self._read_at: float | None = None

    async def current(self) -> Credential:
        """The newest token; the one before while the file cannot be read. Raises CredentialsError without any."""
        if self._read_at is None or self._now() - self._read_at >= READ_AGAIN_S:
            self._read()
        return Credential(f"Bearer {self._token}", self._access.certificate, self._access.key)

    def refused(self) -> None:
        """Look into the file at once."""
        self._read_at = None

    def _read(self) -> None:
        try:
            found = read_text(self._path).strip()
        except (OSError, UnicodeDecodeError) as error:
            if not self._token:
                raise CredentialsError(f"{self._path}: no token can be read: {error}") from error
            return
        if not found and not self._token:
            raise CredentialsError(f"{self._path}: expected a token, found nothing")
        self._token, self._read_at = found or self._token, self._now()


def _header(access: ClusterAccess) -> str:
    if access.token:
        return f"Bearer {access.token}"
    if access.username:
        return f"Basic {b64encode(f'{access.username}:{access.password}'.encode()).decode()}"
    return ""
