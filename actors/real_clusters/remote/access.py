"""From what is said of a server to how it is spoken to: credentials, TLS, proxies; and the server of one's own pod."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.request import getproxies, proxy_bypass

import httpx

from pumice.actors.errors import CredentialsError
from pumice.actors.real_clusters.remote.credentials import Credential, Credentials, Fixed, TokenFile
from pumice.actors.real_clusters.remote.exec_plugin import FromPlugin
from pumice.config.errors import ConfigError
from pumice.config.input_file import read_bytes
from pumice.config.kubeconfig import ClusterAccess

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def in_cluster(environment: Mapping[str, str] = os.environ, folder: Path = SERVICE_ACCOUNT) -> ClusterAccess:
    """The cluster that this process is a pod of, as its service account. Raises ConfigError outside of one."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ConfigError("this is no pod of a cluster (KUBERNETES_SERVICE_HOST is not set): name a --kubeconfig")
    try:
        authority = read_bytes(folder / "ca.crt")
    except OSError as error:
        raise ConfigError(f"the service account cannot be read: {error.strerror}", source=str(folder)) from error
    shown = f"[{host}]" if ":" in host else host
    return ClusterAccess(
        server=f"https://{shown}:{port}", authority=authority, token_file=folder / "token", source=str(folder)
    )


def credentials_of(access: ClusterAccess, now: Callable[[], float]) -> Credentials:
    """Where its credentials come from; `now`: seconds since the epoch."""
    if access.token_file is not None:
        return TokenFile(access.token_file, access)
    if access.plugin is not None and not access.token:
        return FromPlugin(access, access.plugin, now)
    return Fixed(access)


def trust_of(access: ClusterAccess, shown: Credential) -> ssl.SSLContext | bool:
    """Whom to trust, with what to show during the handshake. Raises ConfigError, CredentialsError."""
    if not access.server.startswith("https:"):
        return True
    try:
        context = ssl.create_default_context(cadata=access.authority.decode("ascii") if access.authority else None)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"certificate-authority is no certificate: {error}", source=access.source) from error
    if access.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if shown.certificate:
        _show(context, shown)
    return context


def _show(context: ssl.SSLContext, shown: Credential) -> None:
    """OpenSSL takes certificates from files alone: these are the user's only, and gone at once."""
    with tempfile.TemporaryDirectory(prefix="pumice-") as folder:
        certificate, key = Path(folder) / "certificate", Path(folder) / "key"
        for path, pem in ((certificate, shown.certificate), (key, shown.key)):
            path.touch(mode=0o600)
            path.write_bytes(pem)
        try:
            context.load_cert_chain(certificate, key)
        except (ssl.SSLError, OSError) as error:
            raise CredentialsError(f"the client certificate and its key do not go together: {error}") from error


def proxy_of(access: ClusterAccess) -> str | None:
    """The proxy on the way, by the kubeconfig or else by the environment. Raises ConfigError for one through
    which a certificate's other name cannot be asked for.
    """
    url = httpx.URL(access.server)
    found = access.proxy or (None if proxy_bypass(url.host) else getproxies().get(url.scheme))
    if found and access.server_name and not found.startswith("socks"):
        problem = f"tls-server-name cannot be checked through the proxy {httpx.URL(found).host}: leave out one of them"
        raise ConfigError(problem, source=access.source)
    return found
