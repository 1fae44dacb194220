"""What tests of kubelets share."""

import pytest

from pumice.cluster.kubelets.machine import NodeAgentsMachine
from tests.actors.cluster import Cluster
from tests.kit.nodes import node


@pytest.fixture
def cluster() -> Cluster:
    """One with node agents and one node."""
    found = Cluster(NodeAgentsMachine())
    found.create(node("n1"))
    return found
