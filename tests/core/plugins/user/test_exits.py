"""Plugins that raise what is no Exception: they are named like any other, and the cycle goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from pumice.core.plugins.failures import PluginFailures, PluginQuestion
from tests.core.plugins.user.test_user_plugins import registering

if TYPE_CHECKING:
    from pumice.core.messages.decisions import CycleResult
    from pumice.core.session.session import Session


class OwnError(BaseException):
    """What nobody catches who catches exceptions."""


class SpeechlessError(Exception):
    """Fails again when it is asked what it says."""

    def __str__(self) -> str:
        raise ValueError("no words")


class LeavingError(BaseException):
    """Ends the process when it is asked what it says."""

    def __str__(self) -> str:
        raise SystemExit(9)


ERRORS = [
    SystemExit(0),
    SystemExit("bye"),
    GeneratorExit(),
    OwnError("mine"),
    SpeechlessError(),
    LeavingError(),
    MemoryError(),
]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("where", ["open", "build", "order"])
def test_whatever_it_raises_the_cycle_goes_on(
    use: Callable[..., CycleResult], told: list[str], error: BaseException, where: str
) -> None:
    def fail(*_: Any) -> Any:
        raise error

    def register(session: Session) -> None:
        session.points.job_order.add("mine", fail)

    builder = fail if where == "build" else registering(fail if where == "open" else register)
    result = use(builder)
    assert len(result.binds) == 4
    point = "JobOrder" if where == "order" else "on_session_open"
    assert told[0].startswith(f"plugin mine failed in {point}: {type(error).__name__}: ")
    again = use(builder)
    assert (again.digest, again.carry) == (result.digest, result.carry)  # what was answered is in the record


def test_ctrl_c_is_not_a_failure_of_a_plugin_but_says_where_it_came(
    use: Callable[..., CycleResult], told: list[str]
) -> None:
    def interrupted(_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        use(registering(interrupted))
    assert told == ["plugin mine was interrupted in on_session_open"]


def test_who_is_asked_is_said_while_it_lasts() -> None:
    asked = PluginQuestion()
    outer, inner = PluginFailures("outer", {}, asked=asked), PluginFailures("inner", {}, asked=asked)
    seen: list[tuple[str, str, int]] = []

    def note() -> None:
        seen.append((asked.plugin, asked.what, asked.number))

    def both() -> None:
        note()
        inner.attempt("score", note, lambda _: None)
        note()

    outer.attempt("reject", both, lambda _: None)
    inner.attempt("kind", note, lambda _: None)
    assert seen == [("outer", "reject", 1), ("inner", "score", 1), ("outer", "reject", 1), ("inner", "kind", 2)]
    assert (asked.plugin, asked.what) == ("", "")
