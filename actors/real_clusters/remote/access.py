# SPDX-License-Identifier: Apache-2.0
"""Access to an API server: credentials, TLS and proxies from a kubeconfig, or of the pod of this process."""

from __future__ import annotations

import json
import os
import ssl
import tempfile
from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import DEVNULL
from typing import Final, Protocol
from urllib.request import getproxies, proxy_bypass

import anyio
import httpx
from msgspec import Struct

from pumice.actors.errors import CredentialsError
from pumice.config.errors import ConfigError
from pumice.config.input_file import read_bytes, read_text
from pumice.config.kubeconfig import ClusterAccess, ExecPlugin
from pumice.core.objects.metadata import Object, mapping, parse_time, section

# --- Credentials

READ_AGAIN_S: Final = 60.0
"""A token's file is read again after so long (source: client-go's `cachingTokenSource`): kubelets rotate it."""


class Credential(Struct, frozen=True):
    """The Authorization header, "" for none, and a client certificate with its key in PEM, b"" for none."""

    header: str = ""
    certificate: bytes = b""
    key: bytes = b""


class Credentials(Protocol):
    """Source of credentials."""

    async def current(self) -> Credential:
        """Return the credential to show now. Raises CredentialsError."""
        ...

    def refused(self) -> None:
        """Note that the server refused the last credential (401): the next must be another, if one exists."""
        ...


class Fixed:
    """A fixed credential: a token, a name with a password, a certificate, or none."""

    def __init__(self, access: ClusterAccess) -> None:
        self._credential = Credential(_header(access), access.certificate, access.key)

    async def current(self) -> Credential:
        """Return the fixed credential."""
        return self._credential

    def refused(self) -> None:
        """Do nothing: no other credential exists."""


class TokenFile:
    """A token in a file that another program keeps fresh. `now`: seconds of any clock that only goes on."""

    def __init__(self, path: Path, access: ClusterAccess, now: Callable[[], float] = anyio.current_time) -> None:
        self._path = path
        self._access = access
        self._now = now
        self._token = ""
        self._read_at: float | None = None

    async def current(self) -> Credential:
        """Return the newest token; the one before while the file cannot be read. Raises CredentialsError
        without any.
        """
        if self._read_at is None or self._now() - self._read_at >= READ_AGAIN_S:
            self._read()
        return Credential(f"Bearer {self._token}", self._access.certificate, self._access.key)

    def refused(self) -> None:
        """Read the file again immediately."""
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


# --- Credentials from a program
# Source: `client.authentication.k8s.io`, ExecCredential.

PATIENCE_S: Final = 60.0
EARLIER_S: Final = 10.0
"""A credential counts as expired so long before it does."""
EXCERPT: Final = 200


class FromPlugin:
    """A credential from a plugin program. `now`: seconds since the epoch. One program runs at a time for all
    callers.
    """

    def __init__(self, access: ClusterAccess, plugin: ExecPlugin, now: Callable[[], float]) -> None:
        self._access = access
        self._plugin = plugin
        self._now = now
        self._known: Credential | None = None
        self._until = float("inf")
        self._turn = anyio.Lock()

    async def current(self) -> Credential:
        """Return the program's last credential, or a new one when that has expired. Raises CredentialsError."""
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
            # No terminal (DEVNULL): a plugin fails immediately instead of waiting for a password that no one types.
            with anyio.fail_after(PATIENCE_S):
                done = await anyio.run_process(
                    [plugin.command, *plugin.args], stdin=DEVNULL, env=environment, check=False
                )
        except FileNotFoundError as error:
            hint = f": {plugin.hint}" if plugin.hint else ""
            raise self._failed(f"the program does not exist{hint}") from error
        except TimeoutError as error:
            raise self._failed(f"said nothing in {PATIENCE_S:.0f} s") from error
        except OSError as error:
            raise self._failed(f"cannot be started: {error.strerror}") from error
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[:EXCERPT]
            raise self._failed(f"ended with {done.returncode}: {said}")
        return done.stdout

    def _told(self) -> Object:
        spec: Object = {"interactive": False}
        if self._plugin.cluster_info:
            spec["cluster"] = {"server": self._access.server, "insecure-skip-tls-verify": self._access.insecure}
        return {"kind": "ExecCredential", "apiVersion": self._plugin.api_version, "spec": spec}

    def _understood(self, said: bytes) -> tuple[Credential, float]:
        try:
            whole = mapping(json.loads(said))
        except ValueError as error:
            raise self._failed(f"expected an ExecCredential as JSON, said {said[:EXCERPT]!r}") from error
        status = section(whole, "status")
        # Another version may mean other fields: client-go refuses it too (`plugin/pkg/client/auth/exec/exec.go`).
        if whole.get("apiVersion") != self._plugin.api_version:
            raise self._failed(f"expected {self._plugin.api_version}, said {whole.get('apiVersion')!r}")
        token, certificate, key = (
            str(status.get(name) or "") for name in ("token", "clientCertificateData", "clientKeyData")
        )
        if not token and not (certificate and key):
            raise self._failed("said neither a token nor a certificate with its key")
        header = f"Bearer {token}" if token else ""
        return Credential(header, certificate.encode(), key.encode()), self._expiry(status)

    def _expiry(self, status: Object) -> float:
        expires = status.get("expirationTimestamp")
        try:
            return parse_time(str(expires)) if expires else float("inf")
        except ValueError as error:
            raise self._failed(f"expirationTimestamp: expected a time, said {expires!r}") from error

    def _failed(self, problem: str) -> CredentialsError:
        return CredentialsError(f"{self._plugin.command} (exec of {self._access.source}): {problem}")


SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def in_cluster(environment: Mapping[str, str] = os.environ, folder: Path = SERVICE_ACCOUNT) -> ClusterAccess:
    """Return the cluster of the pod of this process, as its service account. Raises ConfigError outside of one."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ConfigError("not in a pod of a cluster (KUBERNETES_SERVICE_HOST is not set): name a --kubeconfig")
    try:
        authority = read_bytes(folder / "ca.crt")
    except OSError as error:
        raise ConfigError(f"the service account cannot be read: {error.strerror}", source=str(folder)) from error
    # An IPv6 address stands in brackets in a URL.
    shown = f"[{host}]" if ":" in host else host
    return ClusterAccess(
        server=f"https://{shown}:{port}", authority=authority, token_file=folder / "token", source=str(folder)
    )


def credentials_of(access: ClusterAccess, now: Callable[[], float]) -> Credentials:
    """Return the source of the user's credentials; `now`: seconds since the epoch."""
    # As in client-go a file goes before a token (`tools/clientcmd/api/types.go`), and a token before a plugin
    # (`plugin/pkg/client/auth/exec/exec.go`).
    if access.token_file is not None:
        return TokenFile(access.token_file, access)
    if access.plugin is not None and not access.token:
        return FromPlugin(access, access.plugin, now)
    return Fixed(access)


def trust_of(access: ClusterAccess, shown: Credential) -> ssl.SSLContext | bool:
    """Return the certificates to trust and to show. Raises ConfigError, CredentialsError."""
    if not access.server.startswith("https:"):
        return True
    try:
        context = ssl.create_default_context(cadata=access.authority.decode("ascii") if access.authority else None)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"certificate-authority is not a valid certificate: {error}", source=access.source) from error
    if access.insecure:
        # First: Python refuses CERT_NONE for a context that still checks names.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if shown.certificate:
        _show(context, shown)
    return context


def _show(context: ssl.SSLContext, shown: Credential) -> None:
    """Load the certificate. OpenSSL reads certificates only from files: these are readable by the user alone, and
    deleted immediately.
    """
    with tempfile.TemporaryDirectory(prefix="pumice-") as folder:
        certificate, key = Path(folder) / "certificate", Path(folder) / "key"
        for path, pem in ((certificate, shown.certificate), (key, shown.key)):
            # Private before the key is in it.
            path.touch(mode=0o600)
            path.write_bytes(pem)
        try:
            context.load_cert_chain(certificate, key)
        except (ssl.SSLError, OSError) as error:
            raise CredentialsError(f"the client certificate and its key do not go together: {error}") from error


def proxy_of(access: ClusterAccess) -> str | None:
    """Return the proxy on the way, by the kubeconfig or otherwise by the environment. Raises ConfigError for one that
    cannot check a certificate's other name.
    """
    url = httpx.URL(access.server)
    found = access.proxy or (None if proxy_bypass(url.host) else getproxies().get(url.scheme))
    # httpcore's tunnel through an HTTP proxy ignores `sni_hostname`; its SOCKS connection does not.
    if found and access.server_name and not found.startswith("socks"):
        problem = f"tls-server-name cannot be checked through the proxy {httpx.URL(found).host}: leave out one of them"
        raise ConfigError(problem, source=access.source)
    return found
