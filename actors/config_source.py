"""Where the scheduler configuration comes from: a text, or a file that is read again when it changed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from config.load import parse_scheduler_config
from config.schema import SchedulerConfig

from config.errors import ConfigError


@dataclass(frozen=True)
class LoadedConfig:
    """A configuration in force: the text it came from (the journal keeps it) and a digest of that text."""

    config: SchedulerConfig
    text: str
    digest: str
    source: str


class ConfigSource:
    """`path` None: the text never changes. Raises ConfigError at once when the first text is bad."""

    def __init__(self, text: str, *, path: Path | None = None, source: str = "default", lenient: bool = False) -> None:
        self._path = path
        self._lenient = lenient
        self._stamp = _stamp(path)
        self.name = str(path) if path is not None else source
        self.loaded = self._load(text if path is None else path.read_text(encoding="utf-8"))

    @property
    def can_change(self) -> bool:
        """Whether there is a file to look at."""
        return self._path is not None

    def look(self) -> LoadedConfig | None:
        """The new configuration when the file changed, else None. Raises ConfigError for a bad file, once."""
        stamp = _stamp(self._path)
        if self._path is None or stamp == self._stamp:
            return None
        self._stamp = stamp
        try:
            text = self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot be read: {error}", source=self.name) from error
        loaded = self._load(text)
        if loaded.digest == self.loaded.digest:
            return None
        self.loaded = loaded
        return loaded

    def _load(self, text: str) -> LoadedConfig:
        config = parse_scheduler_config(text, source=self.name, lenient=self._lenient)
        return LoadedConfig(config, text, hashlib.sha256(text.encode()).hexdigest(), self.name)


def _stamp(path: Path | None) -> tuple[int, int] | None:
    try:
        stat = path.stat() if path is not None else None
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_size) if stat is not None else None
