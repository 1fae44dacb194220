# SPDX-License-Identifier: Apache-2.0
"""`ServedCluster`: what a test does with its cluster; and the pool that lends clusters to tests."""

from __future__ import annotations

import secrets
import ssl
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import httpx
import msgspec

from pumice.actors.errors import ActorStoppedError
from pumice.actors.gateway.hub import TOLD
from pumice.cluster.kube.statuses import timestamp
from pumice.cluster.rbac.rules import User, account_of
from pumice.config.errors import RequestError
from pumice.core.objects.metadata import Object, section
from pumice.errors import InputError
from pumice.runtime.serving import kubeconfig_of, write
from pumice.testing.faults import ClusterFaults
from pumice.testing.hosting import MANAGER, Host
from pumice.testing.options import ClusterOptions, Manifests, options_of, read_manifests
from pumice.testing.waits import NotReachedError, WaitFor, condition, find_kind

if TYPE_CHECKING:
    from pumice.cluster.api.kinds import Kind

LOOK_S: Final = 0.002
"""Real seconds between two looks whether anything has changed."""
PATIENCE_S: Final = 0.02
"""Real seconds that clients get to react before virtual time moves."""
CLIENT_S: Final = 30.0
SHOWN: Final = 1_000
"""Letters of a status in an error."""
MOST_TOLD: Final = 20
NOT_FOUND: Final = 404
JSON: Final = {"content-type": "application/json"}
APPLY: Final = {"content-type": "application/apply-patch+yaml"}


class ClusterUser(NamedTuple):
    """A user of a cluster: the path of its kubeconfig, its token, and an HTTP client that shows it."""

    name: str
    token: str
    kubeconfig: Path
    client: httpx.Client


