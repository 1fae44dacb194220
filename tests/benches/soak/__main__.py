"""`python -m tests.benches.soak`: the run, the verdict, the picture. Exits 1 when something grew or is lost, 2 when the
samples do not say whether something grew.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import anyio

from pumice.questions.sweep.picture import draw
from tests.benches.soak.curves import curves
from tests.benches.soak.judging import Row, compared, read_table, table
from tests.benches.soak.plan import SoakPlan
from tests.benches.soak.soaking import Soaked, soak

SHOWN: Final = 40


def main(arguments: Sequence[str] | None = None) -> int:
    """0: flat and complete, 1: not, 2: unclear."""
    asked = _parser().parse_args(arguments)
    plan = SoakPlan(**{each.name: getattr(asked, each.name) for each in fields(SoakPlan)})
    folder: Path = asked.into
    folder.mkdir(parents=True, exist_ok=True)
    if asked.again:
        return _judged(plan, read_table(folder / "soak.csv"), folder)
    soaked = anyio.run(functools.partial(soak, plan, folder, folder / "soak.csv"))
    judged = _judged(plan, soaked.rows, folder)
    return _told(soaked) or judged


def _judged(plan: SoakPlan, rows: Sequence[Row], folder: Path) -> int:
    """The verdicts as text; and the picture."""
    warm_s = min(plan.warm_s, rows[-1]["t_s"] / 6)
    minutes = rows[-1]["t_s"] / 60
    draw(curves(rows, f"{minutes:.0f} minutes of churn", warm_s), folder / "soak.svg")
    verdicts = compared(rows, warm_s)
    _say(f"{minutes:.1f} minutes, {warm_s / 60:.1f} of them a warm-up; medians, and the trend in the second half:")
    _say(table(verdicts))
    words = {each.word for each in verdicts}
    return 1 if "GROWS" in words else 2 if "unclear" in words else 0


def _told(soaked: Soaked) -> int:
    _say(f"pods made: {soaked.made}, gone: {soaked.gone}; problems: {soaked.count}")
    for words in soaked.problems[:SHOWN]:
        _say(f"  {words}")
    return int(soaked.count > 0)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benches.soak", description=__doc__)
    for each in fields(SoakPlan):
        read: Any = {"float": float, "int": int, "str": str}[str(each.type)]
        parser.add_argument("--" + each.name.replace("_", "-"), type=read, default=each.default)
    parser.add_argument("--into", type=Path, default=Path("soak"), help="a folder for the journal, CSV and SVG")
    parser.add_argument("--again", action="store_true", help="judge and draw the samples that are there")
    return parser


if __name__ == "__main__":
    sys.exit(main())
