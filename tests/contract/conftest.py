"""Servers that the contract tests speak to: real processes on real ports, started once a session."""

from collections.abc import Iterator

import httpx
import pytest

from tests.kit.serving import PASSIVE, Served, served


@pytest.fixture(scope="session")
def passive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The api and the node agents; no scheduler, no controllers."""
    with served(tmp_path_factory.mktemp("passive"), *PASSIVE) as server:
        yield server


@pytest.fixture
def http(passive: Served) -> Iterator[httpx.Client]:
    """A client of the passive server."""
    with passive.client() as client:
        yield client


@pytest.fixture
def namespace(http: httpx.Client) -> str:
    """A fresh namespace on the passive server."""
    return new_namespace(http)


def new_namespace(http: httpx.Client) -> str:
    """A namespace that no other test knows."""
    made = http.post("/api/v1/namespaces", json={"metadata": {"generateName": "t-"}}).raise_for_status()
    name: str = made.json()["metadata"]["name"]
    return name
