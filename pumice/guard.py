"""Makes sure that the layers about to be imported are Pumice's own.

`config`, `core`, `storage` and `actors` are names that any other distribution, or a stray file in the working
directory, may carry too. Each of ours says so with `__pumice__`, the version it belongs to. This module imports nothing
of ours and nothing from outside the standard library, so that it can run first.
"""

import importlib
import importlib.util
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

LAYERS: Final = ("config", "core", "storage", "actors")

ADVICE: Final = (
    "Pumice needs an environment of its own: install it with pipx, `uv tool install` or into a virtual environment, "
    "and start it where no file or folder of that name lies."
)


class ForeignLayerError(ImportError):
    """Another module answers to the name of one of Pumice's layers. `name` is the layer and `path` the foreign file."""


def check_layers(version: str) -> None:
    """Import every layer, lowest first, and refuse the first that is missing, foreign, or of another version.

    A foreign module that is no package is refused without being executed.
    """
    for layer in LAYERS:
        module = _import(layer, _find(layer))
        found = getattr(module, "__pumice__", None)
        if found is None:
            raise _foreign(layer, _file(module), "does not belong to Pumice")
        if found != version:
            raise _foreign(layer, _file(module), f"belongs to Pumice {found}, not {version}")


def _find(layer: str) -> ModuleSpec:
    spec = importlib.util.find_spec(layer)
    if spec is None:
        raise ForeignLayerError(
            f"Pumice's package {layer!r} is missing: the installation is not whole. {ADVICE}", name=layer
        )
    if spec.submodule_search_locations is None or spec.origin is None:
        raise _foreign(layer, spec.origin or _folders(spec), "does not belong to Pumice")
    return spec


def _import(layer: str, spec: ModuleSpec) -> ModuleType:
    try:
        return importlib.import_module(layer)
    except Exception as error:
        raise _foreign(layer, spec.origin, f"cannot be imported ({type(error).__name__}: {error})") from error


def _folders(spec: ModuleSpec) -> str:
    return ", ".join(spec.submodule_search_locations or ()) or "a module without a file"


def _file(module: ModuleType) -> str:
    return module.__file__ or "a module without a file"


def _foreign(layer: str, path: str | None, why: str) -> ForeignLayerError:
    return ForeignLayerError(f"{path}, imported as {layer!r}, {why}. {ADVICE}", name=layer, path=path)
