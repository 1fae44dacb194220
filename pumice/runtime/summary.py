# SPDX-License-Identifier: Apache-2.0
"""Summaries of a run and of a mirror."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from pumice.actors.metrics.summary import RunSummary
from pumice.load.remarks import InputCounts
from pumice.questions.adviser.waiting_jobs import WaitTold
from pumice.results import Result


class BrokenInvariant(Struct, frozen=True):
    """A broken invariant under `--faults`, and its evidence."""

    invariant: str
    message: str


class FaultsFound(Result, tag="run/1"):
    """A run under `--faults` that died: its faults by kind, and the invariants that were broken before."""

    faults_injected: dict[str, int]
    violations: list[BrokenInvariant]


class RunResult(RunSummary, Result, kw_only=True, tag="run/1"):
    """A run at its end: see `RunSummary`. `db`: the journal; `mean_cycle_s`: duration of a cycle; under
    `--faults` the faults by kind, and of a storm the broken invariants; `input`: the number of objects read in each
    way; `waiting`: the jobs that are left waiting, by "namespace/name".
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
