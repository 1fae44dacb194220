"""The mutation tester itself: what it changes, that each change comes to be, and what is told of it."""

from __future__ import annotations

import ast
import gc
import importlib.util
import os
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from tests.kit import source
from tests.mutation.exchange import MutatedImport, exchange
from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.results import Row, Verdict, add_row, keep_verdicts, kept_verdicts, read_rows, tallies
from tests.mutation.watch import Watched

TEXT = '''"""Says é."""
from dataclasses import dataclass

LIMIT: int = 3


@dataclass
class Box:
    room: int = 4

    def fits(self, size: "int | None") -> bool:
        """Whether it fits."""
        def twice() -> int:
            return self.room * 2
        return size is not None and not size > min(twice(), LIMIT)


def total(sizes):
    found = 0
    for size in sizes:
        if size < 0:
            continue
        found += size
    return found
'''


def changes(mutants: list[Mutant]) -> list[tuple[int, str, str, str]]:
    return [(each.line, each.function, each.before, each.after) for each in mutants]


def test_what_is_changed() -> None:
    assert changes(mutants_of("m.py", TEXT)) == [
        (4, "", "3", "4"),
        (9, "", "4", "5"),
        (14, "Box.fits", "return self.room * 2", "return None"),
        (14, "Box.fits", "self.room * 2", "(self.room / 2)"),
        (14, "Box.fits", "2", "3"),
        (15, "Box.fits", "return size is not None and not size > min(twice(), LIMIT)", "return None"),
        (
            15, "Box.fits", "size is not None and not size > min(twice(), LIMIT)",
            "(size is not None or not size > min(twice(), LIMIT))",
        ),
        (15, "Box.fits", "size is not None", "(size is None)"),
        (15, "Box.fits", "not size > min(twice(), LIMIT)", "(size > min(twice(), LIMIT))"),
        (15, "Box.fits", "size > min(twice(), LIMIT)", "(size >= min(twice(), LIMIT))"),
        (15, "Box.fits", "min", "max"),
        (19, "total", "0", "1"),
        (21, "total", "size < 0", "(size <= 0)"),
        (21, "total", "0", "1"),
        (22, "total", "continue", "break"),
        (23, "total", "found += size", "pass"),
        (24, "total", "return found", "return None"),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("path", ["core/session/jobs.py", "actors/effects/status_writer.py", "storage/codec.py"])
def test_every_mutant_is_python_and_has_a_name_of_its_own(path: str) -> None:
    text = (source.ROOT / path).read_text("utf-8")
    mutants = mutants_of(path, text)
    for mutant in mutants:
        assert ast.dump(ast.parse(mutant.applied(text))) != ast.dump(ast.parse(text)), str(mutant)
    assert len({mutant.key for mutant in mutants}) == len(mutants) > 0


def test_a_mutant_keeps_its_key_while_other_functions_change() -> None:
    moved = TEXT.replace("def total(sizes):", "def other(): return 1\n\n\ndef total(sizes):").replace(
        "room * 2", "room"
    )
    keys = {each.key for each in mutants_of("m.py", TEXT) if each.function == "total"}
    assert keys == {each.key for each in mutants_of("m.py", moved) if each.function == "total"}


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(source, "ROOT", tmp_path)
    (tmp_path / "m.py").write_text(TEXT, "utf-8")
    spec = importlib.util.spec_from_file_location("m", tmp_path / "m.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "m", found)
    spec.loader.exec_module(found)
    return found


def mutant(after: str) -> Mutant:
    (found,) = [each for each in mutants_of("m.py", TEXT) if each.after == after]
    return found


def test_a_mutant_takes_the_place_of_a_function_that_others_hold(module: ModuleType) -> None:
    fits = module.Box().fits
    assert fits(3)
    gc.freeze()
    assert exchange(mutant("(size >= min(twice(), LIMIT))"))
    assert not fits(3)
    assert fits(2)


def test_what_runs_at_import_is_changed_by_importing_it(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    at_import = mutants_of("m.py", TEXT)[0]
    assert not exchange(at_import)
    monkeypatch.delitem(sys.modules, "m")
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    MutatedImport(at_import).install()
    assert importlib.import_module("m").LIMIT == module.LIMIT + 1


def watched(usual_s: float, budget_s: float = 60.0) -> Watched:
    """A child that names a test and then keeps the processor busy for two seconds."""
    ours, theirs = os.pipe()
    process = os.fork()
    if not process:
        os.setpgid(0, 0)
        os.close(ours)
        os.write(theirs, b"test\n")
        began = time.process_time()
        while time.process_time() - began < 2:
            pass
        os._exit(0)
    os.close(theirs)
    return Watched(process, ours, {"test": usual_s}, budget_s)


def test_a_test_that_takes_far_longer_than_usual_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.mutation.watch.SLACK_S", 0.2)
    end = watched(0.01).wait()
    assert (end.why, end.tests) == ("hangs", ["test"])


def test_a_mutant_that_used_up_its_time_is_not_killed_by_that(monkeypatch: pytest.MonkeyPatch) -> None:
    end = watched(10.0, budget_s=0.3).wait()
    assert end.why == "out of time"


def test_the_last_line_of_a_mutant_counts_and_equivalent_ones_are_not_held_against_the_tests(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    told: list[tuple[str, Verdict]] = [
        ("a", "survived"), ("b", "killed"), ("c", "survived"), ("d", "unreached"), ("a", "killed"),
    ]  # fmt: skip
    for key, verdict in told:
        add_row(path, Row(key, "core", f"m.py f: {key} -> x @7", verdict))
    path.write_bytes(path.read_bytes() + b'{"key": "cut o')
    rows = read_rows(path)
    tally = tallies(rows.values(), {"m.py f: c -> x": "the same"})["core"]
    assert (tally.run, tally.killed, tally.equivalent) == (4, 2, 1)
    assert tally.share == pytest.approx(2 / 3)


def test_what_became_of_mutants_is_written_down_for_all(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.txt"
    assert kept_verdicts(path) == {}
    keep_verdicts([Row("b", "core", "m", "survived"), Row("a", "core", "m", "killed")], path)
    assert path.read_text("utf-8") == "a killed\nb survived\n"
    assert kept_verdicts(path) == {"a": "killed", "b": "survived"}
