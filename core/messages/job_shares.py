"""How much of the cluster jobs and namespaces have, as a cycle leaves it: columns, for mostly nobody looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from pumice.core.state.columns import FloatArray


class JobShares(Struct, frozen=True, gc=False):
    """`jobs` by "namespace/name" and `of_jobs` float64 [job], `namespaces` and `of_namespaces` float64 [namespace]: the
    largest part of any resource of the cluster that they have. Empty where no plugin reckons it.
    """

    jobs: list[str] = []
    of_jobs: bytes = b""
    namespaces: list[str] = []
    of_namespaces: bytes = b""

    def by_job(self) -> FloatArray:
        """The shares of jobs."""
        return np.frombuffer(self.of_jobs, dtype=np.float64)

    def by_namespace(self) -> FloatArray:
        """Those of namespaces."""
        return np.frombuffer(self.of_namespaces, dtype=np.float64)