class ServedCluster:
    """A cluster that serves Kubernetes' API; made by `served_cluster` or the fixture `pumice_cluster`.

    All methods block the calling thread and no other: in a test with an event loop of its own on which a controller
    runs, call those that wait by `anyio.to_thread.run_sync`. `host`: the system behind it.
    """

    def __init__(self, host: Host, folder: Path) -> None:
        self.host = host
        self._folder, self._users = folder, 0
        self._clients = ExitStack()

    # --- where it is

    @property
    def options(self) -> ClusterOptions:
        """Return the options that it was made with."""
        return self.host.options

    @property
    def url(self) -> str:
        """Return the URL of the API server."""
        scheme = "https" if self.host.certificate is not None else "http"
        return f"{scheme}://127.0.0.1:{self.host.listener.getsockname()[1]}"

    @cached_property
    def kubeconfig(self) -> Path:
        """Return the path of a kubeconfig, as clients take it from KUBECONFIG."""
        path = self._folder / "kubeconfig"
        write(kubeconfig_of(self.url, self.host.token, self.host.certificate), path)
        return path

    @cached_property
    def client(self) -> httpx.Client:
        """Return an HTTP client of the API, for paths such as `/api/v1/pods`."""
        return self._client_of(self.host.token, {"user-agent": MANAGER})

    def _client_of(self, token: str, headers: dict[str, str] | None = None) -> httpx.Client:
        headers = {**(headers or {}), **({"authorization": f"Bearer {token}"} if token else {})}
        trusted: ssl.SSLContext | bool = True
        if self.host.certificate is not None:
            trusted = ssl.create_default_context(cafile=str(self.host.certificate))
        return httpx.Client(base_url=self.url, headers=headers, timeout=CLIENT_S, verify=trusted, trust_env=False)

    def user(self, name: str, *groups: str) -> ClusterUser:
        """Return a user with a kubeconfig of its own, who may do what roles say (`authorization="rbac"`). The name of a
        ServiceAccount is `system:serviceaccount:NAMESPACE:NAME`; it must exist. Raises RefusedError.
        """
        account = account_of(name)
        if account is None:
            token = secrets.token_hex(16)
            self.host.users[token] = User(name, groups)
        else:
            place = f"/api/v1/namespaces/{account[0]}/serviceaccounts/{account[1]}/token"
            token = section(_answered(self.client.post(place, json={"spec": {}})), "status")["token"]
        self._users += 1
        path = self._folder / f"kubeconfig-{self._users}"
        write(kubeconfig_of(self.url, token, self.host.certificate, name), path)
        return ClusterUser(name, token, path, self._clients.enter_context(self._client_of(token)))

    @cached_property
    def faults(self) -> ClusterFaults:
        """Return the faults that other clients meet."""
        return ClusterFaults(self.host)

    # --- objects

    def apply(self, *manifests: Manifests, namespace: str = "default") -> list[Object]:
        """Apply objects on the server's side, as `kubectl apply --server-side --force-conflicts` does, and return them.

        `namespace` is for objects that name none. A kind that is defined is served on return. Raises
        InputError for what cannot be read, RefusedError with the server's words for what it refuses.
        """
        return [self._applied(obj, namespace) for obj in read_manifests(manifests)]

    def _applied(self, obj: Object, namespace: str) -> Object:
        kind = self.host.system.store.kinds.by_type(obj.get("apiVersion"), obj.get("kind"))
        name = section(obj, "metadata").get("name")
        if kind is None or not name:
            what = f"{obj.get('apiVersion')} {obj.get('kind')} {name or 'without a name'}"
            raise InputError(f"expected an object with a name, of a kind that is served here, was {what}")
        place = _path(kind, section(obj, "metadata").get("namespace") or namespace, name)
        made = {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}
        asked = {"fieldManager": MANAGER, "force": "true"}
        answer = self.client.patch(place, params=asked, content=msgspec.json.encode(made), headers=APPLY)
        stored: Object = _answered(answer)
        if kind.key in TOLD:
            self.host.settle()
        return stored

    def get(self, kind: str, name: str, *, namespace: str = "default") -> Object:
        """Return an object; `kind` as kubectl takes it. Raises RefusedError (404) when there is none."""
        found: Object = _answered(self.client.get(_path(self._kind(kind), namespace, name)))
        return found

    def find(self, kind: str, name: str, *, namespace: str = "default") -> Object | None:
        """Return an object; None when there is none."""
        try:
            return self.get(kind, name, namespace=namespace)
        except RefusedError as error:
            if error.code != NOT_FOUND:
                raise
            return None

    def list(self, kind: str, *, namespace: str | None = None, selector: str = "") -> list[Object]:
        """Return the objects of a kind, by namespace and name; None: of all namespaces. `selector`: of labels."""
        asked = {"labelSelector": selector} if selector else {}
        answer = self.client.get(_path(self._kind(kind), namespace or "", ""), params=asked)
        found: list[Object] = _answered(answer)["items"]
        return found

    def delete(self, kind: str, name: str, *, namespace: str = "default", grace_s: int | None = None) -> None:
        """Delete an object, as a client does: with what it owns, and gracefully. Raises RefusedError."""
        asked = {} if grace_s is None else {"gracePeriodSeconds": str(grace_s)}
        _answered(self.client.delete(_path(self._kind(kind), namespace, name), params=asked))

    def _kind(self, name: str) -> Kind:
        return find_kind(self.host.system.store.kinds, name)

    # --- time

    @property
    def now(self) -> float:
        """Return the cluster's time, in seconds since the epoch."""
        return self.host.clock.now()

    def advance(self, seconds: float) -> None:
        """Let virtual time go by: all that is due meanwhile happens, moment by moment, at the cost of its own work.

        Clients (a controller under test) live in real time, and see all this when it has happened. Raises
        InputError on real time.
        """
        if not self.host.is_virtual:
            raise InputError('time goes by itself here: only a cluster with time="virtual" is advanced', path="time")
        if seconds < 0:
            raise InputError(f"time does not go back: {seconds}", path="seconds")
        self.host.advance(seconds)

    def wait_for(
        self, kind: str, name: str, for_: WaitFor = "create", *, namespace: str = "default", timeout_s: float = 10.0
    ) -> Object:
        """Wait until a condition holds, and return the object then (an empty one when it is gone).

        `for_` is as in `kubectl wait --for`: "create", "delete", "condition=Ready", "jsonpath={.status.phase}=Running";
        or a function of the object. On virtual time, the clock moves on to what is due next whenever clients have had a
        moment to react; `timeout_s` must then have gone by on both clocks. Raises NotReachedError, which says how
        things stand.
        """
        reached, wait = condition(for_), _Wait(self.host, timeout_s)
        while True:
            news = self.host.news
            found = self.find(kind, name, namespace=namespace)
            if reached(found):
                return found or {}
            if not wait.goes_on(news):
                said = for_ if isinstance(for_, str) else getattr(for_, "__name__", "the condition")
                raise NotReachedError(
                    f"{kind} {name}: {said} did not come within {timeout_s:g} s; {self._state(found)}"
                )

    def _state(self, found: Object | None) -> str:
        if found is None:
            return "there is no such object"
        waits = [f"{name}: {why}" for name, why in self.host.waiting().items()]
        status = msgspec.json.encode(found.get("status")).decode()[:SHOWN]
        return "; ".join([f"its status is {status}", *waits[:3]])

    def standing(self) -> str:
        """Return how the cluster stands, for the report of a failed test: its time, and what waits, and why."""
        lines = [f"{self.url} at {timestamp(self.now)}, {self.options}"]
        try:
            waiting = self.host.waiting()
        except ActorStoppedError as error:
            return "\n".join([*lines, f"it has stopped: {error}"])
        lines += [f"waits: {name}: {why}" for name, why in list(waiting.items())[:MOST_TOLD]]
        return "\n".join([*lines, *(self._reasons() if waiting else ())])

    def _reasons(self) -> tuple[str, ...]:
        """Return what waits with its code and the sentence of `pumice queue`: a condition often counts pods only."""
        from pumice.questions.adviser.waiting_jobs import waits_at_the_end  # noqa: PLC0415 - half a second

        journal = self._folder / "failed.db"
        journal.unlink(missing_ok=True)
        self.save_journal(journal)
        with ThreadPoolExecutor(1) as threads:  # a failed test may have left its event loop running in this one
            rows = threads.submit(waits_at_the_end, journal).result()
        return tuple(f"{each.job} ({each.wait.code}): {each.wait.sentence}" for each in rows[:MOST_TOLD])

    # --- the whole

    def reset(self) -> None:
        """Have all objects as they were at the beginning. Watches stay open, and report what goes and comes; time does
        not go back.
        """
        self.host.reset()

    def save_journal(self, path: str | Path) -> None:
        """Write what has happened so far to a file that `pumice journal`, `explain` and `view` read."""
        self.host.save_journal(Path(path))

    def close(self) -> None:
        """Close the client; the cluster ends with the block or fixture that made it."""
        self._clients.close()
        if "client" in self.__dict__:
            self.client.close()


