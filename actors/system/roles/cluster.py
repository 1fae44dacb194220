# SPDX-License-Identifier: Apache-2.0
"""Roles of the cluster around the scheduler: the api server, its gateway, and arrivals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.actors.api_server.faults.faulty_server import api_server
from pumice.actors.arrivals import Arrivals
from pumice.actors.runtime.clock import VirtualClock
from pumice.actors.system import ports
from pumice.actors.system.settings import elsewhere, has_arrivals, mirroring, playing, serving
from pumice.actors.system.wiring import Role

if TYPE_CHECKING:
    from pumice.actors.api_server.server import ApiServer
    from pumice.actors.gateway.gateway import Gateway
    from pumice.actors.real_clusters.mirror.mirror import Mirror
    from pumice.actors.real_clusters.scheduled.cluster_api import ClusterApi
    from pumice.actors.system.wiring import Wiring

AHEAD: Final = 2
"""Batches of the api under way to the journal while it applies the next: the journal's thread always has one to write
while another comes back from it.
"""


def _api_server(wiring: Wiring, name: str) -> ApiServer:
    given = {**wiring.ports(name), "store": wiring.store}
    ahead = 0 if isinstance(wiring.context.clock, VirtualClock) else AHEAD  # there the journal takes no time
    return api_server(wiring.own(name), given, wiring.settings.faults, wiring.network, ahead)


def _gateway(wiring: Wiring, name: str) -> Gateway:
    from pumice.actors.gateway.gateway import Gateway  # noqa: PLC0415 - a web server is a tenth of a start

    # The gateway is told of a storm: it then serves the counts of faults.
    settings, stormy = wiring.settings.gateway, wiring.settings.faults is not None
    assert settings is not None
    return Gateway(
        *wiring.own(name),
        **wiring.ports(name),
        listings=wiring.store.listings,
        settings=settings,
        stormy=stormy,
        faults=wiring.client_faults,
        installable=playing(wiring.settings),
    )


def _arrivals(wiring: Wiring, name: str) -> Arrivals:
    return Arrivals(*wiring.own(name), **wiring.ports(name), coming=wiring.coming)


def _mirror(wiring: Wiring, name: str) -> Mirror:
    from pumice.actors.real_clusters.mirror.mirror import Mirror  # noqa: PLC0415 - few have one

    settings = wiring.settings.mirror
    assert settings is not None, "there is a mirror where something is mirrored"
    whose, ports = wiring.own(name), wiring.ports(name)
    return Mirror(*whose, **ports, settings=settings, source=wiring.source, memory=wiring.observed)


def _cluster_api(wiring: Wiring, name: str) -> ClusterApi:
    from pumice.actors.real_clusters.scheduled.cluster_api import ClusterApi  # noqa: PLC0415 - few have one

    settings = wiring.settings.cluster
    assert settings is not None, "there is one where decisions are carried out elsewhere"
    whose, ports, permission = wiring.own(name), wiring.ports(name), wiring.permission
    return ClusterApi(*whose, **ports, settings=settings, permission=permission)


API_SERVER: Final = Role(
    name="api-server",
    port=ports.ApiPort,
    # The supervisor is for storms alone: through it the faulty server has actors crashed.
    sends={"recorder": "recorder", "supervisor": "supervisor"},
    build=_api_server,
    # Not vital either: the store outlives the actor, and the next instance journals what a crash left unwritten.
    crashes=("api-server",),
    box="api server",
)

GATEWAY: Final = Role(
    name="gateway",
    port=ports.PokePort,
    sends={
        "api": "api-server",
        "cache": "cache",
        "metrics": "metrics",
        "recorder": "recorder",
        "runner": "session-runner",
    },
    build=_gateway,
    wanted=serving,
    box="gateway",
)

ARRIVALS: Final = Role(
    name="arrivals",
    port=ports.ArrivalsPort,
    sends={"api": "api-server"},
    build=_arrivals,
    wanted=has_arrivals,
    box="manifests · traces · dumps",
)

MIRROR: Final = Role(
    name="mirror",
    port=ports.MirrorPort,
    sends={"api": "api-server", "recorder": "recorder", "metrics": "metrics"},
    build=_mirror,
    wanted=mirroring,
    box="mirror",
)

CLUSTER_API: Final = Role(
    name="cluster-api",
    port=ports.ApiPort,
    sends={"api": "api-server"},
    build=_cluster_api,
    wanted=elsewhere,
    box="real cluster",
)
