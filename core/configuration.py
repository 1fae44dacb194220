"""Scheduler configurations, read with all known plugins: built-in ones and installed plugins of users."""

from __future__ import annotations

from typing import Final

from pumice.config.load import ConfigReader
from pumice.core.plugins import known_plugins

_READER: Final = ConfigReader(known_plugins)

parse_scheduler_config: Final = _READER.parse
parse_or_built_in: Final = _READER.parse_or_built_in
from_parsed: Final = _READER.from_parsed
load_scheduler_config: Final = _READER.load
