# SPDX-License-Identifier: Apache-2.0
"""Settings of a mirror: the cluster, and how it is mirrored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import httpx

from pumice.actors.real_clusters.remote.backoff import INITIAL_S
from pumice.config.kubeconfig import ClusterAccess
from pumice.config.schema import SchedulerConfig
from pumice.config.settings import CHARTS, ConfigMapName

PERIOD_S = 1.0
"""As long as Volcano's scheduler waits between two cycles."""


LOOK_S = 3.0
"""Seconds between two looks at what stands: three of Volcano's schedule periods."""


@dataclass(frozen=True)
class ShadowSettings:
    """Settings of a shadow. `other`: decide by this instead of the cluster's own configuration; `source` and `digest`
    identify it.
    """

    other: SchedulerConfig | None = None
    source: str = ""
    digest: str = ""
    look_s: float = LOOK_S


@dataclass(frozen=True)
class MirrorSettings:
    """Settings of a mirror. `period_s`: seconds in which changes are gathered; `config_map`: where the cluster's
    scheduler has its configuration; `poll_s`: when kinds that are not served are looked at again; `retry_s`: the first
    delay after a failure; `transport` stands for the network in tests. `shadow`: each cycle is decided here as well,
    and compared. `names`: the file of pseudonyms that replace names.
    """

    access: ClusterAccess
    config_map: ConfigMapName = CHARTS
    period_s: float = PERIOD_S
    poll_s: float = 60.0
    retry_s: float = INITIAL_S
    transport: httpx.AsyncBaseTransport | None = None
    shadow: ShadowSettings | None = None
    names: Path | None = None
