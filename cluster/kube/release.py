"""The Kubernetes release whose behaviour the cluster has."""

from __future__ import annotations

from typing import Final

RELEASE: Final = "v1.35.3"
