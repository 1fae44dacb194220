"""What each layer may import from outside, as lists of what is allowed; `.importlinter` holds what is forbidden."""

import ast
import sys
from collections.abc import Iterator
from typing import Final

import pytest

from tests.kit import source

ALLOWED: Final = {
    "config": {"msgspec", "yaml"},
    "core": {"msgspec", "numpy", "pumice.config"},
    "storage": {"anyio", "msgspec", "numpy", "pumice.core", "pumice.config"},
    "cluster": {"msgspec", "numpy", "pumice.storage", "pumice.core", "pumice.config"},
    "actors": {
        "anyio", "hypercorn", "httpx", "msgspec", "numpy", "prometheus_client",
        "pumice.cluster", "pumice.storage", "pumice.core", "pumice.config",
    },
    "pumice": {
        "anyio", "httpx", "msgspec", "numpy", "prometheus_client", "rich", "trio", "typer", "yaml",
        "pumice.actors", "pumice.cluster", "pumice.storage", "pumice.core", "pumice.config",
    },
}  # fmt: skip
ALONE: Final = {
    "cluster/kube/schedules.py": {"cronsim"},
    "cluster/api/patches/operations.py": {"jsonpatch"},
    "actors/gateway/protocols.py": {"h2"},
    "actors/scheduling/core_decider.py": {"greenlet"},
    "core/kube/patterns.py": {"re2"},
    "storage/codec.py": {"msgpack"},
    "pumice/agents/server.py": {"mcp", "mcp_types", "uvicorn"},  # `pumice mcp` loads it
    "pumice/lab/gym.py": {"greenlet", "gymnasium"},  # who wants it imports it
    "pumice/pytest_cluster.py": {"pytest"},  # pytest loads it
    "pumice/pytest_gate.py": {"_pytest", "pytest"},
    "storage/sqlite/database.py": {"aiosqlite"},
}

# Parts of the standard library that do something, or come out differently each time.
NOT_IN_CORE: Final = {
    "asyncio", "concurrent", "contextvars", "io", "logging", "multiprocessing", "os", "pathlib", "queue", "random",
    "sched", "secrets", "select", "shutil", "signal", "socket", "sqlite3", "subprocess", "tempfile", "threading",
    "time", "uuid", "weakref",
}  # fmt: skip


def imported(tree: ast.Module) -> Iterator[str]:
    """Give the top-level names of everything the module imports, wherever it does; of ours the layers."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from (layer_of(alias.name) for alias in node.names)
            case ast.ImportFrom(module=str(name), level=0):
                yield layer_of(name)
            case ast.ImportFrom():
                yield "."
            case _:
                pass


def layer_of(name: str) -> str:
    """Return `pumice.core` for what is in it, `pumice` for the application, the top-level name for all else."""
    first, second = (*name.split("."), "")[:2]
    return f"pumice.{second}" if first == "pumice" and second in source.LAYERS else first


@pytest.mark.parametrize("layer", source.LAYERS)
def test_a_layer_imports_what_it_may(layer: str) -> None:
    strangers = {
        f"{path} imports {name}"
        for path, tree in source.modules(layer)
        for name in imported(tree)
        if name not in sys.stdlib_module_names and name not in {own(layer), *ALLOWED[layer], *ALONE.get(path, ())}
    }
    assert strangers == set()


def own(layer: str) -> str:
    return layer if layer == "pumice" else f"pumice.{layer}"


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
    tree = ast.parse("import a.b as c\ndef f():\n    from pumice.core.e import g\n    from . import h\n")
    assert list(imported(tree)) == ["a", "pumice.core", "."]
