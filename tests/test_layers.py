"""What each layer may import from outside, as lists of what is allowed; `.importlinter` holds what is forbidden."""

import ast
import sys
from collections.abc import Iterator
from typing import Final

import pytest

from tests.kit import source

ALLOWED: Final = {
    "config": {"msgspec", "yaml"},
    "core": {"msgspec", "numpy", "config"},
    "storage": {"anyio", "msgspec", "numpy", "core", "config"},
    "actors": {
        "anyio", "hypercorn", "httpx", "msgspec", "numpy", "prometheus_client", "starlette",
        "storage", "core", "config",
    },
    "pumice": {
        "anyio", "httpx", "msgspec", "numpy", "prometheus_client", "rich", "trio", "typer", "yaml",
        "actors", "storage", "core", "config",
    },
}  # fmt: skip
ALONE: Final = {
    "actors/kube/schedules.py": {"cronsim"},
    "actors/api/patches/operations.py": {"jsonpatch"},
    "actors/cluster/wire.py": {"h11"},
    "actors/gateway/protocols.py": {"h2"},
    "actors/scheduling/stopping.py": {"greenlet"},
    "core/kube/patterns.py": {"re2"},
    "storage/codec.py": {"msgpack"},
    "storage/sqlite/database.py": {"aiosqlite"},
}

# Parts of the standard library that do something, or come out differently each time.
NOT_IN_CORE: Final = {
    "asyncio", "concurrent", "contextvars", "io", "logging", "multiprocessing", "os", "pathlib", "queue", "random",
    "sched", "secrets", "select", "shutil", "signal", "socket", "sqlite3", "subprocess", "tempfile", "threading",
    "time", "uuid", "weakref",
}  # fmt: skip


def imported(tree: ast.Module) -> Iterator[str]:
    """Top-level names of everything the module imports, wherever in the file it does."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from (alias.name.partition(".")[0] for alias in node.names)
            case ast.ImportFrom(module=str(name), level=0):
                yield name.partition(".")[0]
            case ast.ImportFrom():
                yield "."
            case _:
                pass


@pytest.mark.parametrize("layer", source.LAYERS)
def test_a_layer_imports_what_it_may(layer: str) -> None:
    strangers = {
        f"{path} imports {name}"
        for path, tree in source.modules(layer)
        for name in imported(tree)
        if name not in sys.stdlib_module_names and name not in {layer, *ALLOWED[layer], *ALONE.get(path, ())}
    }
    assert strangers == set()


def test_the_core_has_no_doors() -> None:
    doors = {
        f"{path} imports {name}"
        for path, tree in source.modules("core")
        for name in imported(tree)
        if name in NOT_IN_CORE
    }
    assert doors == set()


def test_the_core_never_waits() -> None:
    waits = {
        path
        for path, tree in source.modules("core")
        for node in ast.walk(tree)
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith)
    }
    assert waits == set()


def test_imports_are_found_wherever_they_are() -> None:
    tree = ast.parse("import a.b as c\ndef f():\n    from d.e import g\n    from . import h\n")
    assert list(imported(tree)) == ["a", "d", "."]
