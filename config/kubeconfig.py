# SPDX-License-Identifier: Apache-2.0
"""Kubeconfig files: server, certificates and user of a context (source: client-go's `clientcmd`).

Only what a client needs is read; other keys are left to other programs. Paths in the file are relative to it.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64Error
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from pumice.config.errors import ConfigError, ConflictError
from pumice.config.input_file import read_bytes, read_text, unreadable
from pumice.config.read import ValuePlace, mapping, sequence, switch, text
from pumice.config.yaml_tree import read_documents

HEADER_SAFE: Final = "!#$&'*+^`|"
"""Letters allowed in a header's name beside those that `quote` leaves anyway."""


class ExecPlugin(Struct, frozen=True):
    """A program that hands out credentials. `env`: added to the environment; `hint`: how to get it, when it is missing;
    `cluster_info`: whether the program gets the cluster's data.
    """

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    api_version: str = "client.authentication.k8s.io/v1"
    hint: str = ""
    cluster_info: bool = False


class ClusterAccess(Struct, frozen=True):
    """One server and one user. Of `token_file`, `token`, `plugin` and a name with a password, the first one set counts.

    `authority`, `certificate` and `key` are PEM, b"" for none; `server_name`: the name that the server's certificate
    must have, "" for that of its URL. `impersonation`: headers that ask as another user, some several times. `source`
    names the file in errors.
    """

    server: str
    authority: bytes = b""
    insecure: bool = False
    server_name: str = ""
    proxy: str = ""
    certificate: bytes = b""
    key: bytes = b""
    token: str = ""
    token_file: Path | None = None
    username: str = ""
    password: str = ""
    plugin: ExecPlugin | None = None
    impersonation: tuple[tuple[str, str], ...] = ()
    namespace: str = ""
    context: str = ""
    source: str = ""


def read_kubeconfig(path: Path, context: str = "") -> ClusterAccess:
    """Return the access that a context of the file describes; "": its current one. Raises ConfigError."""
    try:
        written = read_text(path)
    except UnicodeDecodeError as error:
        raise ConfigError(f"not UTF-8 text (byte {error.start})", source=str(path)) from error
    except OSError as error:
        raise ConfigError(unreadable(error), source=str(path)) from error
    return parse_kubeconfig(written, str(path), context, folder=path.parent)


def parse_kubeconfig(written: str, source: str, context: str = "", *, folder: Path = Path()) -> ClusterAccess:
    """Read a kubeconfig from a text; files that it names are looked for from `folder`. Raises ConfigError."""
    documents = read_documents(written, source)
    place = ValuePlace(documents[0]) if documents else None
    if place is None or not place.document.data:
        raise ConfigError("expected a kubeconfig, found nothing", source=source)
    whole = mapping(place, place.document.data)
    name = context or text(place.at("current-context"), whole.get("current-context"))
    if not name:
        raise ConfigError("the kubeconfig has no current-context: name one with --context", source=source)
    chosen = _named(place, whole, "contexts", "context", name)
    cluster = _named(place, whole, "clusters", "cluster", chosen.text("cluster"))
    user = chosen.text("user")
    # A context without a user is valid: `kubectl proxy`, for one, adds the credentials on the way.
    found = _named(place, whole, "users", "user", user) if user else _Entry(place, {})
    return _access(cluster, found, folder, name, chosen.text("namespace"))


class _Entry:
    """A mapping of the file, read by key."""

    def __init__(self, place: ValuePlace, values: dict[str, Any]) -> None:
        self.place = place
        self._values = values

    def has(self, key: str) -> bool:
        return self._values.get(key) is not None

    def named(self) -> tuple[str, ...]:
        return tuple(self._values)

    def text(self, key: str) -> str:
        return text(self.place.at(key), self._values.get(key))

    def switch(self, key: str) -> bool:
        return bool(switch(self.place.at(key), self._values.get(key)))

    def entry(self, key: str) -> _Entry:
        place = self.place.at(key)
        return _Entry(place, mapping(place, self._values.get(key)))

    def entries(self, key: str) -> list[_Entry]:
        place = self.place.at(key)
        rows = enumerate(sequence(place, self._values.get(key)))
        return [_Entry(place.at(number), mapping(place.at(number), each)) for number, each in rows]

    def texts(self, key: str) -> tuple[str, ...]:
        place = self.place.at(key)
        rows = enumerate(sequence(place, self._values.get(key)))
        return tuple(text(place.at(number), each) for number, each in rows)

    def pem(self, key: str, folder: Path) -> bytes:
        """Return the content under `key`-data in base64, or else of the file that `key` names."""
        # Data goes before a file, as in client-go (`tools/clientcmd/api/types.go`).
        data, file = f"{key}-data", self.text(key)
        if self.has(data):
            try:
                return b64decode(self.text(data), validate=True)
            except (NotBase64Error, ValueError) as error:
                raise self.place.at(data).error(ConfigError, f"expected base64: {error}") from error
        if not file:
            return b""
        try:
            return read_bytes(folder / file)
        except OSError as error:
            raise self.place.at(key).error(ConfigError, f"{file} {unreadable(error)}") from error


