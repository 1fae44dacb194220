# SPDX-License-Identifier: Apache-2.0
"""The users' plugins with which a journal was decided, against the installed ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pumice.config.errors import ConfigError
from pumice.core.messages.events import ConfigLoaded
from pumice.plugins.loader import differences, identities, install_plugins
from pumice.storage.checkpoint import read_checkpoint
from pumice.storage.errors import CodecError, DamagedError
from pumice.storage.journal import CONFIG, Journal
from pumice.storage.records import read_as
from pumice.storage.sqlite import open_history

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


async def recorded_plugins(journal: Journal) -> dict[str, set[str]]:
    """Return name -> identities, over all recorded configurations that were in force."""
    found: dict[str, set[str]] = {}
    for loaded in await _configurations(journal):
        for name, identity in loaded.plugins.items():
            found.setdefault(name, set()).add(identity)
    return dict(sorted(found.items()))


async def _configurations(journal: Journal) -> list[ConfigLoaded]:
    head = await journal.head()
    found: list[ConfigLoaded] = []
    if head.cut:
        for checkpoint in await journal.checkpoints():
            try:
                config = read_checkpoint(checkpoint, past=False).recovered.config
            except CodecError:
                continue
            found += [config] if config is not None else []
    try:
        after = head.cut
        while batch := await journal.read(after, (CONFIG,)):
            found += [read_as(stored, ConfigLoaded) for stored in batch]
            after = batch[-1].sequence
    except (CodecError, DamagedError):
        pass  # the replay says so
    return found


async def demand_plugins(file: Path, folder: Path | None, warn: Callable[[str], None]) -> list[str]:
    """Install the plugins of the folder; those with which the journal was decided must exist.

    Returns a sentence for each that is another version than was recorded, and warns of it. Raises ConfigError naming
    one that is missing.
    """
    install_plugins(folder)
    async with open_history(file) as journal:
        return demand(await recorded_plugins(journal), str(file), warn)


def demand(recorded: Mapping[str, set[str]], source: str, warn: Callable[[str], None]) -> list[str]:
    """Return a sentence for each recorded plugin (by name with all its versions) whose version differs now; `warn` is
    called with it. Raises ConfigError naming a missing one.
    """
    missing, changed = differences(recorded, identities())
    for name, identity in missing.items():
        problem = f"it was decided with the plugin {name!r} ({identity}), which is not here"
        raise ConfigError(f"{problem}: name its folder with --plugins-dir, or install it", source=source)
    for sentence in changed:
        warn(f"{source}: {sentence}: cycles may come out otherwise")
    return changed


async def in_force(file: Path) -> ConfigLoaded:
    """Return the configuration that cycles are decided by at the end of a journal. ConfigError where it tells of
    none."""
    async with open_history(file) as journal:
        found = [loaded for loaded in await _configurations(journal) if not loaded.error]
    if not found:
        raise ConfigError("the journal tells of no configuration", source=str(file))
    return found[-1]
