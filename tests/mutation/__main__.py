"""`python -m tests.mutation run|scores|keep`: see docs/explanation/mutation.md."""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mutation.judging import Judge
from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.reach import ALL_FOLDERS, FOLDER, Reach
from tests.mutation.results import Row, add_row, equivalents, keep_verdicts, kept_verdicts, name_of, read_rows, tallies

TESTS = ("tests", "tests/mutation/cases.py")
# Those that start processes of their own reach nothing that can be seen, and those about the texts reach nothing.
LEFT_OUT = (
    "tests/contract", "tests/kubectl", "tests/docs", "tests/test_docs.py", "tests/test_tidy.py", "tests/test_layers.py",
    "tests/pumice/proof/conformance/test_ratchet.py",
)  # fmt: skip
OPTIONS = ("-q", "-s", "-p", "no:cacheprovider", *(word for path in LEFT_OUT for word in ("--ignore", path)))


def sample(folder: str, each: int, seed: int) -> list[Mutant]:
    """As many mutants of a folder, drawn so that a change of one function moves no others."""
    found = [
        mutant
        for path in sorted(Path(folder).rglob("*.py"))
        for mutant in mutants_of(path.as_posix(), path.read_text("utf-8"))
    ]
    found.sort(key=lambda mutant: hashlib.sha256(f"{seed} {mutant.key}".encode()).digest())
    return found[:each]


def plan(folders: list[str], each: int, seed: int) -> Iterator[tuple[str, Mutant]]:
    """One of each folder, then the next of each."""
    drawn = [sample(folder, each, seed) for folder in folders]
    for index in range(each):
        for folder, mutants in zip(folders, drawn, strict=True):
            if index < len(mutants):
                yield folder, mutants[index]


def sources() -> str:
    """A digest of what is mutated: lines that were recorded for another text say nothing."""
    files = [path for folder in ALL_FOLDERS for path in sorted(Path(folder).rglob("*.py"))]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


def record(into: Path, tests: list[str]) -> None:
    """One run of the tests that records which lines each reaches; of given tests, adds to what is recorded."""
    into.mkdir(parents=True, exist_ok=True)
    if not tests:
        (into / "lines.db").unlink(missing_ok=True)
        (into / "tests.json").unlink(missing_ok=True)
    command = (sys.executable, "-m", "pytest", "-p", "tests.mutation.reach", *OPTIONS, *(tests or TESTS))
    subprocess.run(command, env={**os.environ, "CI": "1", FOLDER: str(into)}, check=False)  # a failing test is left out
    (into / "sources").write_text(sources(), "utf-8")


def run(options: argparse.Namespace) -> int:
    """Try every mutant of the sample that has no row yet."""
    into: Path = options.results
    recorded = into / "sources"
    if options.record or not recorded.exists() or recorded.read_text("utf-8") != sources():
        record(into, options.record)
    rows = read_rows(into / "rows.jsonl")
    verdicts = kept_verdicts() | {key: row.verdict for key, row in rows.items()}
    done = {key for key, verdict in verdicts.items() if not (options.again and verdict != "killed")}
    mutants = (each for each in plan(options.folders, options.each, options.seed) if each[1].key not in done)

    def report(row: Row) -> None:
        add_row(into / "rows.jsonl", row)
        sys.stderr.write(f"{row.verdict} {row.mutant} {row.by}\n")

    os.environ["CI"] = "1"  # no chance in Hypothesis, and no memory of what failed
    judge = Judge(Reach(into), mutants, report, options.seconds)
    pytest.main([*OPTIONS, "--timeout", "0", *TESTS], plugins=[judge])
    return scores(options)


def scores(options: argparse.Namespace) -> int:
    """The table of the sample by folder, and what survived."""
    mine, known = _rows_of_sample(options), equivalents()
    found = tallies(mine, known)
    write = sys.stdout.write
    write(f"{'folder':20} {'of':>4} {'run':>4} {'killed':>6} {'equivalent':>10}\n")
    for folder in options.folders:
        if folder in found:
            tally = found[folder]
            counts = f"{options.each:4} {tally.run:4} {tally.killed:6} {tally.equivalent:10}"
            write(f"{folder:20} {counts} {tally.share:6.1%}\n")
    for row in mine:
        if row.verdict != "killed" and row.mutant.partition(" @")[0] not in known:
            write(f"{row.verdict} {row.mutant} ({row.ran} of {row.reaching} tests, {row.took_s} s)\n")
    return 0


def keep(options: argparse.Namespace) -> int:
    """Write down what became of the sample, of all folders, so that no other machine runs it again."""
    options.folders = list(ALL_FOLDERS)
    keep_verdicts(_rows_of_sample(options))
    return 0


def _rows_of_sample(options: argparse.Namespace) -> list[Row]:
    """What is known of the sample, in its order: from this machine's runs, else written down before."""
    rows, kept = read_rows(options.results / "rows.jsonl"), kept_verdicts()
    found = list[Row]()
    for folder, mutant in plan(options.folders, options.each, options.seed):
        if mutant.key in rows:
            found.append(rows[mutant.key])
        elif mutant.key in kept:
            found.append(Row(mutant.key, folder, f"{name_of(mutant)} @{mutant.line}", kept[mutant.key]))
    return found


VERBS = {"run": run, "scores": scores, "keep": keep}


def main() -> int:
    """Read the command line, and do what it says."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("verb", choices=VERBS)
    parser.add_argument("--results", type=Path, default=Path(".nox/mutation"), help="where results are kept")
    parser.add_argument("--folders", nargs="+", default=list(ALL_FOLDERS))
    parser.add_argument("--each", type=int, default=200, help="mutants of a folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="of CPU, for one mutant")
    parser.add_argument("--again", action="store_true", help="try those that survived once more")
    parser.add_argument(
        "--record", nargs="*", default=[], help="tests whose lines are recorded first, beside the others"
    )
    options = parser.parse_args()
    options.results = options.results.resolve()
    return VERBS[options.verb](options)


if __name__ == "__main__":
    sys.exit(main())