def _named(place: ValuePlace, whole: dict[str, Any], several: str, one: str, name: str) -> _Entry:
    rows = _Entry(place, whole).entries(several)
    for row in rows:
        if row.text("name") == name:
            return row.entry(one)
    raise place.at(several).unknown(one, name, [row.text("name") for row in rows])


def _access(cluster: _Entry, user: _Entry, folder: Path, context: str, namespace: str) -> ClusterAccess:
    server = cluster.text("server").rstrip("/")
    if not server.startswith(("http://", "https://")):
        problem = f"expected http://HOST:PORT or https://HOST:PORT, was {server!r}"
        raise cluster.place.at("server").error(ConfigError, problem)
    authority = cluster.pem("certificate-authority", folder)
    insecure = cluster.switch("insecure-skip-tls-verify")
    # client-go refuses both together as well (`transport/transport.go`, TLSConfigFor).
    if authority and insecure:
        problem = "insecure-skip-tls-verify and a certificate authority exclude each other"
        raise cluster.place.error(ConflictError, problem)
    _refuse_gone(user)
    certificate, key = user.pem("client-certificate", folder), user.pem("client-key", folder)
    # Told here with file and line: ssl would only say that it cannot load them.
    if bool(certificate) != bool(key):
        raise user.place.error(ConflictError, "client-certificate and client-key go together")
    file = user.text("tokenFile")
    return ClusterAccess(
        server=server,
        authority=authority,
        insecure=insecure,
        server_name=cluster.text("tls-server-name"),
        proxy=cluster.text("proxy-url"),
        certificate=certificate,
        key=key,
        token=user.text("token"),
        token_file=folder / file if file else None,
        username=user.text("username"),
        password=user.text("password"),
        plugin=_plugin(user.entry("exec"), folder) if user.has("exec") else None,
        impersonation=_impersonation(user),
        namespace=namespace,
        context=context,
        source=cluster.place.document.source,
    )


def _refuse_gone(user: _Entry) -> None:
    """Refuse a field that client-go does not know any more either."""
    if user.has("auth-provider"):
        problem = "auth-provider is gone from Kubernetes: use an exec plugin, such as gke-gcloud-auth-plugin"
        raise user.place.at("auth-provider").error(ConfigError, problem)


def _impersonation(user: _Entry) -> tuple[tuple[str, str], ...]:
    """Return the headers of another user's name, groups, uid and extra fields (source: client-go's
    `impersonatingRoundTripper`).
    """
    found = [("Impersonate-User", "as", user.text("as")), ("Impersonate-Uid", "as-uid", user.text("as-uid"))]
    found += [("Impersonate-Group", "as-groups", each) for each in user.texts("as-groups")]
    extra = user.entry("as-user-extra")
    for key in extra.named():
        name = f"Impersonate-Extra-{quote(key.lower(), safe=HEADER_SAFE)}"
        found += [(name, "as-user-extra", each) for each in extra.texts(key)]
    shown = [each for each in found if each[2]]
    for _, key, value in shown:
        if not (value.isascii() and value.isprintable()):
            raise user.place.at(key).error(ConfigError, f"expected ASCII that a header can hold, was {value!r}")
    # The API server refuses a group or uid without a user
    # (`staging/src/k8s.io/apiserver/pkg/endpoints/filters/impersonation.go`).
    if shown and shown[0][1] != "as":
        raise user.place.at(shown[0][1]).error(ConflictError, "it goes with a name to ask as: add as: NAME")
    return tuple((name, value) for name, _, value in shown)


def _plugin(entry: _Entry, folder: Path) -> ExecPlugin:
    command = entry.text("command")
    if not command:
        raise entry.place.at("command").error(ConfigError, "expected the program that hands out credentials")
    # A bare name is looked for in PATH; only with a slash it is relative to the file (client-go's
    # `tools/clientcmd/loader.go`).
    if "/" in command and not command.startswith("/"):
        command = str((folder / command).absolute())
    return ExecPlugin(
        command=command,
        args=entry.texts("args"),
        env=tuple((each.text("name"), each.text("value")) for each in entry.entries("env")),
        api_version=entry.text("apiVersion") or ExecPlugin("").api_version,
        hint=entry.text("installHint"),
        cluster_info=entry.switch("provideClusterInfo"),
    )
