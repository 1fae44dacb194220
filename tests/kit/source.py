"""The project's own source as data, for the tests that look at it."""

import ast
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
SHARED: Final = ROOT.parent / "shared"
"""Cases, traces and manifests that lie beside the repository."""
LAYERS: Final = ("pumice", "actors", "cluster", "storage", "core", "config")
FOLDERS: Final = (*LAYERS, "tests", "docs", "examples", ".ci")
NOT_OURS: Final = {".git", "__pycache__", ".hypothesis", ".pytest_cache"}


def module_of(path: str) -> str:
    """Return the name under which a file of the project is imported, from its path below the root."""
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return f"pumice.{name}" if name.partition(".")[0] in LAYERS[1:] else name


def imported_from(path: str) -> Path:
    """Return where Python finds a file of the project: through the links of pumice/, if it is of a layer below."""
    return ROOT / ("pumice" if path.partition("/")[0] in LAYERS[1:] else "") / path


def path_of(module: str) -> Path:
    """Return the file or folder of a module, without its suffix."""
    inner = module.removeprefix("pumice.")
    return ROOT.joinpath(*(inner if inner.partition(".")[0] in LAYERS[1:] else module).split("."))


def relative(path: Path) -> str:
    """The path as the project names it, from its root."""
    return path.relative_to(ROOT).as_posix()


def files(*suffixes: str, folders: tuple[str, ...] = FOLDERS) -> list[Path]:
    """Files with these suffixes in the folders and, when all folders are asked for, at the root; sorted."""
    found = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    if folders == FOLDERS:
        found += [path for path in ROOT.iterdir() if path.is_file()]
    ours = (path for path in found if not NOT_OURS.intersection(path.parts))
    return sorted(path for path in ours if path.suffix in suffixes)


def modules(*folders: str) -> list[tuple[str, ast.Module]]:
    """Every Python file of the folders, by its name from the root, parsed.

    Nodes hold no cycles: looking for garbage among a million of them takes ten times as long as parsing.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return [(relative(path), ast.parse(path.read_text("utf-8"))) for path in files(".py", folders=folders)]
    finally:
        gc.freeze()
        if collects:
            gc.enable()


def definitions(
    node: ast.AST, inside: str = ""
) -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Give the classes and functions below a node, by dotted name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{inside}{child.name}", child
            yield from definitions(child, f"{inside}{child.name}.")
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from definitions(child, inside)


def code_lines(source: str, tree: ast.AST) -> set[int]:
    """Numbers of the lines that carry code: no blank lines, comments or docstrings."""
    written = {
        number
        for number, line in enumerate(source.splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    }
    documented = [tree, *(node for _, node in definitions(tree))]
    return written - {number for node in documented for number in _docstring_lines(node)}


def _docstring_lines(node: ast.AST) -> range:
    match node:
        case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef() if ast.get_docstring(
            node, clean=False
        ):
            first = node.body[0]
            return range(first.lineno, (first.end_lineno or first.lineno) + 1)
        case _:
            return range(0)
