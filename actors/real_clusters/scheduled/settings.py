# SPDX-License-Identifier: Apache-2.0
"""Settings of the real cluster that is scheduled from here, and of the access to it."""

from __future__ import annotations

import socket
import uuid
from dataclasses import dataclass, field

import httpx

from pumice.actors.real_clusters.remote.backoff import INITIAL_S
from pumice.config.kubeconfig import ClusterAccess
from pumice.config.settings import CHARTS, ConfigMapName

QPS = 2000.0
BURST = 2000
"""Volcano's defaults of --kube-api-qps and --kube-api-burst (`cmd/scheduler/app/options`)."""
PERIOD_S = 0.01


def own_identity() -> str:
    """Return a name that no other process has, here or elsewhere (source: Volcano's `cmd/scheduler/app/server.go`)."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


@dataclass(frozen=True)
class ElectionSettings:
    """Settings of the leader election between schedulers (source: client-go's `leaderelection`, with Volcano's
    defaults); seconds.

    The holder of the Lease goes on for `renew_deadline_s` without a renewal, and others wait for `lease_duration_s`.
    """

    namespace: str = CHARTS.namespace
    name: str = "volcano"
    lease_duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0
    identity: str = field(default_factory=own_identity)


@dataclass(frozen=True)
class ClusterSettings:
    """Settings of a cluster. `qps`, `burst`: requests a second, in the long run and at most together; 0 for no limit.
    `election` None: no other scheduler works here. `config_map`: where the configuration stands. `writers`: concurrent
    requests. `period_s`, `poll_s`, `retry_s`: for how long changes are gathered, when kinds that are not served are
    looked at again, the first delay after a failure. `transport` stands for the network in tests.
    """

    access: ClusterAccess
    config_map: ConfigMapName = CHARTS
    qps: float = QPS
    burst: int = BURST
    election: ElectionSettings | None = None
    writers: int = 16
    period_s: float = PERIOD_S
    poll_s: float = 60.0
    retry_s: float = INITIAL_S
    transport: httpx.AsyncBaseTransport | None = None
