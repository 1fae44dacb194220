"""Style as a test, with a ratchet: the exceptions are listed with their size, and may only shrink or go.

Lengths are lines of code: blank lines, comments and docstrings do not count, signatures do.
"""

import ast
import re
import statistics
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests import headers, where
from tests.kit import source

MODULE_LINES: Final = 500
SHORT_LINES: Final = 40
FUNCTION_LINES: Final = 60
MEDIAN_LINES: Final = 8
P95_LINES: Final = 30

# path: lines, or path::function: lines. Each row says why; a row that is no longer needed fails the test.
LONG_MODULES: Final[dict[str, int]] = {}
LONG_FUNCTIONS: Final[dict[str, int]] = {}

# Why a module is short: its folder holds one thing a file, found by the name of the thing; or so many modules need it
# that in a larger one they would import what they do not need; or the reason beside its path. The list may only shrink.
ONE_A_FILE: Final = {
    "cluster/api/admission": "the rules of a kind",
    "core/actions": "an action",
    "core/plugins": "a plugin",
    "pumice/cli": "a command",
    "pumice/proof/bench": "a scenario",
    "pumice/proof/strangers/judges": "a judge",
}
MANY: Final = 4
SHORT_MODULES: Final = {
    "actors/dry_run/crew.py": "joins two actors that may not import each other",
    "actors/dry_run/worker.py": "an actor",
    "actors/effects/evict_worker.py": "an actor",
    "actors/gateway/page/viewer.py": "an application: what a journal is shown with",
    "actors/reconcilers/job_controller.py": "an actor",
    "actors/system/roles/records.py": "the roles of one sort of actor, as each file beside it",
    "actors/gateway/request/versions.py": "chooses among conversions; the one that is long has a file of its own",
    "core/state/calm_jobs.py": "one idea, told where it is defined; sessions and the table of jobs read it",
    "cluster/controllers/commands.py": "shared by two controllers, which do not import each other",
    "pumice/questions/explain/waiting.py": "asks explain about a story, which does not know explain",
    "pumice/questions/gate/alone.py": "pytest runs a policy by it without the command line",
    "pumice/questions/measures/fairness.py": "formulas from papers, which say nothing of jobs or queues",
    "pumice/testing/certificates.py": "knows cryptography, an extra, and nothing else does",
    "pumice/runtime/allocator.py": "the C library's allocator, and why; nothing else knows of it",
}

# Modules with public classes or functions that say nothing about themselves, and how many.
SILENT: Final[dict[str, int]] = {}

POINTS_ELSEWHERE: Final = re.compile(r"(As|Same|See|The same)\b")
SAYS_NOTHING: Final = re.compile(r"(utils?|helpers?|common|base|managers?|misc)", re.IGNORECASE)
MACHINE_PATH: Final = re.compile(r"/(?:work|farm|root|home|Users)/")
LAYERS: Final = [(layer,) for layer in source.LAYERS]
TEXT: Final = (".py", ".md", ".toml", ".conf", ".yaml", ".yml", ".json", ".svg", ".cfg", ".ini", ".sh", "")


class Facts(NamedTuple):
    """What the tests below ask of one module, so that each is parsed once."""

    lines: int
    functions: dict[str, int]
    is_documented: bool
    classes: list[str]
    silent: int
    pointing: list[str]
    untrue: list[str]


@cache
def facts() -> dict[str, Facts]:
    """Return the facts of every module of the layers, the tests and the documents, by path."""
    return {path: facts_of(path, tree) for path, tree in source.modules(*source.LAYERS, "tests", "docs")}


def facts_of(path: str, tree: ast.Module) -> Facts:
    counted = source.code_lines((source.ROOT / path).read_text("utf-8"), tree)
    lengths = {
        name: len(counted.intersection(range(node.lineno, (node.end_lineno or node.lineno) + 1)))
        for name, node in source.definitions(tree)
        if not isinstance(node, ast.ClassDef)
    }
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    silent = sum(1 for node in tree.body if says_nothing(node))
    is_documented = not tree.body or ast.get_docstring(tree) is not None
    wrong = pointing_elsewhere(path, tree), untrue(path, tree)
    return Facts(len(counted), lengths, is_documented, classes, silent, *wrong)


def facts_of_layers() -> dict[str, Facts]:
    return {path: found for path, found in facts().items() if path.partition("/")[0] in source.LAYERS}


def facts_of_tests() -> dict[str, Facts]:
    return {path: found for path, found in facts().items() if path.partition("/")[0] not in source.LAYERS}


def function_lengths(modules: dict[str, Facts]) -> dict[str, int]:
    """Return the lines of code of every function, nested ones too, as `path::Class.function`."""
    return {f"{path}::{name}": size for path, found in modules.items() for name, size in found.functions.items()}


def pointing_elsewhere(path: str, tree: ast.Module) -> list[str]:
    return [
        f"{path}:{node.lineno}: {documented}"
        for _, node in source.definitions(tree)
        if (documented := ast.get_docstring(node, clean=False)) and POINTS_ELSEWHERE.match(documented)
    ]


def untrue(path: str, tree: ast.Module) -> list[str]:
    """Docstrings of classes that read like a function's, and of functions that say to return what they do not."""
    found: list[str] = []
    for _, node in source.definitions(tree):
        documented = ast.get_docstring(node) or ""
        if isinstance(node, ast.ClassDef):
            is_wrong = documented.startswith("Return")
        else:
            nothing = node.returns is not None and ast.unparse(node.returns) == "None"
            # "Return when it is there": such a function waits.
            is_wrong = nothing and documented.startswith("Return") and not documented.startswith("Return when")
        if is_wrong:
            found.append(f"{path}:{node.lineno}: {documented}")
    return found


