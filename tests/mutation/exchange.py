"""Putting a mutant in the place of the original: in functions that exist already, or as a module is imported."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from tests.kit.source import imported_from, module_of
from tests.mutation.mutants import Mutant


def exchange(mutant: Mutant) -> bool:
    """Give every function made of the mutated text the mutant's code. False if there is none in this process."""
    path = str(imported_from(mutant.path))
    source = Path(path).read_text("utf-8")
    old = dict(_codes(compile(source, path, "exec")))
    new = dict(_codes(compile(mutant.applied(source), path, "exec")))
    wanted = {name: new[name] for name in old.keys() & new.keys() if name[0] == mutant.function}
    gc.unfreeze()  # who is frozen before a fork is in no list
    functions = [
        function
        for function in gc.get_objects()
        if isinstance(function, FunctionType) and function.__code__.co_filename == path
    ]
    changed = False
    for function in functions:
        code = wanted.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
        if code is not None and len(code.co_freevars) == len(function.__code__.co_freevars):
            function.__code__ = code
            changed = True
    return changed


def _codes(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """Code of functions outside of functions, by dotted name and first line; classes are looked into."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield (inner.co_qualname, inner.co_firstlineno), inner
            yield from _codes(inner)


class MutatedImport:
    """A finder for `sys.meta_path` that loads one module with a mutant in it."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.path = imported_from(mutant.path)
        self.module = module_of(mutant.path)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.module:
            return None
        loader = _MutatedLoader(name, str(self.path))
        loader.mutated = self.mutant.applied(self.path.read_text("utf-8"))
        return spec_from_file_location(name, self.path, loader=loader)

    def install(self) -> None:
        """From now on; the module must not have been imported yet."""
        sys.meta_path.insert(0, self)


class _MutatedLoader(SourceFileLoader):
    mutated = ""

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.mutated, self.path, "exec")
