# SPDX-License-Identifier: Apache-2.0
"""The ConfigMap of devices. Source: Volcano `api/devices/config`."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from pumice.config.arguments import SWITCH, TEXT, Argument
from pumice.config.errors import ConfigError
from pumice.config.yaml_tree import read_documents
from pumice.core.objects.metadata import is_mapping, section

if TYPE_CHECKING:
    from pumice.config.schema import SchedulerConfig
    from pumice.core.objects.metadata import Object

PLUGIN: Final = "deviceshare"
FILE: Final = "device-config.yaml"

CONFIG_MAP: Final = Argument(
    f"{PLUGIN}.KnownGeometriesCMName", TEXT, "volcano-vgpu-device-config", "The name of the ConfigMap of devices."
)
NAMESPACE: Final = Argument(
    f"{PLUGIN}.KnownGeometriesCMNamespace", TEXT, "kube-system", "The namespace of the ConfigMap of devices."
)
HAMI: Final = Argument(f"{PLUGIN}.AscendHAMiVNPUEnable", SWITCH, False, "Whether NPUs are shared as HAMi shares them.")


def config_map_of(arguments: Object) -> str:
    """Return where the plugin's arguments say that the ConfigMap of devices is."""
    return f"{NAMESPACE.of(arguments)}/{CONFIG_MAP.of(arguments)}"


def hami_config_map(config: SchedulerConfig) -> str:
    """Return the name of the ConfigMap that lists the NPUs that HAMi shares, "" where the configuration does not share
    them.
    """
    option = config.plugin(PLUGIN)
    arguments = {} if option is None else option.arguments
    return config_map_of(arguments) if HAMI.of(arguments) else ""


def device_config(config_map: Object | None) -> Object | None:
    """Return the ConfigMap as plain data; None where it does not exist or cannot be read, as in Volcano."""
    text = section(config_map or {}, "data").get(FILE)
    return _read(text) if isinstance(text, str) else None


# The text seldom changes between sessions, and reading YAML takes longer than all that is done with it.
@lru_cache(maxsize=8)
def _read(text: str) -> Object | None:
    try:
        # A text that is not YAML counts like a missing ConfigMap: Volcano logs it and takes its defaults
        # (InitDevicesConfig).
        documents = read_documents(text, FILE)
    except ConfigError:
        return None
    data: Any = documents[0].data if documents else None
    return data if is_mapping(data) else None
