# SPDX-License-Identifier: Apache-2.0
"""Loader of users' plugins: modules in a folder, and entry points of installed packages.

A module says what it has in a table of its own, `PLUGINS: dict[str, PluginBuilder]`, by the names the configuration is
to use. An entry point of the group `pumice.plugins` has the plugin's name and points at its builder.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple, cast

from pumice.config.errors import ConfigError, ConflictError
from pumice.config.input_file import demand_file, read_bytes
from pumice.core.objects.metadata import Object, is_mapping
from pumice.core.plugins import BUILT_IN, PLUGINS
from pumice.core.plugins.failures import FOLDER_PLUGINS, PluginQuestion, said_by
from pumice.core.plugins.plugin import PluginBuilder
from pumice.core.plugins.user import guarded

# --- Identities of plugins

DIGITS = 16


def of_module(path: Path) -> str:
    """Return name and digest of a module's source, or of all of a package's."""
    root = path.parent if path.name == "__init__.py" else path
    files = sorted(root.rglob("*.py")) if root.is_dir() else [root]
    digest = hashlib.sha256()
    for file in files:
        content = read_bytes(file)
        digest.update(f"{file.relative_to(root.parent).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return f"{root.name} sha256:{digest.hexdigest()[:DIGITS]}"


def of_entry_point(point: EntryPoint, builder: object) -> str:
    """Return the distribution with its version, and the module's source."""
    file = getattr(sys.modules.get(str(getattr(builder, "__module__", ""))), "__file__", None)
    whose = f"{point.dist.name} {point.dist.version} " if point.dist is not None else ""
    return f"{whose}{of_module(Path(file)) if file else point.value}"


