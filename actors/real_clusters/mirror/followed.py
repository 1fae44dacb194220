"""What is followed of a cluster: all that a scheduler reads, and the Jobs that pods belong to; no Secret."""

from __future__ import annotations

from typing import Final

from pumice.actors.real_clusters.remote.listing import RemoteResource
from pumice.cluster.api.kinds import KINDS, Kind
from pumice.config.settings import ConfigMapName
from pumice.core.state.watched import WATCHED

CONFIG_MAP: Final = "ConfigMap"
JOB: Final = "Job"
ORDER: Final = (*WATCHED, JOB)
"""Kinds as they are taken in from new lists: pods find their nodes, queues and groups when they come."""


def resources(config_map: ConfigMapName) -> list[RemoteResource]:
    """In the order of ORDER. Of ConfigMaps the scheduler's configuration alone."""
    return [_config(config_map) if key == CONFIG_MAP else _resource(KINDS[key]) for key in ORDER]


def _resource(kind: Kind) -> RemoteResource:
    return RemoteResource(kind.key, kind.api_version, kind.kind, f"{_root(kind)}/{kind.plural}")


def _config(name: ConfigMapName) -> RemoteResource:
    kind = KINDS[CONFIG_MAP]
    path = f"{_root(kind)}/namespaces/{name.namespace}/{kind.plural}"
    return RemoteResource(kind.key, kind.api_version, kind.kind, path, only=name.name)


def _root(kind: Kind) -> str:
    return f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
