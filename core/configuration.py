# SPDX-License-Identifier: Apache-2.0
"""Scheduler configurations, read with all known plugins: built-in ones and installed plugins of users."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from pumice.config.load import ConfigReader, default_text
from pumice.config.schema import SchedulerConfig
from pumice.core.messages.events import ConfigLoaded
from pumice.core.plugins import known_plugins

_READER: Final = ConfigReader(known_plugins)

parse_scheduler_config: Final = _READER.parse
parse_or_built_in: Final = _READER.parse_or_built_in
from_parsed: Final = _READER.from_parsed
load_scheduler_config: Final = _READER.load


def parsed(told: ConfigLoaded, *, lenient: bool = True) -> SchedulerConfig:
    """Return a configuration; that of a journal was valid once, and is read leniently. Raises ConfigError."""
    return parse_scheduler_config(told.text or default_text(), source=told.source, lenient=lenient)


def taken(told: ConfigLoaded, *, lenient: bool) -> tuple[ConfigLoaded, SchedulerConfig]:
    """Return a configuration of the user's, as a process that starts with it has it. Raises ConfigError."""
    config, text = parse_or_built_in(told.text or default_text(), source=told.source, lenient=lenient)
    return (told if text == told.text else replace(told, text=text)), config
