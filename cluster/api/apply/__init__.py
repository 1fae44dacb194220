"""Server-side apply: who owns which fields, merging by owner, conflicts. As structured-merge-diff does it."""

from pumice.cluster.api.apply.owners import track_update
from pumice.cluster.api.apply.server_side import Applicant, apply

__all__ = ["Applicant", "apply", "track_update"]
