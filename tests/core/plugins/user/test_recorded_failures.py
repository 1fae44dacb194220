"""What a user's plugin failed to answer is recorded, and a cycle that is decided again does not ask it once more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.messages.decisions import MOST, NOWHERE, FailedAnswers
from pumice.core.plugins.failures import PluginFailures
from pumice.core.session.carry import Carry
from pumice.core.session.trail.trail import NULL_TRAIL, NullTrail, Trail
from tests.core.plugins.user.test_user_plugins import registering

if TYPE_CHECKING:
    from pumice.core.messages.decisions import CycleResult

QUESTIONS = st.lists(
    st.tuples(st.sampled_from(["reject_one", "JobOrder"]), st.integers(NOWHERE, 2), st.sampled_from(["", "a", "b"])),
    max_size=30,
)


def session_of(failed: tuple[FailedAnswers, ...]) -> Any:
    return SimpleNamespace(carry=Carry(), options=SimpleNamespace(failed=failed), failed=[], trail=NULL_TRAIL)


def asked(
    questions: list[tuple[str, int, str]], failed: tuple[FailedAnswers, ...], *, works: bool
) -> tuple[list[str], tuple[FailedAnswers, ...], Any]:
    """What is answered to each, what is kept of it, and the carry."""
    failures, session = PluginFailures("mine", {}), session_of(failed)
    failures.begin(session)

    def ask(error: str) -> str:
        if error and not works:
            raise ValueError(error)
        return "well"

    def one(what: str, row: int, error: str) -> str:
        return failures.attempt(what, lambda: ask(error), lambda sentence: sentence, row)

    said = [one(*question) for question in questions]
    return said, tuple(one for told in session.failed for one in told()), session.carry.to_dict()


@given(QUESTIONS)
def test_the_same_questions_get_the_same_answers(questions: list[tuple[str, int, str]]) -> None:
    first = asked(questions, (), works=False)
    assert [sentence != "well" for sentence in first[0]] == [bool(error) for _, _, error in questions]
    again = asked(questions, first[1], works=True)
    assert again == first
    assert asked(questions, (FailedAnswers("other", "JobOrder", NOWHERE, 0, 99, "no"),), works=True)[1] == ()


def test_runs_of_the_same_failure_are_one_and_no_more_are_kept_than_a_bound() -> None:
    _, same, _ = asked([("JobOrder", NOWHERE, "a")] * 20_000, (), works=False)
    assert same == (
        FailedAnswers("mine", "JobOrder", NOWHERE, 0, 20_000, "plugin mine failed in JobOrder: ValueError: a"),
    )
    _, kept, _ = asked([("JobOrder", NOWHERE, str(number)) for number in range(MOST + 5)], (), works=False)
    assert len(kept) == MOST


class Flaky:
    """Fails at some of its calls, by their number over all sessions."""

    def __init__(self, fails: Callable[[int], bool]) -> None:
        self._calls: Iterator[int] = count()
        self._fails = fails

    def __call__(self, task: Any, node: Any) -> str | None:
        if self._fails(next(self._calls)):
            raise ConnectionError("nobody there")
        return f"{node.name} is taken" if node.name == "n0" else None


@pytest.mark.parametrize("on_error", ["ignore", "fail"])
def test_a_cycle_that_is_decided_again_comes_out_the_same(use: Callable[..., CycleResult], on_error: str) -> None:
    def of(flaky: Flaky) -> Any:
        return registering(lambda session: cast("Any", session).points.predicate.add("mine", flaky))

    first = use(of(Flaky(lambda number: number < 6)), onError=on_error)
    assert first.failed
    healthy = use(of(Flaky(lambda _: False)), onError=on_error)
    assert healthy.digest != first.digest
    again = use(of(Flaky(lambda _: False)), failed=first.failed, onError=on_error)
    assert (again.digest, again.carry, again.failed) == (first.digest, first.carry, first.failed)


class Broken:
    """Fails, while it is broken, over one task: on its node, in its score and beside any other."""

    broken = True

    def __init__(self, arguments: Any) -> None:
        pass

    def on_session_open(self, session: Any) -> None:
        session.points.predicate.add("mine", self._test)
        session.points.node_order.add("mine", self._score)
        session.points.job_order.add("mine", self._compare)

    def on_session_close(self, session: Any) -> None:
        pass

    def _test(self, task: Any, node: Any) -> None:
        self._demand(task.name != "j-1")

    def _score(self, task: Any, node: Any) -> float:
        self._demand(task.name != "j-1")
        return float(node.name == "n1")

    def _compare(self, left: Any, right: Any) -> int:
        self._demand("default/k" not in (left.key, right.key))
        return 0

    def _demand(self, well: bool) -> None:
        if self.broken and not well:
            raise ConnectionError("nobody there")


class Mended(Broken):
    broken = False


TRAILS: dict[str, Callable[[], NullTrail]] = {"some": Trail, "every filter": lambda: Trail(every_filter=True)}


@pytest.mark.parametrize("on_error", ["ignore", "fail"])
@pytest.mark.parametrize("trail", TRAILS)
def test_a_trail_asks_nothing_that_counts(use: Callable[..., CycleResult], trail: str, on_error: str) -> None:
    first = use(Broken, onError=on_error)
    assert {"reject_one", "score_one", "JobOrder"} >= {one.what for one in first.failed} > {"JobOrder"}
    heard = use(Broken, trail=TRAILS[trail](), onError=on_error)
    assert (heard.digest, heard.carry, heard.failed) == (first.digest, first.carry, first.failed)
    again = use(Mended, failed=first.failed, trail=TRAILS[trail](), onError=on_error)
    assert (again.digest, again.carry, again.failed) == (first.digest, first.carry, first.failed)
