"""Credentials from a program, as cloud providers have it (source: `client.authentication.k8s.io`, ExecCredential)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from subprocess import DEVNULL
from typing import Any, Final, cast

import anyio

from pumice.actors.errors import CredentialsError
from pumice.actors.real_clusters.remote.credentials import Credential
from pumice.config.kubeconfig import ClusterAccess, ExecPlugin
from pumice.core.objects.metadata import parse_time, section

PATIENCE_S: Final = 60.0
EARLIER_S: Final = 10.0
"""A credential counts as expired so long before it does."""
EXCERPT: Final = 200


class FromPlugin:
    """`now`: seconds since the epoch. One program runs at a time, whoever asks."""

    def __init__(self, access: ClusterAccess, plugin: ExecPlugin, now: Callable[[], float]) -> None:
        self._access = access
        self._plugin = plugin
        self._now = now
        self._known: Credential | None = None
        self._until = float("inf")
        self._turn = anyio.Lock()

    async def current(self) -> Credential:
        """What the program last said, asked again when that has expired. Raises CredentialsError."""
        async with self._turn:
            if self._known is None or self._now() >= self._until - EARLIER_S:
                self._known, self._until = self._understood(await self._ask())
            return self._known

    def refused(self) -> None:
        """Ask the program again."""
        self._known = None

    async def _ask(self) -> bytes:
        plugin = self._plugin
        environment = {**os.environ, **dict(plugin.env), "KUBERNETES_EXEC_INFO": json.dumps(self._told())}
        try:
            with anyio.fail_after(PATIENCE_S):
                done = await anyio.run_process(
                    [plugin.command, *plugin.args], stdin=DEVNULL, env=environment, check=False
                )
        except FileNotFoundError as error:
            hint = f": {plugin.hint}" if plugin.hint else ""
            raise self._failed(f"there is no such program{hint}") from error
        except TimeoutError as error:
            raise self._failed(f"said nothing in {PATIENCE_S:.0f} s") from error
        except OSError as error:
            raise self._failed(f"cannot be started: {error.strerror}") from error
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[:EXCERPT]
            raise self._failed(f"ended with {done.returncode}: {said}")
        return done.stdout

    def _told(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"interactive": False}
        if self._plugin.cluster_info:
            spec["cluster"] = {"server": self._access.server, "insecure-skip-tls-verify": self._access.insecure}
        return {"kind": "ExecCredential", "apiVersion": self._plugin.api_version, "spec": spec}

    def _understood(self, said: bytes) -> tuple[Credential, float]:
        try:
            found: Any = json.loads(said)
        except ValueError as error:
            raise self._failed(f"expected an ExecCredential as JSON, said {said[:EXCERPT]!r}") from error
        whole = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        status = section(whole, "status")
        if whole.get("apiVersion") != self._plugin.api_version:
            raise self._failed(f"expected {self._plugin.api_version}, said {whole.get('apiVersion')!r}")
        token, certificate, key = (
            str(status.get(name) or "") for name in ("token", "clientCertificateData", "clientKeyData")
        )
        if not token and not (certificate and key):
            raise self._failed("said neither a token nor a certificate with its key")
        header = f"Bearer {token}" if token else ""
        return Credential(header, certificate.encode(), key.encode()), self._expiry(status)

    def _expiry(self, status: dict[str, Any]) -> float:
        expires = status.get("expirationTimestamp")
        try:
            return parse_time(str(expires)) if expires else float("inf")
        except ValueError as error:
            raise self._failed(f"expirationTimestamp: expected a time, said {expires!r}") from error

    def _failed(self, problem: str) -> CredentialsError:
        return CredentialsError(f"{self._plugin.command} (exec of {self._access.source}): {problem}")
