# SPDX-License-Identifier: Apache-2.0
"""Options of a cluster for tests, and what follows from them: its objects and the settings of its system."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pumice.actors.gateway.settings import Authorization
from pumice.actors.system.settings import SystemSettings
from pumice.cluster.kernel.intake import in_order
from pumice.config.durations import parse_duration
from pumice.config.errors import UnknownNameError
from pumice.core.objects.metadata import Object, is_mapping
from pumice.errors import InputError
from pumice.runtime.built_in import builtin_nodes
from pumice.storage.retention import Retention
from pumice.testing.faults import Profile

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.actors.gateway.settings import GatewaySettings
    from pumice.actors.runtime.clock import Alarm

Manifests = str | Path | Object | Sequence["Manifests"]
"""A path (a file or a folder), the text of YAML documents, an object, or several of these."""

RECORDS: Final = 20_000
"""Records of the journal that are kept at least: a session of tests may last for hours."""


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """Options of a cluster. Two clusters with equal options are alike.

    `nodes`: how many built-in ones (cpu 8, memory 16Gi, 110 pods), or the nodes as manifests. `manifests` and `crds`
    are there from the beginning, and again after every reset. `config`: Volcano's scheduler.conf, as a path or as its
    text. `time`: "real", or "virtual", which stands still until `ServedCluster.advance` moves it. `lenient`: unknown
    keys of the configuration warn instead of failing. `scheduler` (Volcano's), `default_scheduler` (Kubernetes' own,
    which needs the other), `controllers` (Volcano's) and `kubelets` may be left out for the tests of another one.
    `default_duration`: how long a pod runs that neither says so nor has a command that does ("0": for ever). `token`:
    what clients must send ("": nothing, or with roles one that is made up). `faults`: those that clients meet from the
    beginning and after every reset.

    `authorization`: "rbac" enforces Kubernetes' roles; `ServedCluster.user` makes users. `tls`: the server has a
    certificate of its own; kubectl and Go's clients send tokens over TLS only.
    """

    nodes: int | Manifests = 3
    manifests: Manifests = ()
    crds: Manifests = ()
    config: str | Path | None = None
    time: Literal["real", "virtual"] = "real"
    lenient: bool = False
    scheduler: bool = True
    default_scheduler: bool = True
    controllers: bool = True
    kubelets: bool = True
    default_duration: str = "5s"
    token: str = ""
    faults: Profile | None = None
    seed: int = 0
    authorization: Authorization = "none"
    tls: bool = False

    def __post_init__(self) -> None:
        if self.authorization not in ("rbac", "none"):
            raise InputError(f"expected rbac or none, was {self.authorization!r}", path="authorization")
        if self.time not in ("real", "virtual"):
            raise InputError(f"expected real or virtual, was {self.time!r}", path="time")
        _duration_s(self.default_duration)

    @property
    def key(self) -> str:
        """Return a text that equal options share."""
        return repr(self)

    def objects(self) -> list[Object]:
        """Return the objects from the beginning, those that others refer to first. Raises InputError."""
        nodes = builtin_nodes(self.nodes) if isinstance(self.nodes, int) else read_manifests(self.nodes)
        return [*read_manifests(self.crds), *in_order([*nodes, *read_manifests(self.manifests)])]

    def settings(self, gateway: GatewaySettings, alarm: Callable[[], Alarm]) -> SystemSettings:
        """Return the settings of the system that serves with the gateway's, and sleeps by the alarms."""
        text, path = _config(self.config)
        return SystemSettings(
            config_text=text,
            config_path=path,
            lenient=self.lenient,
            seed=self.seed,
            default_duration_s=_duration_s(self.default_duration),
            gateway=gateway,
            scheduler=self.scheduler,
            default_scheduler=self.default_scheduler,
            controllers=self.controllers,
            agents=self.kubelets,
            alarm=alarm,
            gc_thresholds=None,  # these two belong to the process, which is the tests'
            switch_interval_s=None,
            checkpoint_every=RECORDS,
            retention=Retention(events=RECORDS),
        )


def options_of(given: Mapping[str, Any]) -> ClusterOptions:
    """Return the options of a marker, a fixture or a call. Raises UnknownNameError, InputError."""
    known = [each.name for each in fields(ClusterOptions)]
    for name in given:
        if name not in known:
            raise UnknownNameError("option", name, known)
    return ClusterOptions(**given)


def _duration_s(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise InputError(f"expected a duration such as 90s or 1h30m, was {text!r}", path="default_duration") from error


def _config(config: str | Path | None) -> tuple[str, Path | None]:
    """Return the text of a configuration, or its path."""
    if config is None:
        return "", None
    return (config, None) if isinstance(config, str) and is_text(config) else ("", Path(config))


def is_text(given: str) -> bool:
    """Return whether this is a text and not a path: a path has no line end, and no colon before a blank."""
    return "\n" in given or ": " in given


def read_manifests(given: Manifests) -> list[Object]:
    """Return the objects. Raises InputError for the first that cannot be used."""
    if isinstance(given, dict):
        return [given]
    if isinstance(given, (str, Path)):
        return _read_texts(given) if isinstance(given, str) and is_text(given) else _read_files(given)
    return [obj for each in given for obj in read_manifests(each)]


def _read_files(path: str | Path) -> list[Object]:
    """Return the objects as they stand there: the server judges them, and may know kinds that this process does not."""
    from pumice.load.source import read_texts  # noqa: PLC0415 - most tests hand in objects

    found = list[Object]()
    for source, text in read_texts(str(path), io.StringIO()):
        if isinstance(text, InputError):
            raise text
        found += _read_texts(text, source)
    return found


def _read_texts(text: str, source: str = "the text") -> list[Object]:
    from pumice.load.manifests import plain_values  # noqa: PLC0415 - most tests hand in objects

    given: list[Any] = [*plain_values(text, source)]
    if not all(map(is_mapping, given)):
        raise InputError("expected Kubernetes objects", source=source)
    return given