def ratchet(measured: dict[str, int], limit: int, known: dict[str, int]) -> list[str]:
    """What is wrong: too long and not known, longer than known, or known and no longer too long."""
    complaints: list[str] = []
    for name in sorted(known.keys() | {name for name, size in measured.items() if size > limit}):
        size, allowed = measured.get(name, 0), known.get(name)
        if allowed is None:
            complaints.append(f"{name}: {size}, at most {limit}")
        elif size <= limit:
            complaints.append(f"{name}: the exception is no longer needed, remove it")
        elif size != allowed:
            complaints.append(f"{name}: {'grew' if size > allowed else 'shrank'} from {allowed} to {size}")
    return complaints


def test_modules_are_short() -> None:
    assert ratchet({path: found.lines for path, found in facts().items()}, MODULE_LINES, LONG_MODULES) == []


def test_short_modules_have_a_reason() -> None:
    known = where.importers()
    short = {
        path
        for path, found in facts_of_layers().items()
        if found.lines < SHORT_LINES and not path.endswith(("/__init__.py", "/__main__.py"))
    }
    needed = {path for path in short if len(known[source.module_of(path)] - {*facts_of_tests()}) < MANY}
    assert {path for path in needed if path.rpartition("/")[0] not in ONE_A_FILE} == SHORT_MODULES.keys()


def test_functions_are_short() -> None:
    lengths = function_lengths(facts())
    assert ratchet(lengths, FUNCTION_LINES, LONG_FUNCTIONS) == []


def test_most_functions_are_very_short() -> None:
    lengths = sorted(function_lengths(facts_of_layers()).values())
    assert statistics.median(lengths) <= MEDIAN_LINES
    assert lengths[int(len(lengths) * 0.95)] <= P95_LINES


@pytest.mark.parametrize(
    ("known", "complaint"),
    [
        ({}, "f: 61, at most 60"),
        ({"f": 60}, "f: grew from 60 to 61"),
        ({"f": 70}, "f: shrank from 70 to 61"),
        ({"f": 61, "g": 99}, "g: the exception is no longer needed, remove it"),
    ],
)
def test_the_ratchet_turns_one_way(known: dict[str, int], complaint: str) -> None:
    assert ratchet({"f": 61, "g": 60}, 60, known) == [complaint]


def test_the_ratchet_holds_what_it_knows() -> None:
    assert ratchet({"f": 61, "g": 60}, 60, {"f": 61}) == []


def test_no_file_name_says_nothing() -> None:
    named = {path for path in source.files(".py") if SAYS_NOTHING.fullmatch(path.stem)}
    named |= {
        path for path in source.files(".py") if any(SAYS_NOTHING.fullmatch(part) for part in folders_of(path.parts))
    }
    assert named == set()


TOGETHER: Final = {"tests/pumice/elsewhere", "tests/pumice/mirror"}
"""Tests of commands that try several packages together, and so mirror none."""


def test_folder_of_a_test_mirrors_the_folder_of_its_subject() -> None:
    tests = [path.parent for path in source.files(".py", folders=("tests",)) if path.name.startswith("test_")]
    mirroring = {source.relative(folder) for folder in tests if folder.relative_to(source.ROOT).parts[1:2] in LAYERS}
    assert {folder for folder in mirroring if not has_subject(source.ROOT / folder.partition("/")[2])} == TOGETHER


def has_subject(place: Path) -> bool:
    """Return whether a package or a module has that name: many files may test one module."""
    return place.is_dir() or place.with_suffix(".py").is_file()


def folders_of(parts: tuple[str, ...]) -> tuple[str, ...]:
    return parts[len(source.ROOT.parts) : -1]


def test_no_file_names_a_place_on_one_machine() -> None:
    found = [
        f"{source.relative(path)}:{number}"
        for path in source.files(*TEXT)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if MACHINE_PATH.search(line)
    ]
    assert found == []


def test_every_module_says_what_it_is_for() -> None:
    assert [path for path, found in facts_of_layers().items() if not found.is_documented] == []


def test_a_public_class_has_its_name_to_itself() -> None:
    """Who reads a name, or looks for it, finds one class, and besides the type of Kubernetes' that it was read from."""
    named: dict[str, list[str]] = {}
    for path, found in facts_of_layers().items():
        for name in found.classes:
            named.setdefault(name, []).append(path)
    twice = {name: paths for name, paths in named.items() if len(paths) > 1}
    assert twice == {}


def test_public_names_say_what_they_are() -> None:
    silent = {path: found.silent for path, found in facts_of_layers().items()}
    assert ratchet(silent, 0, SILENT) == []


def says_nothing(node: ast.stmt) -> bool:
    """Whether this is a public class or function without a docstring; an overload leaves it to the function."""
    if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    if any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list):
        return False
    return not node.name.startswith("_") and ast.get_docstring(node) is None


def test_no_docstring_points_elsewhere_instead_of_saying_what_there_is() -> None:
    """Who reads "As `inner`" or "See `Family`" has to open another file to learn what is given here."""
    assert [line for found in facts_of_layers().values() for line in found.pointing] == []


def test_no_docstring_says_to_return_what_is_not_returned() -> None:
    assert [line for found in facts_of_layers().values() for line in found.untrue] == []


def test_every_package_is_typed_and_ours() -> None:
    for layer in source.LAYERS:
        assert (source.ROOT / layer / "py.typed").exists()
        assert (source.ROOT / layer / "README.md").exists()


def test_installed_files_have_the_licence_header() -> None:
    assert [source.relative(path) for path in headers.lacking()] == [], "run `python -m tests.headers`"
