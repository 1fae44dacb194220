"""What is mirrored, and how."""

from __future__ import annotations

from dataclasses import dataclass

import httpx

from actors.remote.backoff import INITIAL_S
from config.kubeconfig import ClusterAccess
from config.settings import CHARTS, ConfigMapName

PERIOD_S = 1.0
"""As long as Volcano's scheduler waits between two cycles."""


@dataclass(frozen=True)
class MirrorSettings:
    """`period_s`: seconds in which changes are gathered; `config_map`: where the cluster's scheduler has its
    configuration; `poll_s`: when kinds that are not served are looked at again; `retry_s`: the first delay after a
    failure; `transport` stands for the network in tests.
    """

    access: ClusterAccess
    config_map: ConfigMapName = CHARTS
    period_s: float = PERIOD_S
    poll_s: float = 60.0
    retry_s: float = INITIAL_S
    transport: httpx.AsyncBaseTransport | None = None
