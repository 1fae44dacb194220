"""Summaries of a run and of a mirror."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from pumice.actors.metrics.summary import RunSummary
from pumice.load.remarks import InputCounts
from pumice.questions.adviser.at_the_end import WaitTold
from pumice.results import Result


class BrokenInvariant(Struct, frozen=True):
    """Something that did not hold under `--faults`, and how that showed."""

    invariant: str
    message: str


class FaultsFound(Result, tag="run/1"):
    """A run under `--faults` that died: which faults struck how often, and what did not hold before."""

    faults_injected: dict[str, int]
    violations: list[BrokenInvariant]


class RunResult(RunSummary, Result, kw_only=True, tag="run/1"):
    """A run at its end: see `RunSummary`. `db`: the journal; `mean_cycle_s`: how long a cycle took; of a storm
    (`--faults`) which faults struck how often, and what did not hold; `input`: how many objects were read as what;
    `waiting`: the jobs that are left waiting, by "namespace/name".
    """

    db: str
    mean_cycle_s: float | UnsetType | None = UNSET
    faults_injected: dict[str, int] | UnsetType = UNSET
    violations: list[BrokenInvariant] | UnsetType = UNSET
    input: InputCounts | UnsetType = UNSET
    waiting: dict[str, WaitTold] | UnsetType = UNSET


class MirrorResult(RunSummary, Result, kw_only=True, tag="mirror/1"):
    """A mirror at its end: see `RunSummary`. `db`: the journal."""

    db: str
