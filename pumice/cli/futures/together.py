"""Options of a question about the future that do not go together, or are said twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pumice.cli.exits import UsageError

MANY: Final = ("--add-nodes", "--submit")
"""Changes that may be made twice."""
HORIZON: Final = "1h"
WITHIN: Final = "1m"
BUDGET_S: Final = 60.0
ASSIGNING: Final = ("--set", "--scale")


def refuse_beside_search(
    job: str | None,
    kept: tuple[Path | None, str | None, str | None],
    like: Sequence[str] | None,
    within: str,
    budget_s: float,
    works: tuple[int, str | None],
) -> None:
    """`kept`: --save, --against and --horizon, of which a search for `job` knows nothing; the others are of it alone
    (`works`: --workers and --dask). Raises UsageError.
    """
    unknown = {"--save": kept[0] is not None, "--against": kept[1] is not None, "--horizon": kept[2] is not None}
    alone = {"--like": bool(like), "--within": within != WITHIN, "--budget": budget_s != BUDGET_S}
    alone |= {"--workers": works[0] != 1, "--dask": works[1] is not None}
    for option in [name for name, said in (alone if job is None else unknown).items() if said]:
        beside = "a search looks as far as --within says" if option == "--horizon" else "a search tries many futures"
        why = "this goes with --until-starts alone" if job is None else f"{beside}: leave it out"
        raise UsageError(why, path=option)


def to_be_made(file: Path | None) -> None:
    """Raises UsageError where it is there."""
    if file is not None and file.exists():
        raise UsageError("there is a file already; name one that is to be made", path=f"--save {file}")


def refuse_repetition(given: Mapping[str, Sequence[str] | None]) -> None:
    """A change that is said twice, or a place that is given two values. Raises UsageError."""
    for option, values in given.items():
        seen: dict[str, str] = {}
        for value in values or ():
            what = "--config" if option == "--config" else place_of(value) if option in ASSIGNING else value
            if what in seen and option not in MANY:
                raise UsageError(f"said twice: {seen[what]} and {value}", path=option)
            seen[what] = value


def place_of(assigned: str) -> str:
    """What a value is given to: `queue/q1:spec.weight` of `queue/q1:spec.weight=3`. In brackets = is no assignment."""
    depth = 0
    for at, letter in enumerate(assigned):
        depth += (letter == "[") - (letter == "]")
        if letter == "=" and not depth:
            return assigned[:at]
    return assigned
