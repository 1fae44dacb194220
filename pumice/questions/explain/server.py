# SPDX-License-Identifier: Apache-2.0
"""Objects of a server, over plain Kubernetes REST: every kind in a scheduler's view."""

from __future__ import annotations

import ssl
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pumice.cluster.api.kinds import KINDS, Kind
from pumice.config.errors import ConfigError, WorldError
from pumice.config.input_file import demand_file
from pumice.core.messages.events import ConfigLoaded
from pumice.core.objects.metadata import Object, mapping, section
from pumice.core.objects.parts import WATCHED

if TYPE_CHECKING:
    import httpx

PAGE: Final = 500
TIMEOUT_S: Final = 30.0
EXCERPT: Final = 80
OK: Final = 200
DONE: Final = (OK, 201)
"""Codes of an answer that holds what was asked for."""
FORBIDDEN: Final = 403
NOT_SERVED: Final = 404
UNAUTHORIZED: Final = 401
NO_TOKEN: Final = "it asks for a token; give its own with --token-file, --token or PUMICE_TOKEN"
WRONG_TOKEN: Final = "the token is not the one it was started with; give that (--token-file, PUMICE_TOKEN or --token)"
ASKED: Final = (*WATCHED, "Job")
"""Kinds that cycles look at, and the Jobs, which state why they have ended."""
ADVICE: Final = "apis/pumice.dev/v1"
OF_VOLCANO: Final = "api/v1/namespaces/volcano-system/configmaps/volcano-scheduler-configmap"
"""Path at which Volcano's installer puts its configuration."""
UNSEEN: Final = (NOT_SERVED, FORBIDDEN)
"""Codes for a path that a server does not have: a user without the right to read it does not learn whether it
exists."""
LATENCY: Final = "volcano_e2e_scheduling_latency_milliseconds"
NEEDED: Final = ("Node", "Pod")
"""Kinds that every server has; the others may be unknown to it."""


ASK_ITSELF: Final = (
    "with rights to the pods of some namespaces use `pumice explain`, or ask the server itself, such as with "
    f"`kubectl get --raw /{ADVICE}/standings`"
)


class ServerError(WorldError):
    """A server does not answer, or not as a Kubernetes API. `forbidden`: it does not let this user read that."""

    forbidden = False


@dataclass(frozen=True)
class Server:
    """Address and credentials of a server. `certificate`: trusted besides the system's authorities. `transport`: in
    tests.
    """

    url: str
    token: str = ""
    certificate: Path | None = None
    transport: httpx.BaseTransport | None = None


def fetch(server: Server) -> list[Object]:
    """Return all objects of the kinds that matter, references first. Raises ServerError, and ConfigError for an invalid
    URL.
    """
    with _client(server) as client, _told(server.url):
        try:
            return [obj for kind in ASKED for obj in _listed(client, server.url, KINDS[kind])]
        except ServerError as error:
            if not error.forbidden or client.get(ADVICE).status_code != OK:
                raise
            raise ServerError(f"{error}; {ASK_ITSELF}") from error


def answers_alone(server: Server) -> bool:
    """Return whether the server does not show its nodes to this user, and answers questions itself: it knows which
    namespaces the user may ask about. Raises ServerError, ConfigError.
    """
    with _client(server) as client, _told(server.url):
        if client.get("api/v1/nodes", params={"limit": "1"}).status_code != FORBIDDEN:
            return False
        return client.get(ADVICE).status_code == OK


def ask(server: Server, path: str) -> Object:
    """Return the answer to a question about its run, such as "standings" (docs/reference/waiting.md). Raises
    ServerError and ConfigError.
    """
    with _client(server) as client, _told(server.url):
        return _found(client.get(f"{ADVICE}/{path}"), f"{server.url}: GET /{ADVICE}/{path}")


def account_token(server: Server, namespace: str, name: str) -> str:
    """Return a new token of a ServiceAccount. Raises ServerError, ConfigError."""
    path = f"api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    with _client(server) as client, _told(server.url):
        answer = client.post(path, json={"spec": {}})
        return str(section(_found(answer, f"{server.url}: POST /{path}"), "status")["token"])


def configuration(server: Server) -> ConfigLoaded | None:
    """Return the configuration of the server's scheduler: Pumice serves it, Volcano has it in a ConfigMap; None where
    neither is visible. Raises ServerError, ConfigError.
    """
    with _client(server) as client, _told(server.url):
        for path in (f"{ADVICE}/configurations", OF_VOLCANO):
            answer = client.get(path)
            if answer.status_code not in UNSEEN:
                return _configuration(_found(answer, f"{server.url}: GET /{path}"), answer.text, server.url)
    return None


