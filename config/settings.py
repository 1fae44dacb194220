# SPDX-License-Identifier: Apache-2.0
"""Process settings: values of the command line and the environment about the process, not about scheduling.

A flag wins over the environment, which wins over the default. ``--db`` is ``PUMICE_DB`` in the environment, and so on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from pumice.config.durations import parse_duration
from pumice.config.errors import UnknownNameError, WrongTypeError

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX: Final = "PUMICE_"

CONFIG_MAP: Final = "configmap:"
"""The prefix of a configuration that is stored in the cluster."""

Text = Annotated[str, Meta(min_length=1, title="a text")]
Address = Annotated[str, Meta(pattern=r"^(\[[^\]]+\]|[^:\[\]]*):\d{1,5}$", title="HOST:PORT, such as 127.0.0.1:8080")]
Until = Annotated[
    str,
    Meta(
        pattern=r"^(idle|0|([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+|cycles=0*[1-9][0-9]*)$",
        title="idle, a duration such as 30s or 1h30m, or cycles=N for at least one cycle",
    ),
]
Moment = Annotated[
    str,
    Meta(
        pattern=r"^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$",
        title="a time such as 2026-01-31T08:00:00Z",
    ),
]
Duration = Annotated[str, Meta(title="a duration such as 90s or 1h30m, 0 for ever")]
Keep = Annotated[str, Meta(pattern=r"^([0-9]+d|[0-9]+)$", title="a number of days such as 7d, or a number of cycles")]
Segment = Annotated[
    str, Meta(pattern=r"^0*[1-9][0-9]*d?$", title="a number of records, or a number of days such as 1d")
]
Bytes = Annotated[
    str, Meta(pattern=r"^0*[1-9][0-9]*([kMGTP]|[KMGTP]i)?$", title="a number of bytes such as 500M or 10Gi")
]
Count = Annotated[int, Meta(ge=1, le=2**63 - 1, title="an integer of at least 1")]
Amount = Annotated[float, Meta(ge=0, title="a number of at least 0")]
Seed = Annotated[int, Meta(ge=0, le=2**63 - 1, title="an integer of at least 0")]
Switch = Annotated[bool, Meta(title="true or false")]
Backend = Annotated[Literal["asyncio", "trio"], Meta(title="asyncio or trio")]
Authorization = Annotated[Literal["rbac", "none"], Meta(title="rbac or none")]
Time = Annotated[Literal["real", "virtual"], Meta(title="real or virtual")]
LogLevel = Annotated[Literal["debug", "info", "warning", "error"], Meta(title="debug, info, warning or error")]


DURATIONS: Final = (
    "default_duration",
    "event_ttl",
    "leader_elect_lease_duration",
    "leader_elect_renew_deadline",
    "leader_elect_retry_period",
)
"""The settings that are a `Duration`."""


class ConfigMapName(msgspec.Struct, frozen=True):
    """Name of the cluster's ConfigMap that holds a configuration."""

    namespace: str
    name: str

    @property
    def said(self) -> str:
        """Return the name that messages use."""
        return f"configmap {self.namespace}/{self.name}"


CHARTS: Final = ConfigMapName("volcano-system", "volcano-scheduler-configmap")
"""Where Volcano's chart puts it."""


class ProcessSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the process; None: not set."""

    config: Annotated[
        Text | None,
        Meta(
            description="Volcano's scheduler.conf, or configmap:NAMESPACE/NAME, which is followed; without it, the"
            " stock configuration."
        ),
    ] = None
    db: Annotated[Text, Meta(description="Journal to write: a SQLite file, made or continued.")] = "./pumice.db"
    http: Annotated[Address | None, Meta(description="Where the gateway listens; without it, nowhere.")] = None
    token: Annotated[
        Text | None, Meta(description="Token that clients of the gateway must show; without it, none.")
    ] = None
    token_file: Annotated[Text | None, Meta(description="A file that holds the token.")] = None
    tls_cert: Annotated[
        Text | None, Meta(description="A PEM file: the gateway's certificate, which makes it HTTPS.")
    ] = None
    tls_key: Annotated[Text | None, Meta(description="A PEM file: the key of the certificate.")] = None
    authorization: Annotated[
        Authorization | None,
        Meta(description="Whether Kubernetes' roles are enforced; without it, rbac off the loopback."),
    ] = None
    token_auth_file: Annotated[
        Text | None, Meta(description='Users by token, as in Kubernetes: lines of token,user,uid,"group1,group2".')
    ] = None
    client_ca_file: Annotated[
        Text | None,
        Meta(description="A PEM file: who signs clients' certificates, which name a user (CN) and groups (O)."),
    ] = None
    service_account_key_file: Annotated[
        Text | None,
        Meta(
            description="A file of random bytes that signs tokens of ServiceAccounts; without it, a new key each start."
        ),
    ] = None
    client_bytes: Annotated[
        Bytes | None,
        Meta(description="Bytes that the gateway may hold for all clients together; without it, 128Mi."),
    ] = None
    max_objects: Annotated[
        Count | None, Meta(description="Number of objects from which on clients create none; without it, 1000000.")
    ] = None
    max_object_bytes: Annotated[
        Bytes | None, Meta(description="Bytes of all objects from which on clients add none; without it, 8Gi.")
    ] = None
    no_scheduler: Annotated[Switch, Meta(description="Leave all pods to other schedulers.")] = False
    no_default_scheduler: Annotated[
        Switch, Meta(description="Leave pods of default-scheduler to another scheduler.")
    ] = False
    no_controllers: Annotated[
        Switch, Meta(description="Leave Volcano's jobs, pod groups and queues to other controllers.")
    ] = False
    no_agents: Annotated[Switch, Meta(description="Leave all nodes to other agents, such as kwok.")] = False
    check_cycles: Annotated[
        Switch,
        Meta(
            description="Before every cycle, check the view's sums, and the columns that are kept from cycle to cycle."
        ),
    ] = False
    backend: Annotated[Backend, Meta(description="The event loop.")] = "asyncio"
    time: Annotated[Time, Meta(description="The clock: the machine's, or trio's virtual clock.")] = "real"
    start: Annotated[
        Moment | None,
        Meta(description="When virtual time begins; else once the journal and the input's times are over, or in 2023."),
    ] = None
    default_duration: Annotated[
        Duration,
        Meta(description="How long a pod runs that does not say so; 0: for ever. A pod that came running never ends."),
    ] = "5s"
    speedup: Annotated[Count, Meta(description="Divide arrivals and durations in manifests and traces by this.")] = 1
    until: Annotated[Until | None, Meta(description="When to stop; without it, on Ctrl-C.")] = None
    seed: Annotated[Seed, Meta(description="Seed of all that is random.")] = 0
    faults: Annotated[
        Text | None, Meta(description="A fault profile for the built-in API server, or for its clients.")
    ] = None
    profiles: Annotated[Text | None, Meta(description="YAML file with fault profiles of your own.")] = None
    keep: Annotated[Keep | None, Meta(description="How much of the journal to keep; without it, all.")] = None
    keep_events: Annotated[
        Count | None, Meta(description="Number of records of the journal to keep; without it, all.")
    ] = None
    segments: Annotated[
        Segment | None,
        Meta(description="How much goes into one segment, a file beside the journal; without it, there are none."),
    ] = None
    keep_bytes: Annotated[
        Bytes | None, Meta(description="Bytes that the journal and its segments may take together; without it, any.")
    ] = None
    event_ttl: Annotated[Duration, Meta(description="How long an Event object is kept.")] = "1h"
    plugins_dir: Annotated[
        Text | None, Meta(description="Folder with plugins of your own; without it, installed plugins only.")
    ] = None
    lenient: Annotated[Switch, Meta(description="Unknown configuration keys warn instead of failing.")] = False
    kubeconfig: Annotated[
        Text | None,
        Meta(
            description="Schedule the real cluster of this kubeconfig, or with `in-cluster` the cluster of this"
            " process's own pod."
        ),
    ] = None
    context: Annotated[Text | None, Meta(description="Context of the kubeconfig; without it, its current context.")] = (
        None
    )
    kube_api_qps: Annotated[Amount, Meta(description="Requests a second to the real cluster, 0: no limit.")] = 2000.0
    kube_api_burst: Annotated[Count, Meta(description="Requests to the real cluster in one burst.")] = 2000
    leader_elect: Annotated[
        Switch, Meta(description="Schedule the real cluster only while holding a Lease there, as Volcano's does.")
    ] = True
    leader_elect_lease_duration: Annotated[
        Duration, Meta(description="Time after which others take a Lease that was not renewed.")
    ] = "15s"
    leader_elect_renew_deadline: Annotated[
        Duration, Meta(description="Time after which a Lease that cannot be renewed is lost, and the process ends.")
    ] = "10s"
    leader_elect_retry_period: Annotated[
        Duration, Meta(description="Time between two tries to get or renew the Lease.")
    ] = "2s"
    leader_elect_resource_name: Annotated[Text, Meta(description="Name of the Lease; the default is Volcano's.")] = (
        "volcano"
    )
    leader_elect_resource_namespace: Annotated[Text, Meta(description="Namespace of the Lease.")] = "volcano-system"
    log_level: Annotated[LogLevel, Meta(description="Least severe messages to log.")] = "warning"

    def __post_init__(self) -> None:
        """Check the durations. Raises ValueError for a text that is not a duration, or a negative one."""
        for name in DURATIONS:
            if parse_duration(getattr(self, name)) < 0:
                raise ValueError(f"{name} is negative")


class ProcessSetting(msgspec.Struct, frozen=True):
    """One process setting as the documentation shows it."""

    name: str
    flag: str
    variable: str
    expected: str
    default: str
    description: str


def config_map_of(config: str | None) -> ConfigMapName | None:
    """Return the ConfigMap that `--config` names, or None. Raises WrongTypeError for half a name."""
    if config is None or not config.startswith(CONFIG_MAP):
        return None
    namespace, _, name = config.removeprefix(CONFIG_MAP).partition("/")
    if not namespace or not name or "/" in name:
        raise WrongTypeError("configmap:NAMESPACE/NAME", config, path="--config")
    return ConfigMapName(namespace, name)


def process_settings() -> dict[str, ProcessSetting]:
    """Return every process setting by field name, from the record's own annotations."""
    info = msgspec.inspect.type_info(ProcessSettings)
    assert isinstance(info, msgspec.inspect.StructType)
    return {item.name: _setting(item) for item in info.fields}


