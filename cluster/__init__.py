# SPDX-License-Identifier: Apache-2.0
"""The cluster in the process: API, controllers and kubelets, as plain synchronous code."""

from typing import Final

if __name__ == "cluster":
    raise ModuleNotFoundError("'cluster' is imported as pumice.cluster", name=__name__)

RELEASE: Final = "v1.35.3"
"""The Kubernetes release whose behaviour the cluster has."""
