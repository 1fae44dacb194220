# SPDX-License-Identifier: Apache-2.0
"""Clusters as fixtures: `pumice_cluster` is a Kubernetes API server with controllers, schedulers and kubelets.

def test_a_pod_runs(pumice_cluster):
    pumice_cluster.apply(POD)
    pumice_cluster.wait_for("pod", "web", "condition=Ready")

Options come from the fixture `pumice_options` and the marker `pumice_cluster`; docs/howto/testing.md lists them. Loaded
by pytest itself, in every run of an environment that has Pumice; nothing else is imported before a test asks for a
cluster.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from pumice.core.objects.metadata import Object
    from pumice.testing.cluster import ClusterPool, ServedCluster

Scope = Literal["session", "package", "module", "class", "function"]

MARKER: Final = "pumice_cluster"
FAILED: Final = pytest.StashKey[bool]()
SCOPES: Final = ("session", "package", "module", "class", "function")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option and the setting."""
    parser.getgroup("pumice").addoption(
        "--pumice-keep", metavar="FOLDER", help="Keep the journal of each cluster of a failed test in this folder."
    )
    parser.addini(
        "pumice_scope", "Scope after which the fixture pumice_cluster is reset (function).", default="function"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(**options): options of the cluster, such as nodes=5; `pumice.testing` lists them.",
    )


def scope_of(fixture_name: str, config: pytest.Config) -> Scope:
    """Return the scope of the fixtures, as the setting has it. Raises UsageError."""
    said: Scope = config.getini("pumice_scope")
    if said not in SCOPES:
        raise pytest.UsageError(f"pumice_scope: expected one of {', '.join(SCOPES)}, was {said!r}")
    return said


@pytest.fixture(scope="session")
def pumice_options() -> Object:
    """Return the options of all clusters; a suite overrides this fixture."""
    return {}


@pytest.fixture(scope="session")
def pumice_pool() -> Generator[ClusterPool]:
    """Return the clusters of this process: with pytest-xdist, each worker has its own."""
    from pumice.testing.cluster import ClusterPool  # noqa: PLC0415 - a second, where a test asks for a cluster

    pool = ClusterPool()
    yield pool
    pool.close()


@pytest.fixture(scope=scope_of)
def pumice_clusters(
    request: pytest.FixtureRequest, pumice_options: Object, pumice_pool: ClusterPool
) -> Generator[Callable[..., ServedCluster]]:
    """Return a function that returns a cluster with the given options, another one at each call."""
    from pumice.testing.options import options_of  # noqa: PLC0415

    lent: list[ServedCluster] = []

    def lend(**options: Any) -> ServedCluster:
        lent.append(pumice_pool.lend(options_of({**pumice_options, **options})))
        return lent[-1]

    yield lend
    kept: str | None = request.config.getoption("--pumice-keep")
    for number, cluster in enumerate(lent):
        if kept is not None and request.node.stash.get(FAILED, False):
            cluster.save_journal(_place(Path(kept), request.node.nodeid, number))
        pumice_pool.take_back(cluster)


@pytest.fixture(scope=scope_of)
def pumice_cluster(request: pytest.FixtureRequest, pumice_clusters: Callable[..., ServedCluster]) -> ServedCluster:
    """Return a cluster: `url`, `kubeconfig`, `apply`, `wait_for`, `advance` and more. It is reset after the test."""
    marker = request.node.get_closest_marker(MARKER)
    cluster: ServedCluster = pumice_clusters(**(marker.kwargs if marker is not None else {}))
    return cluster


def _place(folder: Path, test: str, number: int) -> Path:
    """Return the file of a cluster's journal, named after its test."""
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^\w.-]+", "-", test.removesuffix("]")).strip("-")
    path = folder / f"{name}{f'-{number + 1}' if number else ''}.db"
    path.unlink(missing_ok=True)
    return path


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note a failure for the fixtures, and add what its cluster has to say."""
    report = yield
    if report.failed and call.when == "call":
        for node in item.listchain():
            node.stash[FAILED] = True
        cluster: ServedCluster | None = getattr(item, "funcargs", {}).get("pumice_cluster")
        if cluster is not None:
            report.sections.append(("pumice_cluster", cluster.standing()))
    return report
