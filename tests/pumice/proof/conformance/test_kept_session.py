"""Every case is decided on columns that earlier sessions worked on, and on copies: both decide the same."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.cycle import Carry, CycleClock, close_session, open_session, run_action
from pumice.core.outside import Ask
from pumice.core.state import calm_jobs
from pumice.core.state.view import View
from pumice.core.state.volumes import volume_rules
from pumice.proof.conformance.case import find_suites
from pumice.proof.conformance.runner import Slice, run_slice
from pumice.questions.oneshot import cycles
from pumice.questions.oneshot.cycles import Setup
from tests.pumice.proof.conformance.test_ratchet import CASES, EVERY

pytestmark = pytest.mark.skipif(
    not all(folder.is_dir() for folder in CASES), reason="the conformance cases are not beside the repository"
)
KEPT_CYCLES = 4
"""Two sets of columns take turns: the third session is the first on columns that another one has written in, and it
goes on where that one ended, if it can.
"""


def never(_jobs: int) -> bool:
    """Return False: nothing is passed over."""
    return False


@pytest.fixture
def digests(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Each cycle's digests: on kept columns, three times, and on copies."""
    found: list[list[str]] = []
    decided = cycles._run  # pyright: ignore[reportPrivateUsage]

    def kept(setup: Setup, view: View, clock: CycleClock, carry: Carry, ask: Ask) -> str:
        rules = volume_rules(setup.config, setup.options.ignored_provisioners)
        snapshot = view.snapshot(rules, kept=True, checks=True)
        session = open_session(snapshot, setup.config, clock, carry, setup.options, ask=ask, sparing=True)
        for action in setup.config.actions:
            run_action(session, action)
        if not setup.close_hooks:
            session.plugins.clear()
            session.kind = None  # without its plugins it could not go on
        return close_session(session).digest

    def both(setup: Setup, view: View, clock: CycleClock, carry: Carry, trail: Any, ask: Ask) -> Any:
        here = list[str]()
        found.append(here)  # of a cycle that fails there are fewer
        here += [kept(setup, view, clock, carry, ask) for _ in range(KEPT_CYCLES)]
        with monkeypatch.context() as patch:  # nothing that is kept, nothing passed over: the reference
            patch.setattr(calm_jobs, "are_many", never)
            result, reasons = decided(setup, view, clock, carry, trail, ask)
        here.append(result.digest)
        return result, reasons

    monkeypatch.setattr(cycles, "_run", both)
    return found


def run_cases(every: int) -> None:
    """Run every so many of the cases, in this process."""
    for file in find_suites(CASES):
        if not file.is_resources:
            for number in range(0, file.cases, every):
                run_slice(Slice(file, number, number + 1, ""))


def test_cases_decide_alike_on_kept_columns(digests: list[list[str]]) -> None:
    run_cases(3 * EVERY)
    assert len(digests) > 40
    assert [each for each in digests if len(each) <= KEPT_CYCLES or len(set(each)) > 1] == []


@pytest.mark.slow
def test_all_cases_decide_alike_on_kept_columns(digests: list[list[str]]) -> None:
    run_cases(1)
    assert len(digests) > 1000
    assert [each for each in digests if len(each) <= KEPT_CYCLES or len(set(each)) > 1] == []
