"""The gateway's settings out of the process settings: what goes together, and the socket."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from actors.gateway.listening import listen
from actors.gateway.security import is_loopback
from actors.gateway.settings import GatewaySettings
from config.errors import ConflictError
from config.settings import ProcessSettings

MOST_PORT = 65_535


def gateway_settings(settings: ProcessSettings) -> GatewaySettings | None:
    """None without `http`. Raises ConfigError for what does not go together, ListenError when the port is taken."""
    if settings.http is None:
        return None
    host, _, port = settings.http.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if int(port) > MOST_PORT:
        raise ConflictError(f"expected a port of at most {MOST_PORT}, found {port}", path="--http")
    if settings.time == "virtual":
        raise ConflictError("clients live in real time; leave --time out", path="--http")
    token = token_of(settings)
    if not token and not is_loopback(host):
        raise ConflictError(f"{host} can be reached from other machines: give a --token as well", path="--http")
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise ConflictError("a certificate and its key go together", path="--tls-cert")
    certificate, key = (Path(name) if name else None for name in (settings.tls_cert, settings.tls_key))
    for file in (certificate, key):
        if file is not None:
            file.read_bytes()
    from pumice.adviser.answers import answer  # noqa: PLC0415 - a tenth of a start

    adviser = partial(answer, settings.db, settings.plugins_dir)
    return GatewaySettings(listen(host, int(port)), token=token, certificate=certificate, key=key, adviser=adviser)


def token_of(settings: ProcessSettings) -> str:
    """The token, or what the file of it holds. Raises ConflictError, OSError."""
    if settings.token_file is None:
        given = settings.token or ""
        return _sendable(given, "PUMICE_TOKEN" if given == os.environ.get("PUMICE_TOKEN") else "--token")
    if settings.token is not None:
        raise ConflictError("give --token or --token-file", path="--token")
    token = Path(settings.token_file).read_text(encoding="utf-8", errors="replace").strip()
    if not token:
        raise ConflictError("expected a token in the file, found nothing", path="--token-file")
    return _sendable(token, "--token-file")


def _sendable(token: str, path: str) -> str:
    """A token that clients can put into a header."""
    if not all("!" <= letter <= "~" for letter in token):
        raise ConflictError("expected a token of printable ASCII without spaces: no other can be sent", path=path)
    return token
