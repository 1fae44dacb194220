# SPDX-License-Identifier: Apache-2.0
"""The settings of the gateway from the process settings, its socket, and a kubeconfig for it."""

from __future__ import annotations

import os
import secrets
import shlex
from base64 import b64encode
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final

from pumice.actors.gateway.identity.authenticator import is_loopback
from pumice.actors.gateway.settings import CLIENT_BYTES, MIB, OBJECT_BYTES, OBJECTS, GatewaySettings, listen
from pumice.cluster.faults.profiles import PACKAGED, named_apart, packaged, read_profile_text
from pumice.cluster.faults.rules import AnyRule, FaultProfile
from pumice.cluster.rbac.rules import User
from pumice.config.errors import ConfigError, ConflictError, UnknownNameError
from pumice.config.input_file import read_bytes
from pumice.config.load import read_text
from pumice.config.read import ValuePlace
from pumice.config.settings import ProcessSettings
from pumice.config.yaml_tree import Document
from pumice.core.objects.metadata import Object
from pumice.core.quantity import parse_quantity
from pumice.runtime.certificates import demand_authority, demand_pair
from pumice.runtime.tokens import read_users, token_given
from pumice.yaml_text import dump_yaml

# --- A kubeconfig

NAME: Final = "pumice"


def kubeconfig_of(server: str, token: str = "", certificate: Path | None = None, user: str = NAME) -> Object:
    """Make the kubeconfig for the server of this URL, whose `user` has the token. `certificate` is what clients are to
    trust, put in as it is. Raises OSError.
    """
    cluster: Object = {"server": server}
    if server.startswith("http://"):  # without it @kubernetes/client-node refuses plain HTTP; others do not look at it
        cluster["insecure-skip-tls-verify"] = True
    elif certificate is not None:
        cluster["certificate-authority-data"] = b64encode(read_bytes(certificate)).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token} if token else {}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": user, "namespace": "default"}}],
        "current-context": NAME,
    }


def text_of(config: Object) -> str:
    """Return the kubeconfig in YAML."""
    return dump_yaml(config)


def write(config: Object, path: Path) -> None:
    """Write a file that only its owner may read, since it may hold a token. Raises OSError."""
    path.touch(mode=0o600)
    # `touch` does not change the mode of a file that exists.
    path.chmod(0o600)
    path.write_text(text_of(config))


def export_line(path: Path) -> str:
    """Return the line for a shell that sets KUBECONFIG."""
    return f"export KUBECONFIG={shlex.quote(str(path.absolute()))}"


# --- Faults for clients: what of `--faults` is not for the system's own actors

OPTION: Final = "--faults"
FILES: Final = (".yaml", ".yml", ".json")
HERE: Final = ValuePlace(Document(OPTION, None))


def split_faults(names: str | None) -> tuple[str, list[str]]:
    """Return the profiles of a storm, joined by "+" again, and the names and files of profiles for clients."""
    parts = [part.strip() for part in (names or "").split("+")]
    ours = [part for part in parts if part not in PACKAGED and not _is_file(part)]
    return "+".join(ours), [part for part in parts if part not in ours]


def _is_file(part: str) -> bool:
    return "/" in part or part.endswith(FILES)


def client_faults(names: str | None, *, served: bool) -> FaultProfile:
    """Return the rules of all profiles for clients, in their order. Raises ConfigError for one that is not valid,
    ConflictError where no client is served, or two of them have different seeds.
    """
    _, parts = split_faults(names)
    if parts and not served:
        raise ConflictError(f"{parts[0]}: faults for clients need clients: add --http HOST:PORT", path=OPTION)
    rules, seeds = list[AnyRule](), set[int]()
    for part in parts:
        profile = read_profile_text(read_text(Path(part)), part) if _is_file(part) else packaged(part, HERE)
        rules += profile.rules
        if profile.seed is not None:
            seeds.add(profile.seed)
    if len(seeds) > 1:
        raise ConflictError(f"two seeds: {', '.join(map(str, sorted(seeds)))}", path=OPTION)
    return FaultProfile(seed=next(iter(seeds), None), rules=named_apart(HERE.at("rules"), rules))


def only_client_faults(names: str, path: str) -> FaultProfile:
    """Return the rules of profiles for clients. Raises UnknownNameError for a name of no packaged one, and what
    `client_faults` raises.
    """
    unknown, _ = split_faults(names)
    if unknown:
        raise UnknownNameError("fault profile for clients", unknown, PACKAGED, path=path)
    return client_faults(names, served=True)


# --- Settings

