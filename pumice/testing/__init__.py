# SPDX-License-Identifier: Apache-2.0
"""A cluster for tests of controllers: Kubernetes' API with controllers, schedulers and kubelets, in the test's process.

The fixture `pumice_cluster` (`pumice/pytest_cluster.py`) lends one to a test. docs/howto/testing.md is the guide.
"""

from pumice.testing.cluster import ClusterUser, RefusedError, ServedCluster, served_cluster
from pumice.testing.options import ClusterOptions
from pumice.testing.waits import NotReachedError

__all__ = ["ClusterOptions", "ClusterUser", "NotReachedError", "RefusedError", "ServedCluster", "served_cluster"]
