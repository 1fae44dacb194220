# SPDX-License-Identifier: Apache-2.0
"""Sources of the scheduler configuration: a text, or a file that is read again when it has changed.

A configuration that is offered meanwhile (a ConfigMap of the cluster) replaces a text.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path

import msgspec

from pumice.config.errors import ConfigError, IgnoredFileError
from pumice.config.load import BUILT_IN, INSTEAD, default_text, read_text
from pumice.config.schema import SchedulerConfig
from pumice.core.configuration import parse_scheduler_config
from pumice.core.messages.events import ConfigLoaded
from pumice.core.plugins import PLUGINS

log = logging.getLogger(__name__)
PARSED = 16
"""Number of parsed configurations that are remembered."""


@dataclass(frozen=True)
class LoadedConfig:
    """A configuration in force: its source text (the journal keeps it), a digest of that text, and its users' plugins
    with their identities; `default_duration_s` goes with it into the journal.
    """

    config: SchedulerConfig
    text: str
    digest: str
    source: str
    plugins: dict[str, str] = field(default_factory=dict[str, str])
    default_duration_s: float | None = None

    def told(self) -> ConfigLoaded:
        """Return the record of the configuration."""
        return ConfigLoaded(
            self.digest, self.text, self.source, plugins=self.plugins, default_duration_s=self.default_duration_s
        )


class ConfigSource:
    """A source. `path` None: the text ("": the stock configuration) never changes, unless another one may be offered
    (`offers`). Raises ConfigError when the first one is not valid.

    `user_plugins`: what tells one version of a user's plugin from another, by name; `changed_plugins`: which of them
    have changed since they were loaded. `default_duration_s`: how long pods run beside it that do not say.
    """

    def __init__(
        self,
        text: str,
        *,
        path: Path | None = None,
        offers: bool = False,
        lenient: bool = False,
        user_plugins: Mapping[str, str] | None = None,
        changed_plugins: Callable[[], Collection[str]] = tuple,
        default_duration_s: float | None = None,
    ) -> None:
        self._default_duration_s = default_duration_s
        self._path = path
        self._user_plugins = user_plugins or {}
        self._changed_plugins = changed_plugins
        self._parse = partial(_parsed, lenient, tuple(PLUGINS))
        self.check: Callable[[str, str], str] = partial(_problem, self._parse)
        """(text, name) -> why it would be refused; "" when it would not."""
        self._stamp = _stamp(path)
        self._offered: str | None = None
        self._offers = offers
        self.name = str(path) if path is not None else "default.conf" if not text else "configuration"
        self.loaded = self._first(read_text(path) if path is not None else text or default_text())

    def fixes(self) -> tuple[str, ...]:
        """Return the defects of Volcano that are mended under the configuration in force (`pumice.config.fixes`)."""
        return self.loaded.config.pumice.fix

    @property
    def can_change(self) -> bool:
        """Return whether there is a file to watch, or a client that may offer another configuration."""
        return self._path is not None or self._offers

    def offer(self, text: str, name: str) -> None:
        """Offer a text to be taken at the next look."""
        self._offered, self.name = text, name

    def look(self) -> LoadedConfig | None:
        """Return the new configuration when it changed, else None. Raises ConfigError once for one that is not
        valid.
        """
        if self._offered is not None:
            text, self._offered = self._offered, None
            return self._take(text)
        stamp = _stamp(self._path)
        if self._path is None or stamp == self._stamp:
            return None
        # before the text is read: a bad file is refused once, and not at every look
        self._stamp = stamp
        return self._take(read_text(self._path))

    def _take(self, text: str) -> LoadedConfig | None:
        loaded = self._load(text)
        # A loaded module stays as it is: with new files its decisions would not be those that the journal names.
        if changed := sorted(set(self._changed_plugins()) & loaded.plugins.keys()):
            log.warning(
                "the files of users' plugins have changed (%s): the ones that were loaded at the start stay in force "
                "until the process is started again",
                ", ".join(changed),
            )
        # A touched file or a rewritten ConfigMap has the same configuration.
        if loaded.digest == self.loaded.digest:
            return None
        self.loaded = loaded
        return loaded

    def _first(self, text: str) -> LoadedConfig:
        """Take Volcano's built-in default when the first file is ignored; the journal records its text."""
        try:
            return self._load(text)
        except IgnoredFileError as error:
            built_in = self._load(BUILT_IN)
            warned = msgspec.structs.replace(built_in.config, warnings=(f"{error}; {INSTEAD}",))
            return replace(built_in, config=warned)

    def _load(self, text: str) -> LoadedConfig:
        config = self._parse(text, self.name)
        named = {option.name for tier in config.tiers for option in tier.plugins}
        plugins = {name: identity for name, identity in sorted(self._user_plugins.items()) if name in named}
        return LoadedConfig(config, text, digest_of(text), self.name, plugins, self._default_duration_s)


def digest_of(text: str) -> str:
    """Return the digest that tells one configuration from another."""
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=PARSED)
def _parsed(lenient: bool, plugins: tuple[str, ...], text: str, source: str) -> SchedulerConfig:
    """Return a parsed text. It is parsed once for all the systems that it sets up, as long as the plugins are the same:
    the result is frozen. Raises ConfigError.
    """
    return parse_scheduler_config(text, source=source, lenient=lenient, drops_actions=False)


def _problem(parse: Callable[[str, str], SchedulerConfig], text: str, name: str) -> str:
    try:
        parse(text, name)
    except ConfigError as error:
        return str(error)
    return ""


def _stamp(path: Path | None) -> tuple[int, int] | None:
    try:
        stat = path.stat() if path is not None else None
    except OSError:
        return None
    # Size as well: a file may be rewritten within the resolution of its time.
    return (stat.st_mtime_ns, stat.st_size) if stat is not None else None