def differences(recorded: Mapping[str, set[str]], installed: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Compare the plugins here with the recorded ones: return the missing ones (name -> identity), and a sentence for
    each that changed."""
    missing = {name: sorted(known)[-1] for name, known in recorded.items() if name not in installed}
    changed = [
        f"the plugin {name!r} was {', then '.join(sorted(known))} and is {installed[name]} now"
        for name, known in recorded.items()
        if name in installed and known != {installed[name]}
    ]
    return missing, changed


GROUP: Final = "pumice.plugins"
TABLE: Final = "PLUGINS"
FORMER_NAMES: Final = ("actors", "config", "core", "storage")
"""Packages of Pumice that stood beside `pumice` once, and are below it now."""

log = logging.getLogger(__name__)

AT_WORK: Final = PluginQuestion()
"""The installed plugin that is at work."""
_identities: dict[str, str] = {}
_files: dict[str, Path] = {}  # of plugins from a folder: the module
_warned: set[tuple[str, str]] = set()  # which plugin, and which of its lines or sentences


def identities() -> dict[str, str]:
    """Return the users' plugins that are installed: name -> what tells this version from others."""
    return {name: identity for name, identity in sorted(_identities.items()) if name in PLUGINS}


class FoundPlugin(NamedTuple):
    """A plugin and its source."""

    name: str
    builder: PluginBuilder
    source: str
    identity: str
    file: Path | None = None


def install_plugins(folder: Path | None = None) -> tuple[str, ...]:
    """Add the found plugins to the built-in ones, guarded, and return their names, in order. To be called before a
    configuration is read.

    Raises ConfigError for a folder that is none, a module or entry point that cannot be loaded, and ConflictError for
    a name that is taken. Installing the same plugin again replaces it.
    """
    return install([*from_entry_points(), *(from_folder(folder) if folder else ())])


def install(found: Sequence[FoundPlugin]) -> tuple[str, ...]:
    """Add plugins to the built-in ones, guarded, and return their names, in order. Raises ConflictError for a name that
    is taken.
    """
    sources: dict[str, str] = {}
    for plugin in found:
        if plugin.name in BUILT_IN:
            raise ConflictError(f"{plugin.name!r} is the name of a built-in plugin", source=plugin.source)
        if plugin.name in sources:
            problem = f"the plugin {plugin.name!r} is already in {sources[plugin.name]}"
            raise ConflictError(problem, source=plugin.source)
        sources[plugin.name] = plugin.source
    for plugin in found:
        PLUGINS[plugin.name] = guarded(plugin.name, plugin.builder, _tell, AT_WORK)
        _identities[plugin.name] = plugin.identity
        _files.pop(plugin.name, None)
        if plugin.file is not None:
            _files[plugin.name] = plugin.file
    _warned.clear()
    return tuple(sources)


def changed_plugins() -> list[str]:
    """Return the plugins of the folder whose files have changed since loading, by name."""
    return [name for name, file in sorted(_files.items()) if _identity(file) != _identities[name]]


def _identity(file: Path) -> str:
    try:
        return of_module(file)
    except OSError:
        return ""


def _tell(plugin: str, sentence: str) -> None:
    """Warn of a line of a plugin once, not in every cycle; the journal and `explain` have each failure."""
    where = AT_WORK.where
    if (plugin, where or sentence) in _warned:
        return
    _warned.add((plugin, where or sentence))
    log.warning("%s", f"{sentence} ({where}); this line is not warned of again" if where else sentence)


def from_folder(folder: Path) -> list[FoundPlugin]:
    """Return the tables of a folder's modules (files and packages), by module name; names that start with _ or . are
    left out.
    """
    if not folder.is_dir():
        raise ConfigError("does not exist", source=str(folder))
    return [found for path in _modules(folder) for found in _listed(_load(path), path)]


def from_sources(modules: Mapping[str, str]) -> list[FoundPlugin]:
    """Return the tables of modules that are given as source, by the module's name. Raises ConfigError."""
    found = list[FoundPlugin]()
    for stem, source in sorted(modules.items()):
        said = f"{stem}.py"
        module = ModuleType(f"{FOLDER_PLUGINS}.{stem}")
        sys.modules[module.__name__] = module  # dataclasses look themselves up there
        identity = f"{stem} sha256:{hashlib.sha256(source.encode()).hexdigest()[:DIGITS]}"
        try:
            # Plugins are code that the caller has chosen to run, as those of a folder are.
            exec(compile(source, said, "exec"), module.__dict__)  # nosec B102
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # sys.exit as well
            del sys.modules[module.__name__]
            raise _unloadable(error, said) from error
        found += [_found(name, builder, said, identity) for name, builder in _table(module, said).items()]
    return found


def _modules(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        inside = path / "__init__.py"
        if path.name.startswith(("_", ".")):
            continue
        if path.suffix == ".py" or inside.is_file():
            yield inside if path.is_dir() else path


def _load(path: Path) -> ModuleType:
    stem = path.parent.name if path.name == "__init__.py" else path.stem
    name = f"{FOLDER_PLUGINS}.{stem}"
    inside = [str(path.parent)] if path.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=inside)
    assert spec is not None
    assert spec.loader is not None
    try:
        demand_file(path)
    except OSError as error:
        raise ConfigError(f"cannot be loaded: {error.strerror}", source=str(path)) from error
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit as well
        del sys.modules[name]
        raise _unloadable(error, str(path)) from error
    return module


def _unloadable(error: BaseException, source: str) -> ConfigError:
    former = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if former in FORMER_NAMES:
        problem = f"imports {former!r}, which is pumice.{former} now: import it by that name"
        return ConfigError(problem, source=source)
    return ConfigError(f"cannot be loaded: {type(error).__name__}: {said_by(error)}", source=source)


def _listed(module: ModuleType, path: Path) -> list[FoundPlugin]:
    items = _table(module, str(path)).items()
    return [_found(name, builder, str(path), of_module(path))._replace(file=path) for name, builder in items]


def _table(module: ModuleType, source: str) -> Object:
    table = getattr(module, TABLE, None)
    if not is_mapping(table):
        raise ConfigError(f"has no table {TABLE}: dict[str, PluginBuilder]", source=source)
    return table


def from_entry_points() -> list[FoundPlugin]:
    """Return the entry points of the group, by name."""
    return [_loaded(point) for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)]


def _loaded(point: EntryPoint) -> FoundPlugin:
    source = f"entry point {point.name} = {point.value}"
    try:
        builder = point.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _unloadable(error, source) from error
    return _found(point.name, builder, source, of_entry_point(point, builder))


def _found(name: object, builder: object, source: str, identity: str) -> FoundPlugin:
    if not isinstance(name, str) or not name:
        raise ConfigError(f"{TABLE}: expected the name of a plugin, was {name!r}", source=source)
    if not callable(builder):
        raise ConfigError(f"{TABLE}[{name!r}]: expected a builder (arguments -> plugin)", source=source)
    return FoundPlugin(name, cast("PluginBuilder", builder), source, identity)