def read_process_settings(flags: Mapping[str, object], environ: Mapping[str, str]) -> ProcessSettings:
    """Merge flags (by field name; None when absent) over the environment over the defaults.

    Raises WrongTypeError naming the flag or the variable, UnknownNameError for a flag that is not a setting.
    """
    known = process_settings()
    values: dict[str, object] = {}
    for name, setting in known.items():
        said = environ.get(setting.variable)
        # Set but empty counts as not set: so a shell can switch a variable off.
        if said:
            values[name] = _checked(name, said, setting.expected, source="environment", path=setting.variable)
    for name, value in flags.items():
        if name not in known:
            raise UnknownNameError("setting", name, known)
        # None: the flag was not given, so the environment or the default counts.
        if value is not None:
            values[name] = _checked(name, value, known[name].expected, path=known[name].flag)
    return msgspec.convert(values, ProcessSettings, strict=False)


def _checked(name: str, value: object, expected: str, *, path: str, source: str = "") -> object:
    try:
        msgspec.convert({name: value}, ProcessSettings, strict=False)
    except msgspec.ValidationError as error:
        raise WrongTypeError(expected, value, source=source, path=path) from error
    return value


def _setting(item: msgspec.inspect.Field) -> ProcessSetting:
    kind: Any = item.type  # inspect.Metadata: every field is annotated
    words: dict[str, str] = dict(kind.extra_json_schema)
    if "title" not in words:  # optional: what it may be stands one level further in
        words |= next(one.extra_json_schema for one in kind.type.types if hasattr(one, "extra_json_schema"))
    default = "none" if item.default is None else str(item.default).lower()
    flag = "--" + item.name.replace("_", "-")
    return ProcessSetting(item.name, flag, PREFIX + item.name.upper(), words["title"], default, words["description"])
