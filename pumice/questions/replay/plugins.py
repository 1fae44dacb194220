# SPDX-License-Identifier: Apache-2.0
"""The users' plugins with which a journal was decided, against the installed ones."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pumice.config.errors import ConfigError
from pumice.core.messages.events import ConfigLoaded
from pumice.plugins.loader import differences, identities, install_plugins
from pumice.questions.history.naming import open_naming
from pumice.storage.checkpoint import read_checkpoint
from pumice.storage.errors import CodecError, DamagedError
from pumice.storage.journal import CONFIG
from pumice.storage.records import read_as

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.questions.history.naming import Naming


async def recorded_plugins(naming: Naming) -> dict[str, set[str]]:
    """Return name -> identities, over all recorded configurations that were in force."""
    found: dict[str, set[str]] = {}
    for loaded in await _configurations(naming):
        for name, identity in loaded.plugins.items():
            found.setdefault(name, set()).add(identity)
    return dict(sorted(found.items()))


async def _configurations(naming: Naming) -> list[ConfigLoaded]:
    head = await naming.journal.head()
    found: list[ConfigLoaded] = []
    if head.cut:
        # The oldest that can be read is enough: later configurations have records of their own.
        for checkpoint in reversed(await naming.journal.checkpoints()):
            with suppress(CodecError):
                config = read_checkpoint(checkpoint, past=False).recovered.config
                found += [config] if config is not None else []
                break
    with suppress(CodecError, DamagedError):  # the replay says so
        found += [read_as(stored, ConfigLoaded) for stored in await naming.listed(CONFIG, head.cut)]
    return found


async def demand_plugins(file: Path, folder: Path | None, warn: Callable[[str], None]) -> list[str]:
    """Install the plugins of the folder; those with which the journal was decided must exist.

    Returns a sentence for each that is another version than was recorded, and warns of it. Raises ConfigError naming
    one that is missing.
    """
    install_plugins(folder)
    async with open_naming(file) as naming:
        return demand(await recorded_plugins(naming), str(file), warn)


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
    async with open_naming(file) as naming:
        found = [loaded for loaded in await _configurations(naming) if not loaded.error]
    if not found:
        raise ConfigError("the journal tells of no configuration", source=str(file))
    return found[-1]
