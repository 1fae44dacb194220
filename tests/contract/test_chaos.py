"""Watches break, requests conflict, the server restarts: no write is lost and every view ends up right."""

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.contract.conftest import new_namespace
from tests.kit.cutting import cutting
from tests.kit.informer import Informer
from tests.kit.serving import PASSIVE, Served, served

pytestmark = pytest.mark.slow

WRITERS = 4
WAIT_S = 5.0
SHARED = ("one", "two")


class Writer:
    """Adds keys of its own to shared ConfigMaps by get and put, again and again until each is in."""

    def __init__(self, client: Callable[[], httpx.Client], path: str, number: int, steps: int) -> None:
        self.conflicts = 0
        self.breaks = 0
        self._client = client
        self._path = path
        self._number = number
        self._steps = steps

    def run(self) -> None:
        with self._client() as http:
            for step in range(self._steps):
                self._until_written(http, f"{self._path}/{SHARED[step % 2]}", f"w{self._number}-{step}")

    def _until_written(self, http: httpx.Client, path: str, key: str) -> None:
        while True:
            try:
                if self._write(http, path, key):
                    return
            except httpx.TransportError:
                self.breaks += 1

    def _write(self, http: httpx.Client, path: str, key: str) -> bool:
        found = http.get(path).raise_for_status().json()
        if key in found.get("data", {}):
            return True
        found.setdefault("data", {})[key] = "x"
        answer = http.put(path, json=found)
        self.conflicts += answer.status_code == 409
        assert answer.status_code in (200, 409), answer.text
        return False


def eventually(holds: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def listed(http: httpx.Client, path: str) -> dict[str, str]:
    """Revision by name."""
    found = http.get(path).raise_for_status().json()["items"]
    return {
        f"{one['metadata']['namespace']}/{one['metadata']['name']}": one["metadata"]["resourceVersion"] for one in found
    }


def seen(informer: Informer) -> dict[str, str]:
    return {key: one["metadata"]["resourceVersion"] for key, one in dict(informer.view).items()}


@pytest.mark.parametrize(
    ("backend", "steps"),
    [("asyncio", 8), *(pytest.param(backend, 25, marks=pytest.mark.slow) for backend in ("asyncio", "trio"))],
)
def test_watches_break_and_writes_conflict(tmp_path: Path, backend: str, steps: int) -> None:
    with served(tmp_path, *PASSIVE, "--backend", backend) as server, server.client() as http:
        storm(server, http, steps)


def storm(passive: Served, http: httpx.Client, steps: int) -> None:
    """Writers that share objects and informers that watch them, all on a wire that breaks."""
    path = f"/api/v1/namespaces/{new_namespace(http)}/configmaps"
    for name in SHARED:
        http.post(path, json={"metadata": {"name": name}}).raise_for_status()
    with cutting(passive.port, seed=1) as wire:
        way = partial(passive.client, wire.port, WAIT_S)
        informers = [Informer(way, path, streaming=number % 2 == 0).start() for number in range(4)]
        writers = [Writer(way, path, number, steps) for number in range(WRITERS)]
        threads = [threading.Thread(target=writer.run) for writer in writers]
        for thread in threads:
            thread.start()
        for number in range(40):
            http.post(path, json={"metadata": {"name": f"short-{number}"}}).raise_for_status()
            http.delete(f"{path}/short-{number}").raise_for_status()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        final = listed(http, path)
        caught_up = eventually(lambda: all(seen(informer) == final for informer in informers))
        for informer in informers:
            informer.finish()
        for informer in informers:
            informer.stop()
    assert caught_up, [seen(informer) for informer in informers]
    keys = {key for name in SHARED for key in http.get(f"{path}/{name}").json()["data"]}
    assert keys == {f"w{number}-{step}" for number in range(WRITERS) for step in range(steps)}
    assert wire.cuts > 0
    assert sum(informer.breaks for informer in informers) > 0
    assert sum(writer.conflicts for writer in writers) > 0
    assert [informer.went_back for informer in informers] == [[]] * 4


def test_a_restarted_server_goes_on_where_it_was(tmp_path: Path) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    with served(tmp_path, *PASSIVE) as first:
        with first.client() as http:
            http.post(path, json={"metadata": {"name": "before"}}).raise_for_status()
        informer = Informer(partial(first.client, timeout=WAIT_S), path, streaming=True).start()
        assert eventually(lambda: "default/before" in informer.view)
        first.stop()
        first.start()
        with first.client() as http:
            http.post(path, json={"metadata": {"name": "after"}}).raise_for_status()
            assert eventually(lambda: seen(informer) == listed(http, path))
        informer.stop()
    assert informer.went_back == []


@pytest.mark.slow
def test_an_empty_store_makes_clients_list_again(tmp_path: Path) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    with served(tmp_path, *PASSIVE) as first:
        with first.client() as http:
            http.post(path, json={"metadata": {"name": "before"}}).raise_for_status()
        informer = Informer(partial(first.client, timeout=WAIT_S), path, streaming=False).start()
        assert eventually(lambda: "default/before" in informer.view)
        first.stop()
        first.start("another.db")
        with first.client() as http:
            assert eventually(lambda: seen(informer) == listed(http, path)), informer.view
        informer.stop()
    assert "default/before" not in informer.view
    assert (informer.lists, informer.went_back) == (2, [])