MOST_PORT = 65_535
LEAST_KEY: Final = 32
LEAST_BYTES: Final = 16 * MIB
OF_HTTP: Final = (
    "token", "token_file", "tls_cert", "tls_key", "authorization", "token_auth_file", "client_ca_file",
    "service_account_key_file", "client_bytes", "max_objects", "max_object_bytes",
)  # fmt: skip
"""Settings that say nothing without `http`."""


def gateway_settings(settings: ProcessSettings) -> GatewaySettings | None:
    """Return the gateway's settings; None without `http`. Raises ConfigError for conflicting ones, ListenError when the
    port is taken.
    """
    if settings.http is None:
        client_faults(settings.faults, served=False)
        _nothing_for_http(settings)
        return None
    host, _, port = settings.http.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if int(port) > MOST_PORT:
        raise ConflictError(f"expected a port of at most {MOST_PORT}, was {port}", path="--http")
    if settings.time == "virtual":
        raise ConflictError("clients live in real time; leave --time out", path="--http")
    token, users = token_of(settings), _users(settings)
    known = bool(token or users or settings.client_ca_file)
    if not known and not is_loopback(host):
        raise ConflictError(f"{host} can be reached from other machines: give a --token as well", path="--http")
    if not known and settings.authorization == "rbac":
        why = "no client could be a user: give --token, --token-auth-file or --client-ca-file as well"
        raise ConflictError(why, path="--authorization")
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise ConflictError("a certificate and its key go together", path="--tls-cert")
    certificate, key = (Path(name) if name else None for name in (settings.tls_cert, settings.tls_key))
    if certificate is not None and key is not None:
        demand_pair(certificate, key)
    authority = Path(settings.client_ca_file) if settings.client_ca_file else None
    if authority is not None:
        if certificate is None:
            raise ConflictError(
                "certificates of clients need TLS: give --tls-cert and --tls-key", path="--client-ca-file"
            )
        demand_authority(authority)
    from pumice.questions.adviser.answers import answer  # noqa: PLC0415 - a tenth of a start

    account_key = _account_key(settings.service_account_key_file)
    adviser = partial(answer, settings.db, settings.plugins_dir)
    faults = client_faults(settings.faults, served=True)
    return GatewaySettings(
        listen(host, int(port)),
        token=token,
        certificate=certificate,
        key=key,
        adviser=adviser,
        faults=faults,
        authorization=settings.authorization or ("none" if is_loopback(host) else "rbac"),
        users=users,
        client_authority=authority,
        account_key=account_key,
        client_bytes=_client_bytes(settings),
        object_limit=settings.max_objects or OBJECTS,
        object_bytes=_bytes_of(settings.max_object_bytes, OBJECT_BYTES),
    )


def _bytes_of(given: str | None, default: int) -> int:
    return default if given is None else int(parse_quantity(given).value())


def _client_bytes(settings: ProcessSettings) -> int:
    """Return the limit on what is held for clients. Raises ConflictError for one that leaves no room for them."""
    asked = _bytes_of(settings.client_bytes, CLIENT_BYTES)
    if asked < LEAST_BYTES:
        raise ConflictError("expected at least 16Mi: one request may need as much", path="--client-bytes")
    return asked


def _users(settings: ProcessSettings) -> dict[str, User]:
    """Return the users of the token file. Raises ConfigError, OSError."""
    if settings.token_auth_file is None:
        return {}
    found = read_users(Path(settings.token_auth_file))
    return {token: User(user.name, user.groups, user.uid) for token, user in found.items()}


def _account_key(file: str | None) -> bytes:
    """Return the key for tokens of ServiceAccounts: of a file, or a new one. Raises ConfigError, OSError."""
    if file is None:
        return secrets.token_bytes(LEAST_KEY)
    content = read_bytes(Path(file))
    if len(content) < LEAST_KEY:
        why = f"expected at least {LEAST_KEY} random bytes, found {len(content)}"
        raise ConfigError(why, source=file, path="--service-account-key-file")
    return sha256(content).digest()


def _nothing_for_http(settings: ProcessSettings) -> None:
    """Refuse options that would do nothing. Settings of the environment may be meant for other commands."""
    for name in OF_HTTP:
        given = getattr(settings, name)
        if given is not None and given != os.environ.get(f"PUMICE_{name.upper()}"):
            flag = "--" + name.replace("_", "-")
            raise ConflictError("nothing is served without --http: add --http HOST:PORT, or leave it out", path=flag)


def token_of(settings: ProcessSettings) -> str:
    """Return the token, or the content of its file. Raises ConflictError, OSError."""
    return token_given(settings.token, settings.token_file)