class _Wait:
    """The time that a wait may take."""

    def __init__(self, host: Host, timeout_s: float) -> None:
        self._host = host
        self._until = time.monotonic() + timeout_s
        self._virtual_until = host.bells.current_time() + timeout_s

    def goes_on(self, news: int) -> bool:
        """Wait for a change after this one; False once the time is up and there was none."""
        if not self._host.is_virtual:
            return self._changes(news, self._until)
        self._host.settle()
        if self._changes(news, time.monotonic() + PATIENCE_S):
            return True
        while self._host.bells.current_time() < self._virtual_until:
            self._host.step(self._virtual_until)
            if self._host.news != news:
                return True
        return self._changes(news, self._until)

    def _changes(self, news: int, until: float) -> bool:
        while self._host.news == news:
            if time.monotonic() >= until:
                return False
            time.sleep(LOOK_S)
        return True


def _path(kind: Kind, namespace: str, name: str) -> str:
    """Return the path of an object, or (without a name) of all of a kind, in a namespace or in all of them."""
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    place = f"/namespaces/{namespace}" if kind.namespaced and namespace else ""
    return f"{root}{place}/{kind.plural}" + (f"/{name}" if name else "")


class RefusedError(RequestError):
    """The API server refused a request: its Status."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        self.code, self.reason = code, reason
        super().__init__(message)


def _answered(answer: httpx.Response) -> Any:
    """Return the body of an answer. Raises RefusedError."""
    body = answer.json()
    if answer.is_error:
        raise RefusedError(answer.status_code, str(body.get("reason")), str(body.get("message")))
    return body


@contextmanager
def served_cluster(options: ClusterOptions | None = None, **given: Any) -> Generator[ServedCluster]:
    """Yield a cluster that serves until the block ends; the options are those of `ClusterOptions`. Raises ConfigError,
    InputError.
    """
    chosen = options or options_of(given)
    with TemporaryDirectory(prefix="pumice-") as folder, Host(chosen, Path(folder)) as host:
        cluster = ServedCluster(host, Path(folder))
        try:
            yield cluster
        finally:
            cluster.close()


class ClusterPool:
    """Starts a cluster when none with these options is free, and stops all of them with `close`."""

    def __init__(self) -> None:
        self._free: dict[str, list[ServedCluster]] = {}
        self._stacks: dict[ServedCluster, ExitStack] = {}

    def lend(self, options: ClusterOptions) -> ServedCluster:
        """Return a cluster that is as it was at its beginning. Raises ConfigError, InputError."""
        if free := self._free.get(options.key):
            return free.pop()
        with ExitStack() as stack:
            cluster = stack.enter_context(served_cluster(options))
            self._stacks[cluster] = stack.pop_all()
        return cluster

    def take_back(self, cluster: ServedCluster) -> None:
        """Reset a cluster for the next test. One that cannot be reset is stopped, and the error raised."""
        try:
            cluster.reset()
        except BaseException:
            self._stacks.pop(cluster).close()
            raise
        self._free.setdefault(cluster.options.key, []).append(cluster)

    def close(self) -> None:
        """Stop all clusters."""
        with ExitStack() as stack:
            for each in self._stacks.values():
                stack.callback(each.close)
