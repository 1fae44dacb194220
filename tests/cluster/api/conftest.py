"""What tests of the API share."""

import pytest

from tests.actors.cluster import Cluster


@pytest.fixture
def cluster() -> Cluster:
    """An empty one, behind no server."""
    return Cluster()
