"""What tests of Volcano's Jobs share."""

import pytest

from tests.actors.cluster import Cluster
from tests.cluster.controllers.jobs.job_cluster import job_cluster


@pytest.fixture
def cluster() -> Cluster:
    """One node, the Job controller, node agents."""
    return job_cluster()
