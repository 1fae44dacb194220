"""`python -m tests.where FILE`: the tests that reach a source file, nearest first; see `nox -s where`."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.kit import source

STEPS: Final = 2
"""So many imports from a test to the file are told of, or as many as the nearest test takes: with more of them nearly
every test reaches nearly every file.
"""


def imports(path: str, tree: ast.Module) -> Iterator[str]:
    """Give the modules that one names, anywhere in it; of `from a import b` both a and a.b, which may be none."""
    package = source.module_of(path).rpartition(".")[0]
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(module=name, level=level):
                named = ".".join(filter(None, (package if level else "", name)))
                yield named
                yield from (f"{named}.{alias.name}" for alias in node.names)
            case _:
                pass


def importers() -> dict[str, set[str]]:
    """Return by module the files that import it."""
    found: dict[str, set[str]] = defaultdict(set)
    for path, tree in source.modules(*source.LAYERS, "tests"):
        for module in imports(path, tree):
            found[module].add(path)
    return found


def is_test(path: str) -> bool:
    return path.startswith("tests/") and path.rpartition("/")[2].startswith("test_")


def steps_to(path: str, known: dict[str, set[str]]) -> dict[str, int]:
    """Return the tests that reach a file, and by how many imports; from one file of the tests to another is no step.

    `known`: by module the files that import it.
    """
    found: dict[str, int] = {}
    seen, ahead, step = {path}, [path], 0
    while ahead and (step < STEPS or not found):
        here, ahead, step = ahead, list[str](), step + 1
        while here:
            new = known.get(source.module_of(here.pop()), set[str]()) - seen
            seen |= new
            found |= {each: step for each in new if is_test(each)}
            here += [each for each in new if each.startswith("tests/") and not is_test(each)]
            ahead += [each for each in new if not each.startswith("tests/")]
    return found


def mirrored(path: str) -> str:
    """Return the name of the test that would be the file's own."""
    folder, _, name = path.rpartition("/")
    return f"tests/{folder}/test_{name}"


def main() -> None:
    """Print them, one a line with the number of imports; 0 is the file's own test."""
    path = source.relative(Path(sys.argv[1]).absolute())
    found = steps_to(path, importers())
    if (source.ROOT / mirrored(path)).exists():
        found[mirrored(path)] = 0
    sys.stdout.writelines(f"{found[test]} {test}\n" for test in sorted(found, key=lambda each: (found[each], each)))


if __name__ == "__main__":
    main()
