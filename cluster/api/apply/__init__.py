# SPDX-License-Identifier: Apache-2.0
"""Server-side apply: owners of fields, merging by owner, and conflicts, as in structured-merge-diff."""

from pumice.cluster.api.apply.owners import track_update
from pumice.cluster.api.apply.server_side import Applicant, apply

__all__ = ["Applicant", "apply", "track_update"]
