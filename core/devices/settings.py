"""The ConfigMap of devices. Source: Volcano `api/devices/config`."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

from config.errors import ConfigError
from config.yaml_tree import read_documents
from core.objects.metadata import section

if TYPE_CHECKING:
    from core.objects.metadata import Object

FILE: Final = "device-config.yaml"


def device_config(config_map: Object | None) -> dict[str, Any] | None:
    """What the ConfigMap says, as plain data; None where there is none, or nobody can read it, as in Volcano."""
    text = section(config_map or {}, "data").get(FILE)
    return _read(text) if isinstance(text, str) else None


@lru_cache(maxsize=8)
def _read(text: str) -> dict[str, Any] | None:
    try:
        documents = read_documents(text, FILE)
    except ConfigError:
        return None
    data: Any = documents[0].data if documents else None
    return cast("dict[str, Any]", data) if isinstance(data, dict) else None