def _configuration(found: Object, text: str, url: str) -> ConfigLoaded:
    if found.get("kind") == "ConfigMap":
        return ConfigLoaded("", text, f"{url}: ConfigMap {OF_VOLCANO.rpartition('/')[2]}")
    plugins = {str(name): str(identity) for name, identity in section(found, "plugins").items()}
    return ConfigLoaded("", str(found.get("text") or ""), f"{url}: {found.get('source')}", plugins=plugins)


def config_map(server: Server, namespace: str, name: str) -> str:
    """Return a ConfigMap as the server has it, in JSON. Raises ServerError, ConfigError."""
    path = f"api/v1/namespaces/{namespace}/configmaps/{name}"
    with _client(server) as client, _told(server.url):
        answer = client.get(path)
        _found(answer, f"{server.url}: GET /{path}")
        return answer.text


def mean_cycle_ms(server: Server) -> float | None:
    """Return the mean time of its cycles so far, by its metrics; None before the first. Raises ServerError,
    ConfigError."""
    with _client(server) as client, _told(server.url):
        lines = (line.rpartition(" ") for line in client.get("metrics").text.splitlines())
        told = {name: value for name, _, value in lines}
    count = float(told.get(f"{LATENCY}_count", 0))
    return float(told[f"{LATENCY}_sum"]) / count if count else None


def next_cycle(server: Server) -> int:
    """Return the number of its next cycle; 1 where the server is not Pumice, or has run none. Raises ServerError,
    ConfigError."""
    with _client(server) as client, _told(server.url):
        answer = client.get(f"{ADVICE}/courses")
        cycles: list[list[float]] = _json(answer).get("cycles") or []
    return int(cycles[-1][0]) + 1 if answer.status_code == OK and cycles else 1


@contextmanager
def _client(server: Server) -> Generator[httpx.Client]:
    import httpx  # noqa: PLC0415 - a twentieth of a start, and most questions are about journals

    headers = {"Accept": "application/json"}
    if server.token:
        headers["Authorization"] = f"Bearer {server.token}"
    url = httpx.URL(server.url)
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigError(f"expected http://HOST:PORT or https://HOST:PORT, was {server.url!r}", path="--server")
    trust: ssl.SSLContext | bool = True
    if server.certificate is not None:
        try:
            demand_file(server.certificate)
            trust = ssl.create_default_context(cafile=str(server.certificate))
        except OSError as error:
            raise ConfigError(f"no certificate can be read: {error}", source=str(server.certificate)) from error
    transport = server.transport
    with httpx.Client(
        base_url=url, headers=headers, timeout=TIMEOUT_S, verify=trust, transport=transport, trust_env=False
    ) as client:
        yield client


@contextmanager
def _told(url: str) -> Generator[None]:
    import httpx  # noqa: PLC0415

    try:
        yield
    except httpx.HTTPError as error:
        raise ServerError(f"{url}: no answer: {error or type(error).__name__}") from error


def _listed(client: httpx.Client, url: str, kind: Kind) -> Iterator[Object]:
    path = f"apis/{kind.group}/{kind.version}/{kind.plural}" if kind.group else f"api/{kind.version}/{kind.plural}"
    token = ""
    while True:
        query = {"limit": str(PAGE), **({"continue": token} if token else {})}
        answer = client.get(path, params=query)
        if answer.status_code == NOT_SERVED and kind.kind not in NEEDED:
            return
        page = _page(answer, f"{url}: GET /{path}")
        for item in page["items"]:
            yield {"apiVersion": kind.api_version, "kind": kind.kind, **item}
        token = str(section(page, "metadata").get("continue") or "")
        if not token:
            return


def _page(answer: httpx.Response, what: str) -> Object:
    page = _json(answer) if answer.status_code == OK else _found(answer, what)
    if not isinstance(page.get("items", ""), list | None):
        raise ServerError(f"{what}: expected a list of objects, was {answer.text[:EXCERPT]!r}: no Kubernetes API?")
    return {**page, "items": page["items"] or []}


def _found(answer: httpx.Response, what: str) -> Object:
    """Return the object that was asked for. Raises ServerError."""
    found = _json(answer)
    if answer.status_code not in DONE or not found:
        why = _refusal(answer) or found.get("message") or answer.text[:EXCERPT]
        error = ServerError(f"{what}: {answer.status_code} {answer.reason_phrase}: {why}")
        error.forbidden = answer.status_code == FORBIDDEN
        raise error
    return found


def _refusal(answer: httpx.Response) -> str:
    """Return what to do about an answer that says too little, "" for any other."""
    if answer.status_code == FORBIDDEN and not _json(answer).get("message"):
        return "it does not allow this to be read"
    if answer.status_code == UNAUTHORIZED:
        return WRONG_TOKEN if "authorization" in answer.request.headers else NO_TOKEN
    return ""


def _json(answer: httpx.Response) -> Object:
    """Return the object in an answer, an empty one without any."""
    try:
        return mapping(answer.json())
    except ValueError:
        return {}
