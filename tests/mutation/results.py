"""What became of each mutant: one line of JSON each, added as it is known, so that a run goes on where one ended."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

import msgspec

from tests.mutation.mutants import Mutant

Verdict = Literal["killed", "survived", "unreached"]
EQUIVALENT: Final = Path(__file__).with_name("equivalent.json")
VERDICTS: Final = Path(__file__).with_name("verdicts.txt")


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """One mutant: `by` is the test that failed, and why if it did not simply fail; `took_s` seconds of CPU.

    `ran` of `reaching` tests were tried; fewer than all when the time for one mutant was over.
    """

    key: str
    folder: str
    mutant: str
    verdict: Verdict
    by: str = ""
    reaching: int = 0
    ran: int = 0
    took_s: float = 0.0


class Tally(msgspec.Struct):
    """How many of a folder's mutants were run, and what became of them."""

    run: int = 0
    killed: int = 0
    equivalent: int = 0

    @property
    def share(self) -> float:
        """Of those that can be killed."""
        return self.killed / max(1, self.run - self.equivalent)


def read_rows(path: Path) -> dict[str, Row]:
    """By key; the last line of each counts. A last line that was cut off is passed over."""
    rows: dict[str, Row] = {}
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            row = msgspec.json.decode(line, type=Row)
        except msgspec.DecodeError:
            continue
        rows[row.key] = row
    return rows


def add_row(path: Path, row: Row) -> None:
    """Add one line."""
    with path.open("ab") as file:
        file.write(msgspec.json.encode(row) + b"\n")


def kept_verdicts(path: Path = VERDICTS) -> dict[str, Verdict]:
    """What became of mutants on some machine, by key: nobody has to run them again."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return msgspec.convert(dict(line.split() for line in lines), dict[str, Verdict])


def keep_verdicts(rows: Iterable[Row], path: Path = VERDICTS) -> None:
    """Let these be the ones that were run: a line each, by key."""
    path.write_text("".join(sorted(f"{row.key} {row.verdict}\n" for row in rows)), "utf-8")


def equivalents() -> dict[str, str]:
    """Mutants that no test can tell from the original, by file, function and change, with the reason."""
    found: dict[str, str] = msgspec.json.decode(EQUIVALENT.read_bytes(), type=dict[str, str])
    return found


def name_of(mutant: Mutant) -> str:
    """As equivalents are listed: without the line, which moves."""
    before = " ".join(mutant.before.split())
    return f"{mutant.path} {mutant.function or 'at import'}: {before} -> {' '.join(mutant.after.split())}"


def tallies(rows: Iterable[Row], known: dict[str, str]) -> dict[str, Tally]:
    """By folder."""
    found: dict[str, Tally] = {}
    for row in rows:
        tally = found.setdefault(row.folder, Tally())
        tally.run += 1
        tally.killed += row.verdict == "killed"
        tally.equivalent += row.verdict != "killed" and row.mutant.partition(" @")[0] in known
    return found
