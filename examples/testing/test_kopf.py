"""A test of an operator: kopf runs it beside the test, against a cluster with its definition."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kopf.testing
import pytest

from pumice.testing import RefusedError, ServedCluster

HERE = Path(__file__).parent
TRAINING = {
    "apiVersion": "example.com/v1",
    "kind": "Training",
    "metadata": {"name": "mnist"},
    "spec": {"workers": 4, "seconds": 1},
}

pytestmark = pytest.mark.pumice_cluster(crds=HERE / "crds")


@pytest.fixture
def operator(pumice_cluster: ServedCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("KUBECONFIG", str(pumice_cluster.kubeconfig))
    with kopf.testing.KopfRunner(["run", "--all-namespaces", str(HERE / "training_operator.py")], timeout=30) as runner:
        yield runner


@pytest.mark.usefixtures("operator")
def test_a_training_runs_to_its_end(pumice_cluster: ServedCluster) -> None:
    pumice_cluster.apply(TRAINING)
    pumice_cluster.wait_for("training", "mnist", "jsonpath={.status.phase}=Completed", timeout_s=30)
    assert len(pumice_cluster.list("pods")) == 4


def test_a_training_without_workers_is_refused(pumice_cluster: ServedCluster) -> None:
    with pytest.raises(RefusedError, match=r"spec\.workers"):
        pumice_cluster.apply({**TRAINING, "spec": {"workers": 0}})
